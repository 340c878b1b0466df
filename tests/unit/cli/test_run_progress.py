"""What a person sees while a model runs."""

from __future__ import annotations

import io
import sys
import threading
from pathlib import Path

import pytest
from tests.unit.execution.packages import package, spec

from madengine.cli import run_progress
from madengine.cli.run_progress import RunNarrator, RunProgress
from madengine.orchestration.report import FinishedRun
from madengine.verdict.evidence import Evidence, Outcome, Verdict


class Terminal(io.TextIOWrapper):
    """A standard error that is a terminal; ``shown`` is what it got, ``drawn`` waits for a text on it."""

    def __init__(self) -> None:
        self._bytes = io.BytesIO()
        super().__init__(self._bytes, encoding="utf-8", write_through=True)
        self._changed = threading.Condition()

    def isatty(self) -> bool:
        return True

    def flush(self) -> None:
        super().flush()
        with self._changed:
            self._changed.notify_all()

    @property
    def taken(self) -> bytes:
        return self._bytes.getvalue()

    @property
    def shown(self) -> str:
        return self.taken.decode()

    def drawn(self, text: str) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: text in self.shown, timeout=10)


def open_terminal(monkeypatch: pytest.MonkeyPatch, **variables: str) -> Terminal:
    """Called in the test itself: pytest gives each of its phases a standard error of its own."""
    fake = Terminal()
    monkeypatch.setattr(sys, "stderr", fake)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(run_progress, "TICK", 0.01)
    return fake


def test_the_narrator_says_what_begins_how_it_ends_and_that_it_is_being_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, narrator = spec(package(tmp_path)), RunNarrator()
    narrator.started(1, 2, one)
    narrator.interrupted(one)
    narrator.ended(1, 2, FinishedRun(one, Evidence("run-1"), Verdict(Outcome.FAILURE, "why"), (), 61.0))
    assert capsys.readouterr().err.splitlines() == [
        "run 1/2 m/model",
        "interrupted: ending m/model (Ctrl-C 2 times more: do not wait for it)",
        "run 1/2 m/model: FAILURE in 1 min 01 s",
    ]


@pytest.mark.parametrize(
    ("verbose", "expected"),
    [(False, ["  image img:1"]), (True, ["  workspace", "  image img:1", "  a remark"])],
)
def test_without_a_terminal_only_what_may_take_minutes_is_told_unless_one_asks(
    capsys: pytest.CaptureFixture[str], verbose: bool, expected: list[str]
) -> None:
    progress = RunProgress(verbose=verbose)
    progress.phase("workspace")
    progress.phase("image img:1")
    progress.output(b"from the model\n")
    progress.note("a remark")
    progress.phase("")
    shown = capsys.readouterr()
    assert (shown.err.splitlines(), shown.out) == (expected, "")


def test_live_output_is_shown_byte_for_byte_as_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    progress = RunProgress(live=True)
    progress.phase("model")
    progress.output(b"\xff\xc3\xa4 50 %\r")
    assert terminal.taken == b"\xff\xc3\xa4 50 %\r"
    progress.phase("")


def test_on_a_terminal_one_line_moves_and_is_gone_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    progress = RunProgress()
    progress.phase("model")
    progress.output(b"first\nstep 1\tof 2")
    assert terminal.drawn("\r\x1b[K  model 0 s  step 1 of 2")
    progress.output(b"\nnext \x1b[31m")
    assert terminal.drawn(r"next \x1b[31m")
    progress.phase("results")
    assert terminal.drawn("  results ")
    progress.phase("")
    assert terminal.shown.endswith("\r\x1b[K")
    assert "\n" not in terminal.shown


def test_a_line_is_no_longer_than_the_terminal_and_no_memory_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    progress = RunProgress()
    progress.phase("model")
    progress.output(b"x" * 1_000_000)
    assert terminal.drawn("xxx")
    progress.phase("")
    assert max(len(line) for line in terminal.shown.split("\r\x1b[K")) < 200
    assert len(progress._last_line) <= 400


def test_output_of_nothing_leaves_the_line_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    open_terminal(monkeypatch)
    progress = RunProgress()
    progress.output(b"")
    assert progress._last_line == b""


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_that_wants_no_escapes_gets_none(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    terminal = open_terminal(monkeypatch, **variables)
    progress = RunProgress(verbose=True)
    progress.phase("model")
    progress.phase("")
    assert terminal.shown == "  model\n"


def test_a_run_that_never_began_leaves_nothing_on_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = open_terminal(monkeypatch)
    RunProgress().phase("")
    assert terminal.shown == "\r\x1b[K"
