"""core.process: programs are started, heard, and always ended."""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from madengine.core import process
from madengine.core.errors import ConfigurationError


def bash(script: str) -> list[str]:
    return ["bash", "-c", script]


def collect(script: str, **options: object) -> tuple[process.StreamResult, bytes]:
    chunks: list[bytes] = []
    result = process.stream(bash(script), output=chunks.append, **options)  # type: ignore[arg-type]
    return result, b"".join(chunks)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until_dead(pid: int, limit: float = 3.0) -> bool:
    deadline = time.monotonic() + limit
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not alive(pid)


class TestRun:
    def test_keeps_both_outputs_apart(self) -> None:
        done = process.run(bash("echo out; echo err >&2; exit 3"))
        assert (done.exit_code, done.stdout, done.stderr) == (3, "out\n", "err\n")
        assert done.argv[0] == "bash"
        assert not done.timed_out

    def test_a_missing_program_is_an_exit_code_with_a_sentence(self) -> None:
        done = process.run(["no-such-program-here"])
        assert done.exit_code == 127
        assert done.stderr == "cannot start 'no-such-program-here': No such file or directory"

    def test_a_program_without_the_right_to_run_is_126(self, tmp_path: Path) -> None:
        script = tmp_path / "script"
        script.write_text("#!/bin/sh\n")
        script.chmod(0o600)
        assert process.run([script]).exit_code == 126

    def test_a_missing_working_folder_is_named(self, tmp_path: Path) -> None:
        done = process.run(["true"], cwd=tmp_path / "gone")
        assert done.exit_code == 127
        assert str(tmp_path / "gone") in done.stderr

    @pytest.mark.parametrize("word", ["a\0b", "\ud800"])
    def test_a_word_that_no_program_can_be_given_is_a_configuration_error(self, word: str) -> None:
        with pytest.raises(ConfigurationError, match="'true' cannot be started"):
            process.run(["true", word])

    def test_standard_input_is_empty(self) -> None:
        assert process.run(["cat"], timeout=5).stdout == ""

    def test_input_larger_than_any_pipe_arrives_whole(self) -> None:
        assert process.run(["wc", "-c"], input=b"x" * 3_000_000).stdout.strip() == "3000000"
        assert process.run(["cat"], input="süß").stdout == "süß"

    def test_bytes_that_are_not_utf8_are_replaced(self) -> None:
        assert process.run(["printf", r"a\xffb"]).stdout == "a\N{REPLACEMENT CHARACTER}b"

    def test_the_environment_is_the_given_one_and_no_other(self) -> None:
        done = process.run(["/usr/bin/env"], env={"ONLY": "this"})
        assert done.stdout == "ONLY=this\n"

    def test_at_the_time_limit_the_program_is_ended_with_124_and_its_output_kept(self) -> None:
        done = process.run(bash("echo before; sleep 60"), timeout=0.2)
        assert (done.exit_code, done.timed_out, done.stdout) == (124, True, "before\n")
        assert done.duration < 3

    def test_a_time_limit_of_nothing_is_over_at_once(self) -> None:
        assert process.run(["sleep", "60"], timeout=0).timed_out

    def test_more_output_than_the_limit_is_dropped_and_said_so(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(process, "CAPTURE_LIMIT", 1000)
        done = process.run(bash("head -c 100000 /dev/zero | tr '\\0' x"))
        assert (done.exit_code, len(done.stdout), done.truncated) == (0, 1000, True)

    def test_output_of_exactly_the_limit_is_whole(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(process, "CAPTURE_LIMIT", 5)
        done = process.run(["printf", "12345"])
        assert (done.stdout, done.truncated) == ("12345", False)

    def test_both_pipes_full_at_once_do_not_lock_up(self) -> None:
        done = process.run(bash("head -c 400000 /dev/zero >&2; head -c 400000 /dev/zero"), timeout=20)
        assert (len(done.stdout), len(done.stderr)) == (400_000, 400_000)


class TestStream:
    def test_both_outputs_come_in_the_order_they_were_written(self) -> None:
        result, output = collect("echo 1; echo 2 >&2; echo 3; exit 5")
        assert (result.exit_code, output) == (5, b"1\n2\n3\n")
        assert not (result.timed_out or result.cancelled)

    def test_output_is_handed_on_before_the_program_ends(self) -> None:
        arrivals: list[float] = []
        began = time.monotonic()
        result = process.stream(
            bash("printf first; sleep 0.4; printf second"), output=lambda _: arrivals.append(time.monotonic() - began)
        )
        assert len(arrivals) == 2
        assert arrivals[0] < 0.3 < result.duration

    def test_a_missing_program_says_so_in_the_output(self) -> None:
        chunks: list[bytes] = []
        result = process.stream(["no-such-program-here"], output=chunks.append)
        assert result.exit_code == 127
        assert b"cannot start 'no-such-program-here'" in b"".join(chunks)

    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
    def test_an_end_by_signal_is_128_and_its_number(self, number: signal.Signals) -> None:
        assert collect(f"kill -{int(number)} $$")[0].exit_code == 128 + number

    def test_a_large_output_arrives_whole(self) -> None:
        assert len(collect("head -c 5000000 /dev/zero")[1]) == 5_000_000

    def test_a_program_that_closes_its_output_is_still_waited_for(self) -> None:
        result, _ = collect("exec >&- 2>&-; sleep 0.3; exit 9")
        assert result.exit_code == 9
        assert result.duration >= 0.3

    def test_the_callback_is_told_the_process_id(self) -> None:
        pids: list[int] = []
        _, output = collect("echo $$", started=pids.append)
        assert pids == [int(output)]

    def test_the_program_leads_a_group_and_session_of_its_own(self) -> None:
        _, output = collect(
            "ps -o pid=,pgid=,sid= -p $$" if Path("/bin/ps").exists() else "cut -d' ' -f1,5,6 /proc/$$/stat"
        )
        pid, group, session = map(int, output.split())
        assert pid == group == session != os.getsid(0)


class TestDescendants:
    def test_a_grandchild_that_keeps_the_pipe_open_does_not_hold_up_the_end(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(process, "LINGER", 0.2)
        result, output = collect("sleep 60 & echo $!; exit 4")
        try:
            assert result.exit_code == 4
            assert result.duration < 2
            assert alive(int(output))
        finally:
            os.kill(int(output), signal.SIGKILL)

    def test_a_grandchild_that_never_stops_writing_does_not_hold_up_the_end(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(process, "LINGER", 0.2)
        result, output = collect("(while :; do echo y; done) & echo pid $!")
        assert (result.exit_code, result.duration < 2) == (0, True)
        pid = next(int(line.split()[1]) for line in output.splitlines() if line.startswith(b"pid "))
        assert wait_until_dead(pid), "a writer without a reader ends by itself"

    def test_the_last_words_of_a_process_substitution_are_heard(self) -> None:
        _, output = collect("exec > >(sleep 0.2; cat); echo performance: 1 x")
        assert output == b"performance: 1 x\n"

    def test_end_group_ends_what_the_program_left_running(self) -> None:
        result, output = collect("sleep 60 >/dev/null 2>&1 & echo $!", end_group=True)
        assert result.exit_code == 0
        assert wait_until_dead(int(output))

    def test_run_does_not_wait_for_a_grandchild_either(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(process, "LINGER", 0.2)
        done = process.run(bash("sleep 60 & echo $!"))
        os.kill(int(done.stdout), signal.SIGKILL)
        assert done.duration < 2


class TestTimeLimit:
    def test_the_whole_group_is_ended_and_the_code_is_124(self) -> None:
        result, output = collect("sleep 60 & echo $!; wait", timeout=0.2, grace=2)
        assert (result.exit_code, result.timed_out, result.cancelled) == (124, True, False)
        assert wait_until_dead(int(output))
        assert result.duration < 2

    def test_who_ignores_term_is_killed_after_the_grace(self) -> None:
        result, output = collect("trap '' TERM; echo $$; while :; do sleep 0.05; done", timeout=0.2, grace=0.3)
        assert result.exit_code == 124
        assert 0.5 <= result.duration < 3
        assert wait_until_dead(int(output))

    def test_last_words_after_term_are_heard(self) -> None:
        _, output = collect("trap 'echo saved; exit 0' TERM; sleep 60 & wait", timeout=0.2)
        assert b"saved" in output

    def test_a_silent_member_of_the_group_has_its_grace_after_the_leader_ended(self, tmp_path: Path) -> None:
        # In its own folder it writes after TERM, long after bash itself has gone.
        script = "(trap 'sleep 0.2; touch saved; exit' TERM; while :; do sleep 0.02; done) >/dev/null 2>&1 & echo; wait"
        result, _ = collect(script, timeout=0.3, grace=5, cwd=tmp_path)
        assert (tmp_path / "saved").exists()
        assert result.duration < 4

    def test_a_group_member_that_ignores_term_is_killed_though_the_leader_ended(self) -> None:
        script = "(trap '' TERM; while :; do sleep 0.02; done) >/dev/null 2>&1 & echo $!; wait"
        result, output = collect(script, timeout=0.2, grace=0.3)
        assert result.exit_code == 124
        assert wait_until_dead(int(output))

    def test_a_program_that_ends_in_time_keeps_its_own_code(self) -> None:
        assert collect("exit 7", timeout=20)[0].exit_code == 7


class TestCancel:
    def test_ends_the_group_with_130(self) -> None:
        cancel = threading.Event()
        timer = threading.Timer(0.2, cancel.set)
        timer.start()
        result, output = collect("sleep 60 & echo $!; wait", cancel=cancel, grace=2)
        timer.join()
        assert (result.exit_code, result.cancelled, result.timed_out) == (130, True, False)
        assert wait_until_dead(int(output))

    def test_a_cancel_before_the_start_starts_nothing(self, tmp_path: Path) -> None:
        cancel = threading.Event()
        cancel.set()
        result, _ = collect("touch started", cancel=cancel, cwd=tmp_path)
        assert (result.exit_code, result.cancelled) == (130, True)
        assert list(tmp_path.iterdir()) == []

    def test_an_event_that_is_never_set_changes_nothing(self) -> None:
        result, output = collect("echo x", cancel=threading.Event())
        assert (result.exit_code, output) == (0, b"x\n")


class TestTroubleInTheCaller:
    def test_an_exception_of_the_listener_ends_the_group_first(self) -> None:
        pids: list[int] = []

        def full(_: bytes) -> None:
            raise OSError("disk full")

        with pytest.raises(OSError, match="disk full"):
            process.stream(bash("echo x; sleep 60 & sleep 60"), output=full, started=pids.append, grace=2)
        assert not alive(pids[0])

    def test_ctrl_c_ends_the_group_before_it_is_passed_on(self) -> None:
        program = textwrap.dedent(
            """
            import signal, sys
            from madengine.core import process
            signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job is started with it ignored
            try:
                process.stream(["bash", "-c", "sleep 60 & echo $!; wait"], grace=2,
                               output=lambda data: (sys.stdout.write(data.decode()), sys.stdout.flush()))
            except KeyboardInterrupt:
                print("interrupted")
            """
        )
        caller = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        assert caller.stdout is not None
        sleeper = int(caller.stdout.readline())
        caller.send_signal(signal.SIGINT)
        rest, _ = caller.communicate(timeout=10)
        assert rest == "interrupted\n"
        assert not alive(sleeper)


class TestWithoutPidfd:
    """Old kernels and some sandboxes: the end is found by polling, the rules stay."""

    @pytest.fixture(autouse=True)
    def no_pidfd(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(_: int) -> int:
            raise OSError("not here")

        monkeypatch.setattr(os, "pidfd_open", refuse)

    def test_exit_codes_and_output(self) -> None:
        result, output = collect("echo x; exit 6")
        assert (result.exit_code, output) == (6, b"x\n")

    def test_time_limit(self) -> None:
        assert collect("sleep 60", timeout=0.1)[0].exit_code == 124

    def test_grandchild(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(process, "LINGER", 0.1)
        result, output = collect("sleep 60 & echo $!")
        os.kill(int(output), signal.SIGKILL)
        assert result.duration < 2


def test_no_descriptor_is_left_open_and_no_child_unreaped() -> None:
    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    pids: list[int] = []
    collect("true")
    before = descriptors()
    for _ in range(5):
        process.run(["true"], input=b"x")
        collect("sleep 5", timeout=0.01, started=pids.append)
        collect("true", cancel=threading.Event(), started=pids.append)
    assert descriptors() == before
    assert len(pids) == 10
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_costs_less_than_ten_milliseconds_more_than_the_bare_call() -> None:
    def seconds(call: object) -> float:
        began = time.perf_counter()
        call()  # type: ignore[operator]
        return time.perf_counter() - began

    ours, bare = [], []
    for _ in range(11):
        ours.append(seconds(lambda: process.run(["true"])))
        bare.append(seconds(lambda: subprocess.run(["true"], check=False)))
    assert statistics.median(ours) - statistics.median(bare) < 0.010
