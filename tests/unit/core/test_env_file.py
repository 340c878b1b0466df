"""core.env_file: bash reads it, nobody sees a value, and every way in which it can be wrong is a sentence."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.hostile import HOSTILE, canaries

from madengine.core import env_file as module
from madengine.core.env_file import apply_env_file, load_env_file
from madengine.core.env_text import check_text, masked_message, unfilled_placeholders
from madengine.core.errors import ConfigurationError
from madengine.core.shell import quote

SECRET = "hf_CanaryCanary0123456789"

Write = Callable[[str | bytes], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(content: str | bytes) -> Path:
        path = tmp_path / "mad.env"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


def refusal(path: Path, **options: float) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        load_env_file(path, notice=lambda _: None, **options)  # type: ignore[arg-type]
    assert caught.value.where is not None
    assert str(path) in caught.value.where
    assert "\n" not in str(caught.value)
    return caught.value


class TestWhatIsReturned:
    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            ("", {}),
            ("export A=1", {"A": "1"}),
            ("A=1\nB=$A/x\n", {"A": "1", "B": "1/x"}),
            ("export A='a b' # comment\n", {"A": "a b"}),
            ('A="line 1\nline 2\n"\n', {"A": "line 1\nline 2\n"}),
            ("A=\n", {"A": ""}),
            ("A=x=y=z", {"A": "x=y=z"}),
            ("A=${GIVEN:-default} B=${MISSING:-default}", {"A": "inherited", "B": "default"}),
            ("export GIVEN=mine", {"GIVEN": "mine"}),
            ("export GIVEN=inherited", {}),
            ("unset GIVEN", {}),
            ("A=$(echo from a command)", {"A": "from a command"}),
            ("A=$(cat /no/such/file 2>/dev/null)\nB=1", {"A": "", "B": "1"}),
            ("false\nA=1", {"A": "1"}),
            ("[[ -n $GIVEN ]] && A=1", {"A": "1"}),
            ("f() { echo x; }\nexport -f f\nA=1", {"A": "1"}),
            ("cd /\nset -o pipefail\nA=1", {"A": "1"}),
            ("read -r answer\nA=1", {"answer": "", "A": "1"}),
            ("list=(a b)\nA=${list[1]}", {"A": "b"}),
            ("PATH=/nowhere", {"PATH": "/nowhere"}),
            ("IFS=:", {"IFS": ":"}),
            ("set -u\nA=1", {"A": "1"}),
            ("exec 3>&1 4>&1 9>&1\nA=1", {"A": "1"}),
            ("return 0\nA=1", {}),
            ("set +a\nA=1\nexport B=2", {"B": "2"}),
            ("A=$#$1", {"A": "0"}),
        ],
    )  # fmt: skip
    def test_what_the_file_adds_or_changes(self, write: Write, content: str, expected: dict[str, str]) -> None:
        inherited = {"PATH": os.environ["PATH"], "GIVEN": "inherited"}
        assert load_env_file(write(content), environment=inherited, notice=lambda _: None) == expected

    def test_hostile_values_come_back_byte_equal(self, write: Write, tmp_path: Path) -> None:
        content = "".join(f"V{number}={quote(value)}\n" for number, value in enumerate(HOSTILE) if "\r\n" not in value)
        loaded = load_env_file(write(content), environment={"PATH": os.environ["PATH"]})
        assert loaded == {f"V{number}": value for number, value in enumerate(HOSTILE) if "\r\n" not in value}
        assert canaries(tmp_path) == []

    def test_hostile_inherited_values_are_no_change(self, write: Write) -> None:
        inherited = {f"V{number}": value for number, value in enumerate(HOSTILE)} | {"PATH": os.environ["PATH"]}
        assert load_env_file(write("A=1"), environment=inherited) == {"A": "1"}

    def test_values_that_are_not_utf8_survive(self, write: Write) -> None:
        assert load_env_file(write(b"A=caf\xe9")) == {"A": os.fsdecode(b"caf\xe9")}

    def test_functions_that_are_inherited_are_left_out(self, write: Write) -> None:
        inherited = {"PATH": os.environ["PATH"], "BASH_FUNC_g%%": "() { echo G; }"}
        assert load_env_file(write("A=$(g)"), environment=inherited) == {"A": "G"}

    def test_this_process_is_left_alone(self, write: Write) -> None:
        before = dict(os.environ)
        load_env_file(write("ADDED_HERE=1"))
        assert dict(os.environ) == before

    def test_a_relative_path_lies_in_the_base_folder(self, write: Write, tmp_path: Path) -> None:
        write("A=1")
        (tmp_path / "sub").mkdir()
        assert load_env_file("mad.env", tmp_path) == {"A": "1"}
        assert load_env_file("../mad.env", str(tmp_path / "sub")) == {"A": "1"}
        assert load_env_file(tmp_path / "mad.env", "/somewhere/else") == {"A": "1"}

    def test_a_relative_path_without_a_base_lies_in_the_current_folder(
        self, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write("A=1")
        monkeypatch.chdir(tmp_path)
        assert load_env_file("mad.env") == {"A": "1"}

    def test_a_path_full_of_shell_characters_is_only_a_path(self, tmp_path: Path) -> None:
        path = tmp_path / "$(touch madengine_canary) 'x' ; \"y"
        path.write_text("A=1")
        assert load_env_file(path) == {"A": "1"}
        assert canaries(tmp_path) == []

    def test_apply_also_puts_it_into_the_environment(self, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ENV_FILE_TEST", "old")
        assert apply_env_file(write("ENV_FILE_TEST=new")) == {"ENV_FILE_TEST": "new"}
        assert os.environ["ENV_FILE_TEST"] == "new"

    def test_apply_takes_another_environment(self, write: Write) -> None:
        environment = {"PATH": os.environ["PATH"], "A": "1"}
        apply_env_file(write("B=$A"), environment=environment)
        assert environment["B"] == "1"
        assert "B" not in os.environ


class TestWhatIsPrinted:
    def test_both_outputs_reach_the_notice_in_order(self, write: Write) -> None:
        said: list[str] = []
        load_env_file(write("echo one\necho two >&2\nprintf three\nA=1"), notice=said.append)
        assert said == ["one\ntwo\nthree"]

    def test_nothing_printed_is_no_notice(self, write: Write) -> None:
        said: list[str] = []
        load_env_file(write("set -x; set +x; A=1") and write("A=1"), notice=said.append)
        assert said == []

    def test_without_a_notice_it_goes_to_standard_error(self, write: Write, capsys: pytest.CaptureFixture[str]) -> None:
        load_env_file(write("printf warning"))
        captured = capsys.readouterr()
        assert (captured.out, captured.err) == ("", "warning\n")

    def test_secrets_are_masked_in_it(self, write: Write) -> None:
        said: list[str] = []
        content = f"set -x\nexport A_TOKEN={SECRET}\nOTHER=visible-value\necho got $A_TOKEN $GIVEN_PASSWORD"
        load_env_file(
            write(content),
            notice=said.append,
            environment={"PATH": os.environ["PATH"], "GIVEN_PASSWORD": "inherited-pw"},
        )
        assert SECRET not in said[0]
        assert "visible-value" not in said[0]
        assert "inherited-pw" not in said[0]
        assert "got *** ***" in said[0]


class TestWhatIsRefused:
    def test_a_missing_file(self, tmp_path: Path) -> None:
        error = refusal(tmp_path / "sub" / "mad.env")
        assert error.message == "the env_file does not exist"
        assert error.exit_code == 4

    def test_the_resolved_path_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError) as caught:
            load_env_file("../gone.env", tmp_path / "sub")
        assert caught.value.where == str(tmp_path / "gone.env")

    @pytest.mark.parametrize("name", ["", "a\0b"])
    def test_no_name(self, name: str) -> None:
        with pytest.raises(ConfigurationError, match="names no file"):
            load_env_file(name)

    def test_a_folder(self, tmp_path: Path) -> None:
        assert refusal(tmp_path).message == "the env_file is a folder"

    def test_a_pipe_is_not_waited_for(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        assert refusal(tmp_path / "pipe").message == "the env_file is no regular file"

    def test_a_file_inside_a_file(self, write: Write) -> None:
        path = write("A=1") / "x"
        assert refusal(path).message == "the env_file cannot be read: Not a directory"

    def test_a_huge_file(self, tmp_path: Path) -> None:
        with (tmp_path / "big").open("wb") as file:
            file.truncate(200 * 1024 * 1024)
        assert refusal(tmp_path / "big").message == "the env_file is larger than 4 MiB"

    @pytest.mark.parametrize("content", [b"A=1\0B=2", "A=1\n".encode("utf-16")])
    def test_a_binary_file(self, write: Write, content: bytes) -> None:
        assert refusal(write(content)).message == "the env_file is binary or UTF-16, not plain text"

    def test_a_byte_order_mark(self, write: Write) -> None:
        assert "byte-order mark" in refusal(write(b"\xef\xbb\xbfexport A=1\n")).message

    def test_windows_line_ends_are_named_with_their_line(self, write: Write) -> None:
        path = write("A=1\nB=2\r\nC=3\r\n")
        error = refusal(path)
        assert error.where == f"{path}:2"
        assert "CRLF" in error.message
        assert "dos2unix" in str(error.hint)

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            ('A="open\nB=2\n', "unexpected EOF while looking for matching"),
            ("if true; then\nA=1\n", "syntax error: unexpected end of file"),
            ("A=)\n", "syntax error near unexpected token"),
        ],
    )
    def test_a_syntax_error_is_told_in_bashs_words(self, write: Write, content: str, said: str) -> None:
        error = refusal(write(content))
        assert error.message.startswith("the env_file ended with status ")
        assert said in error.message
        assert "syntax" in str(error.hint)

    @pytest.mark.parametrize(
        ("content", "status"),
        [("exit 3", 3), ("A=1\nfalse", 1), ("return 7", 7), ("no-such-command-here", 127), ("set -e\nfalse\nA=1", 1)],
    )
    def test_another_status_than_0(self, write: Write, content: str, status: int) -> None:
        assert refusal(write(content)).message.startswith(f"the env_file ended with status {status}")

    def test_what_was_printed_is_the_reason(self, write: Write) -> None:
        error = refusal(write("echo first >&2\necho the licence server is down >&2\nexit 3"))
        assert error.message == "the env_file ended with status 3: first; the licence server is down"

    @pytest.mark.parametrize("content", ["A=1\nexit 0\n", "exec true\n"])
    def test_leaving_the_shell_before_the_end(self, write: Write, content: str) -> None:
        assert refusal(write(content)).message.startswith("the env_file left the shell before its end")

    def test_a_file_that_hangs_is_ended_with_all_it_started(self, write: Write, tmp_path: Path) -> None:
        path = write(f"sleep 60 & echo $! > {tmp_path}/pid\nwait")
        began = time.monotonic()
        error = refusal(path, timeout=0.3)
        assert time.monotonic() - began < 3
        assert error.message == "the env_file did not end within 0.3 seconds"
        sleeper = Path("/proc") / (tmp_path / "pid").read_text().strip()
        assert not sleeper.exists() or "sleep" not in (sleeper / "cmdline").read_text()

    def test_a_background_process_of_the_file_is_not_waited_for(
        self, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from madengine.core import process

        monkeypatch.setattr(process, "LINGER", 0.1)
        path = write(f"sleep 30 & echo $! > {tmp_path}/pid\nA=1")
        began = time.monotonic()
        assert load_env_file(path) == {"A": "1"}
        assert time.monotonic() - began < 5
        os.kill(int((tmp_path / "pid").read_text()), 9)

    def test_a_machine_without_bash(self, write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        assert refusal(write("A=1")).message == "bash is needed to read the env_file, and it is not there"


class TestPlaceholders:
    @pytest.mark.parametrize(
        "content",
        [
            "export MODEL_DIR=<FILL_PATH_TO_MAD>/\ntouch executed",
            "touch executed\nA=<FILL_X>",
            "touch executed\nA='<FILL_X free text>'",
            'touch executed\nA="/x/<FILL_X, see <y>>/z"',
            "touch executed\nA=<OPTIONAL path>",
            "touch executed\nA=<supply-your-image>",
            "touch executed\nA=CHANGE-ME",
        ],
    )
    def test_are_found_before_anything_is_executed(
        self, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
    ) -> None:
        monkeypatch.chdir(tmp_path)
        error = refusal(write(content))
        assert "not filled in: line " in error.message
        assert [path.name for path in tmp_path.iterdir()] == ["mad.env"]

    @pytest.mark.parametrize(
        "content",
        [
            "# fill <FILL_X> in\nA=1",
            "A=1 # e.g. <FILL_X>",
            "A=1;# <FILL_X>",
            "A='it'\"'\"'s' # <FILL_X>",
            "A=x\\# # <FILL_X>",
            "# don't\nA=1 # <FILL_X>",
            "B=a#b; A=${B#a} # <FILL_X>",
            "A=1\n\n\t# <OPTIONAL path>\n",
            "cat < /dev/null > /dev/null",
            "A=FILL_ME",
        ],
    )
    def test_in_comments_are_remarks(self, write: Write, content: str) -> None:
        assert unfilled_placeholders(content) == []
        load_env_file(write(content))

    def test_each_is_told_with_its_line(self) -> None:
        text = "# <FILL_A>\nX='a\nb' # it's <FILL_B>\nexport Y=<FILL_C>/<FILL_D  see x>\n\nZ=CHANGE-ME\n"
        assert unfilled_placeholders(text) == [(4, "<FILL_C>"), (4, "<FILL_D  see x>"), (6, "CHANGE-ME")]

    def test_more_than_three_are_counted(self) -> None:
        with pytest.raises(ConfigurationError) as caught:
            check_text("".join(f"V{number}=<FILL_{number}>\n" for number in range(5)), Path("mad.env"))
        assert caught.value.message.endswith("line 1: <FILL_0>; line 2: <FILL_1>; line 3: <FILL_2>; and 2 more")
        assert caught.value.where == "mad.env:1"


class TestSecrets:
    @pytest.mark.parametrize(
        "content",
        [
            f"export A_TOKEN=({SECRET}\n",
            f"export A_TOKEN={SECRET})\n",
            f"A_TOKEN= {SECRET}\n",
            f"A_TOKEN = {SECRET}\nexit 1",
            f"export A_TOKEN 'x-{SECRET}'\n",
            f'export A_TOKEN="{SECRET}\n',
            f"export A_TOKEN='{SECRET}\n)\n",
            f"export A_TOKEN={SECRET}\n$A_TOKEN\n",
            f"export A_TOKEN={SECRET}\nset -x\n: $A_TOKEN\nexit 1\n",
            f"export A_TOKEN={SECRET}\necho $A_TOKEN | base64 >&2; exit 1\n",
            f'export A_KEY="first line\n{SECRET}\nlast line\n";\necho "$A_KEY" >&2; exit 1\n',
        ],
    )
    def test_no_error_holds_one(self, write: Write, content: str) -> None:
        error = refusal(write(content))
        assert SECRET not in str(error)
        assert "CanaryCanary" not in repr(vars(error)) + repr(error.__context__) + repr(error.__cause__)
        assert "aGZfQ2FuYXJ5" not in str(error)

    def test_values_of_other_names_are_not_shown_either(self) -> None:
        message = "mad.env: line 3: `export PLAIN=some value)'"
        assert masked_message(message, "PLAIN=x\nexport PLAIN=some value)", {}) == "mad.env: line 3: `export PLAIN=***"

    def test_what_the_file_says_about_a_secret_stays_readable(self) -> None:
        text = "A_TOKEN=$(cat ~/.huggingface/token)\n"
        assert (
            masked_message("WARNING: ~/.huggingface/token is empty", text, {})
            == "WARNING: ~/.huggingface/token is empty"
        )

    def test_none_is_in_any_process_list_while_the_file_is_read(self, write: Write, tmp_path: Path) -> None:
        """All command lines of the machine are read again and again while bash and its children run."""
        seen: set[str] = set()
        stop = threading.Event()

        def watch() -> None:
            while not stop.is_set():
                for entry in Path("/proc").glob("[0-9]*/cmdline"):
                    try:
                        seen.add(entry.read_bytes().decode("utf-8", "replace"))
                    except OSError:
                        continue

        inherited = {"PATH": os.environ["PATH"], "MAD_SECRETS_GIVEN": f"{SECRET}-given"}
        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            loaded = load_env_file(write(f"A_TOKEN={SECRET}-own\nsleep 0.3\n"), environment=inherited)
        finally:
            stop.set()
            watcher.join()
        assert loaded == {"A_TOKEN": f"{SECRET}-own"}
        assert any(str(tmp_path) in line for line in seen), "bash was seen at work"
        assert not [line for line in seen if SECRET in line]


class TestRealTemplates:
    @staticmethod
    def templates(real_mad: Path) -> list[Path]:
        return sorted((real_mad / "env").glob("mad.env.*.template"))

    @staticmethod
    def inherited(tmp_path: Path) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}

    def test_unfilled_they_are_refused_and_nothing_is_written(self, real_mad: Path) -> None:
        templates = self.templates(real_mad)
        assert templates
        for template in templates:
            assert "<FILL_PATH_TO_MAD>" in refusal(template).message

    def test_filled_they_give_what_they_export(self, real_mad: Path, write: Write, tmp_path: Path) -> None:
        for template in self.templates(real_mad):
            path = write(re.sub(r"<FILL_\w+>", "/shared/x", template.read_text()))
            said: list[str] = []
            loaded = load_env_file(path, environment=self.inherited(tmp_path), notice=said.append)
            assert loaded["MODEL_DIR"] == "/shared/x/"
            assert loaded["HUGGINGFACE_HUB_CACHE"] == loaded["HF_HOME"] + "/hub"
            assert loaded["MAD_DATAHOME"].startswith("/shared/x/")
            assert loaded["BUILD_NUMBER"] == "0"
            assert loaded["MAD_SYSTEM_GPU_ARCHITECTURE"] in ("gfx942", "gfx950")
            assert loaded["MAD_SECRETS_HFTOKEN"] == ""
            assert said[0].startswith("WARNING: ~/.huggingface/token is missing or empty")

    def test_the_token_is_read_and_inherited_values_are_seen(
        self, real_mad: Path, write: Write, tmp_path: Path
    ) -> None:
        (tmp_path / ".huggingface").mkdir()
        (tmp_path / ".huggingface" / "token").write_text(f"{SECRET}\n")
        path = write(re.sub(r"<FILL_\w+>", "/shared/x", self.templates(real_mad)[0].read_text()))
        said: list[str] = []
        inherited = {**self.inherited(tmp_path), "BUILD_NUMBER": "42"}
        loaded = load_env_file(path, environment=inherited, notice=said.append)
        assert loaded["MAD_SECRETS_HFTOKEN"] == SECRET
        assert "BUILD_NUMBER" not in loaded
        assert said == []


def test_the_memory_files_are_closed(write: Write) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    load_env_file(write("A=1"))
    refusal(write("exit 3"))
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert module.DEFAULT_TIMEOUT > 1
