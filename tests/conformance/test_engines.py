"""What every engine does alike, whatever runs the script."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conformance.heard import Heard
from tests.hostile import HOSTILE, canaries

from madengine.core.errors import BuildError, ConfigurationError, ExecutionError
from madengine.execution.engine import Container, ContainerEngine, Mount

Starter = Callable[..., Container]

SHOW_ARGUMENTS = "import json, os, sys; print(json.dumps([os.fsencode(word).hex() for word in sys.argv[1:]]))"
SHOW_VARIABLES = (
    "import json, os, sys;"
    "print(json.dumps({k.decode(): v.hex() for k, v in os.environb.items() if k.decode() in sys.argv}))"
)
STRAY = "setsid bash -c 'while :; do date +%N > alive; sleep 0.05; done'"
MINE = ["HOME", "PATH", "DOCKER_HOST", "DOCKER_CONFIG", "HTTPS_PROXY", "LD_LIBRARY_PATH", "XDG_CONFIG_HOME", "GODEBUG"]


def test_an_engine_that_works_names_itself(engine: ContainerEngine) -> None:
    assert engine.problem() is None
    assert engine.describe().startswith(engine.name)


@pytest.mark.parametrize("code", [0, 1, 7, 125, 255])
def test_an_exit_code_passes_through(start: Starter, code: int) -> None:
    assert Heard(start())("bash", "-c", f"exit {code}").exit_code == code


def test_a_signal_is_128_and_its_number(start: Starter) -> None:
    assert Heard(start())("bash", "-c", "kill -SEGV $$").exit_code == 139


def test_both_outputs_come_in_the_order_they_were_written(start: Starter) -> None:
    run = Heard(start())
    run("bash", "-c", "echo one; echo two >&2; echo three")
    assert run.text == "one\ntwo\nthree"


def test_output_comes_while_the_command_runs(start: Starter) -> None:
    heard: list[float] = []
    began = time.monotonic()
    start().exec(
        ["bash", "-c", "echo now; sleep 1.5"],
        cwd="/myworkspace",
        output=lambda data: heard.append(time.monotonic() - began),
    )
    assert heard[0] < time.monotonic() - began - 1


def test_the_workspace_is_shared_and_is_where_a_command_starts(start: Starter, workspace: Path) -> None:
    (workspace / "run_directory").mkdir()
    (workspace / "run_directory" / "in").write_text("from here")
    run = Heard(start())
    run("bash", "-c", "cat in; echo from there > ../out", cwd="/myworkspace/run_directory")
    assert run.text == "from here"
    assert (workspace / "out").read_text() == "from there\n"


def test_a_file_that_a_script_wrote_is_the_callers(start: Starter, workspace: Path) -> None:
    Heard(start())("bash", "-c", "echo x > made")
    assert (workspace / "made").stat().st_uid == os.getuid()


def test_standard_input_is_empty(start: Starter) -> None:
    run = Heard(start())
    assert run("bash", "-c", "cat; echo done").exit_code == 0
    assert run.text == "done"


def test_arguments_arrive_byte_for_byte(start: Starter, workspace: Path) -> None:
    run = Heard(start())
    run("python3", "-c", SHOW_ARGUMENTS, *HOSTILE)
    assert json.loads(run.text) == [text.encode().hex() for text in HOSTILE]
    assert not canaries(workspace)


def test_variables_and_secrets_arrive_byte_for_byte(start: Starter, workspace: Path) -> None:
    given = {f"HOSTILE_{number}": text for number, text in enumerate(HOSTILE) if "/myworkspace" not in text}
    half = len(given) // 2
    plain, secret = dict(list(given.items())[:half]), dict(list(given.items())[half:])
    run = Heard(start(environment=plain, secrets=secret))
    run("python3", "-c", SHOW_VARIABLES, *given)
    assert json.loads(run.text) == {name: text.encode().hex() for name, text in given.items()}
    assert not canaries(workspace)


def test_variables_that_the_engines_client_reads_itself_arrive_too(start: Starter) -> None:
    given = {name: f"/mine/{name}\n'$(x)'" for name in MINE} | {"PATH": "/usr/local/bin:/usr/bin:/bin"}
    given["LD_LIBRARY_PATH"] = "/nowhere"
    run = Heard(start(environment=given))
    run("/usr/bin/env", "python3", "-c", SHOW_VARIABLES, *MINE)
    assert json.loads(run.text) == {name: text.encode().hex() for name, text in given.items()}


def test_a_variable_of_one_command_is_not_the_next_ones(start: Starter) -> None:
    run = Heard(start(environment={"A": "all"}))
    run("bash", "-c", 'echo "$A $B $HOME"', environment={"B": "one", "HOME": "/h"})
    assert run.text == "all one /h"
    run("bash", "-c", 'echo "$A ${B-unset}"')
    assert run.text == "all unset"


@pytest.mark.parametrize("name", ["", "A=B", "A\0"])
def test_a_name_that_can_be_no_variable_is_refused(start: Starter, name: str) -> None:
    with pytest.raises(ConfigurationError):
        Heard(start(environment={name: "x"}))("true")


def test_no_secret_stands_in_a_process_list(start: Starter) -> None:
    secret = "canary-5fa1c9d2"
    container = start(secrets={"MAD_SECRETS_X": secret, "DOCKER_TOKEN": secret}, environment={"HOME": secret})
    seen: list[bytes] = []
    over = threading.Event()
    watcher = threading.Thread(target=_read_process_lists, args=(seen, over))
    watcher.start()
    try:
        run = Heard(container)
        run("bash", "-c", "sleep 0.5; echo $MAD_SECRETS_X $DOCKER_TOKEN")
    finally:
        over.set()
        watcher.join()
    assert run.text == f"{secret} {secret}"
    assert any(b"sleep" in line for line in seen)
    assert not any(secret.encode() in line for line in seen)


def test_a_time_limit_ends_the_command_and_all_that_it_started(start: Starter, workspace: Path) -> None:
    began = time.monotonic()
    result = Heard(start())("bash", "-c", f"{STRAY} & trap '' TERM; sleep 60 & wait; wait", timeout=1)
    assert (result.exit_code, result.timed_out) == (124, True)
    assert time.monotonic() - began < 15
    assert not _is_changing(workspace / "alive")


def test_a_command_may_tidy_up_when_its_time_is_over(start: Starter, workspace: Path) -> None:
    run = Heard(start())
    run("bash", "-c", "trap 'echo last words; exit 0' TERM; sleep 60 & wait", timeout=0.5)
    assert "last words" in run.text


def test_a_container_goes_on_after_a_commands_time_limit(start: Starter) -> None:
    run = Heard(start())
    run("sleep", "60", timeout=0.3)
    assert run("bash", "-c", "echo still here").exit_code == 0
    assert run.text == "still here"


def test_a_cancel_ends_the_command(start: Starter) -> None:
    cancel = threading.Event()
    threading.Timer(0.5, cancel.set).start()
    began = time.monotonic()
    result = Heard(start())("sleep", "60", cancel=cancel)
    assert (result.exit_code, result.cancelled, result.timed_out) == (130, True, False)
    assert time.monotonic() - began < 15


def test_what_a_script_leaves_running_does_not_hold_it_up(start: Starter) -> None:
    began = time.monotonic()
    run = Heard(start())
    result = run("bash", "-c", "sleep 60 & echo done; exit 3")
    assert (result.exit_code, run.text) == (3, "done")
    assert time.monotonic() - began < 15


def test_what_a_script_leaves_running_ends_with_the_container(start: Starter, workspace: Path) -> None:
    container = start()
    Heard(container)("bash", "-c", f"{STRAY} >/dev/null 2>&1 & until [ -s alive ]; do sleep 0.01; done")
    container.stop()
    assert not _is_changing(workspace / "alive")


def test_stopping_twice_is_fine(start: Starter) -> None:
    container = start()
    container.stop()
    container.stop()


def test_a_program_that_is_not_there_is_127_with_a_reason(start: Starter) -> None:
    run = Heard(start())
    assert run("no-such-program").exit_code in (126, 127)
    assert "no-such-program" in run.text


def test_a_file_can_be_copied_out(start: Starter, tmp_path: Path) -> None:
    container = start()
    Heard(container)("bash", "-c", "mkdir folder; echo x > folder/file")
    container.copy_out("/myworkspace/folder/file", tmp_path / "file")
    container.copy_out("/myworkspace/folder", tmp_path / "folder")
    assert (tmp_path / "file").read_text() == (tmp_path / "folder" / "file").read_text() == "x\n"


def test_copying_out_what_is_not_there_is_an_error(start: Starter, tmp_path: Path) -> None:
    with pytest.raises(ExecutionError, match="nothing-here"):
        start().copy_out("/myworkspace/nothing-here", tmp_path / "file")


@pytest.mark.parametrize("name", ["data", "with space,comma:colon", 'quote"d'])
def test_a_mount_below_the_workspace_is_seen_there(start: Starter, tmp_path: Path, name: str) -> None:
    source = tmp_path / name
    source.mkdir()
    (source / "file").write_text("data")
    run = Heard(start(mounts=(Mount(source, "/myworkspace/data"),)))
    run("cat", "data/file")
    assert run.text == "data"


def test_two_containers_at_once_do_not_meet(start: Starter) -> None:
    first, second = Heard(start(environment={"A": "1"})), Heard(start(environment={"A": "2"}))
    threads = [threading.Thread(target=run, args=("bash", "-c", "sleep 0.3; echo $A")) for run in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (first.text, second.text) == ("1", "2")


def test_a_person_is_told_how_to_enter(start: Starter) -> None:
    container = start()
    assert container.entry
    assert container.path("/myworkspace/x").endswith("/x")


def test_an_image_that_is_not_there_is_no_image(engine: ContainerEngine) -> None:
    assert engine.image_facts("local/not-there:1") is None
    engine.remove_image("local/not-there:1")


def test_what_cannot_be_saved_leaves_no_archive(engine: ContainerEngine, tmp_path: Path) -> None:
    with pytest.raises(BuildError):
        engine.save("local/not-there:1", tmp_path / "image.tar")
    assert list(tmp_path.glob("*image*")) == []


def _is_changing(path: Path) -> bool:
    before = path.read_bytes()
    time.sleep(0.4)
    return path.read_bytes() != before


def _read_process_lists(seen: list[bytes], over: threading.Event) -> None:
    """All command lines that are to be seen on this machine, again and again."""
    while not over.wait(0.02):
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                seen.append(entry.read_bytes())
            except OSError:
                continue
