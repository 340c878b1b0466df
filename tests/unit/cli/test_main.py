"""The entry point: exit codes, cheap start-up, errors in a sentence."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from madengine import __version__
from madengine.cli import main as entry
from madengine.cli.main import COMMANDS, main
from madengine.core.errors import BuildError, ConfigurationError, ExecutionError, MADEngineError


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"madengine {__version__}\n"


def test_help_names_every_command_and_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in COMMANDS)
    assert "5 nothing was measured" in shown


def test_no_arguments_show_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    captured = capsys.readouterr()
    assert "Usage: madengine" in captured.out + captured.err


@pytest.mark.parametrize("words", [["--no-such"], ["nonsense"], ["run", "--no-such"], ["run", "--engine", "lxc"]])
def test_usage_errors_exit_4(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 4
    assert "error: " in capsys.readouterr().err


def test_a_mistyped_command_is_answered_with_the_closest_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["discovr"]) == 4
    assert "did you mean 'discover'?" in capsys.readouterr().err


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_that_says_what_it_does(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    assert f"Usage: madengine {name}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("error", "code", "shown"),
    [
        (ConfigurationError("bad", where="f.json:3", hint="do this"), 4, "error: f.json:3: bad (do this)"),
        (BuildError("no"), 2, "error: no"),
        (ExecutionError("no"), 3, "error: no"),
        (MADEngineError("no"), 1, "error: no"),
        (KeyboardInterrupt(), 130, "error: interrupted"),
        (RuntimeError("boom"), 1, "unexpected RuntimeError: boom"),
    ],
)
def test_an_error_is_one_sentence_and_an_exit_code(
    error: BaseException, code: int, shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _command_that_raises(error, monkeypatch)
    assert main(["run"]) == code
    captured = capsys.readouterr().err
    assert shown in captured
    assert "Traceback" not in captured


def test_a_defect_shows_its_traceback_on_request_without_secrets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MAD_DEBUG", "1")
    monkeypatch.setenv("MAD_SECRETS_TOKEN", "canary-4711-secret")
    _command_that_raises(RuntimeError("token canary-4711-secret"), monkeypatch)
    assert main(["run"]) == 1
    captured = capsys.readouterr().err
    assert "Traceback" in captured
    assert "canary-4711-secret" not in captured


class Panic(BaseException):
    """What a library in another language makes of an interruption."""


@pytest.mark.parametrize("answer", [Panic("called `Result::unwrap()` on an `Err` value"), ImportError("half a module")])
def test_whatever_comes_of_an_interruption_is_an_interruption(
    answer: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command()
    def broken() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise answer from None

    monkeypatch.setattr(entry, "_load", lambda _: broken)
    assert main(["run"]) == 130
    assert capsys.readouterr().err == "error: interrupted\n"


def test_an_error_in_answer_to_an_interruption_is_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command()
    def broken() -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise RuntimeError("a defect")  # noqa: B904 - as it happens by chance

    monkeypatch.setattr(entry, "_load", lambda _: broken)
    assert main(["run"]) == 130
    assert capsys.readouterr().err == "error: interrupted\n"


def test_what_is_no_exception_and_no_interruption_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    _command_that_raises(Panic("x"), monkeypatch)
    with pytest.raises(Panic):
        main(["run"])


BEGUN = re.compile(r", in (main|_prepared|_guarded)$", re.M)
START = """
import sys
from madengine.cli.main import console
sys.stderr.write("\\n")
sys.stderr.flush()
console()
"""


@pytest.mark.parametrize("words", [("run", "--engine", "host", "--tags", "m", "--dry-run"), ("discover",)])
def test_a_ctrl_c_at_any_moment_of_a_start_is_one_sentence(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "m.sh").write_text("")
    (tmp_path / "models.json").write_text('[{"name": "m", "scripts": "m.sh", "n_gpus": "0"}]')
    interrupted = 0
    # Without coverage, whose saving at the end would be what is interrupted.
    bare = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    for step in range(12):
        process = subprocess.Popen(
            [sys.executable, "-c", START, *words],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            cwd=tmp_path,
            env=bare,
        )
        assert process.stderr is not None
        with process:
            process.stderr.readline()
            time.sleep(step * step * 0.001)
            process.send_signal(signal.SIGINT)
            said = process.stderr.read().decode()
        if process.returncode == -signal.SIGINT and not BEGUN.search(said):
            continue  # it came before the command's first statement
        assert process.returncode in (0, 130), said
        assert "Traceback" not in said
        assert said.count("interrupted") == (process.returncode == 130)
        interrupted += process.returncode == 130
    assert interrupted


def test_a_ctrl_c_before_the_command_listens_waits_for_the_imports_and_then_counts(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "from madengine.cli import main as entry\n"
        "def find_spec(*_):\n"
        "    del sys.meta_path[0]\n"
        "    os.kill(os.getpid(), signal.SIGINT)  # in the middle of the first import\n"
        "    print('held back')\n"
        "sys.meta_path.insert(0, type('Finder', (), {'find_spec': staticmethod(find_spec)}))\n"
        "entry.console()"
    )
    words = [sys.executable, "-c", code, "discover"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (130, "held back\n", "error: interrupted\n")


def _command_that_raises(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def broken() -> None:
        raise error

    monkeypatch.setattr(entry, "_load", lambda _: broken)


ALLOWED = {"click", "madengine", "madengine.cli", "madengine.cli.constants", "madengine.cli.main"}
ALLOWED |= {"madengine.cli.views", "madengine.core", "madengine.core.errors", "madengine.core.interruptions"}


def test_help_imports_only_what_it_needs(tmp_path: Path) -> None:
    """Start-up time held by what is imported, not by a clock."""
    code = (
        "import sys; before = set(sys.modules)\n"
        "from madengine.cli.main import main\n"
        "code = main(['--help'])\n"
        "new = set(sys.modules) - before\n"
        "print('\\n'.join(sorted(n for n in new if n.split('.')[0] not in sys.stdlib_module_names)), file=sys.stderr)\n"
        "sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    imported = {name for name in done.stderr.split() if not name.startswith("click.")}
    assert imported - {"_distutils_hack"} <= ALLOWED


HEAVY = ("rich", "jsonschema_rs", "json", "subprocess", "asyncio", "http", "urllib.request", "unittest", "yaml")


def test_version_imports_next_to_nothing(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom madengine.cli.main import main\nmain(['--version'])\n"
        f"print([name for name in {(*HEAVY, 'click')!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stderr.strip() == "[]"


def test_a_reader_that_goes_away_is_not_an_error_message() -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m madengine --help | head -n 1; exit ${{PIPESTATUS[0]}}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
