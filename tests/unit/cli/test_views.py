"""Tables and remarks: plain where no terminal is, safe everywhere."""

from __future__ import annotations

import errno
import io
import json
import os
import sys
from pathlib import Path

import pytest

from madengine.cli import views


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def no_colour_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("variables", "terminal", "wanted"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, True, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
    ],
)
def test_colour_is_for_terminals_that_want_it(
    variables: dict[str, str], terminal: bool, wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert views.wants_colour(Terminal() if terminal else io.StringIO()) is wanted


def test_a_table_in_a_pipe_is_aligned_plain_text(capsys: pytest.CaptureFixture[str]) -> None:
    views.table(("model", "status"), [["a", "SUCCESS"], ["longer", "FAILURE"]])
    assert capsys.readouterr().out == "model   status\na       SUCCESS\nlonger  FAILURE\n"


def test_a_table_on_a_terminal_holds_the_same_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    views.table(("model", "status"), [["[bold]x[/bold]", "SUCCESS"]], styles=("bold",))
    assert "[bold]x[/bold]" in screen.getvalue()
    assert "SUCCESS" in screen.getvalue()


@pytest.mark.parametrize("text", ["\x1b[2J", "a\rb", "\x07", "\ud800", "\u202e"])
def test_a_name_cannot_drive_the_terminal(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    views.say(text)
    views.table(("a",), [[text]])
    captured = capsys.readouterr()
    assert text not in captured.out + captured.err


def test_remarks_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    views.say("one")
    views.warn("two")
    views.fail("three")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "one\nwarning: two\nerror: three\n"


def test_json_is_one_ascii_object(capsys: pytest.CaptureFixture[str]) -> None:
    views.print_json({"a": "\u00fc\ud800"})
    shown = capsys.readouterr().out
    assert shown.isascii()
    assert json.loads(shown) == {"a": "\u00fc\ud800"}


def test_a_cell_never_breaks_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    views.table(("a", "b"), [["x\ny", "\t"]])
    assert capsys.readouterr().out == "a     b\nx\\ny  \\t\n"


def test_a_whole_table_keeps_a_path_in_one_piece_on_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    path = "runs/20261201T000000Z-a-long-name-0123ab/logs/run.log"
    shown = {}
    for whole in (True, False):
        screen = Terminal()
        monkeypatch.setattr(sys, "stdout", screen)
        views.table(("model", "log"), [["model", path]], whole=whole)
        shown[whole] = path in screen.getvalue()
    assert shown == {True: True, False: False}


def test_the_word_of_an_outcome_has_its_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    views.verdict("FAILURE", "model: it failed")
    assert screen.getvalue() == "\x1b[31mFAILURE:\x1b[0m model: it failed\n"


class Gone(io.StringIO):
    """A stream that can take nothing any more."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.tries, self._number = 0, number

    def write(self, text: str) -> int:
        self.tries += 1
        raise OSError(self._number, os.strerror(self._number))


@pytest.mark.parametrize("number", [errno.EIO, errno.EPIPE, errno.ENOSPC])
def test_a_remark_that_nobody_can_be_told_breaks_nothing_off(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = Gone(number)
    monkeypatch.setattr(sys, "stderr", gone)
    views.say("x")
    views.fail("x")
    assert gone.tries == 2


def test_without_any_standard_error_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    views.say("x")
    assert capsys.readouterr().out == ""


def test_a_pipe_whose_reader_went_away_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", buffering=1) as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        views.say("x")
        assert Path(f"/proc/self/fd/{writing}").readlink() == Path(os.devnull)
        views.narrate(b"y")


@pytest.mark.parametrize(
    ("code", "lost", "shown"), [(0, None, 0), (130, None, 130), (0, errno.EIO, 1), (130, errno.EIO, 130)]
)
def test_what_is_on_record_keeps_its_exit_code_where_it_cannot_be_shown(
    code: int, lost: int | None, shown: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def show() -> None:
        if lost:
            raise OSError(lost, os.strerror(lost))

    assert views.show_done(code, show) == shown
    assert ("cannot be written: Input/output error" in capsys.readouterr().err) is bool(lost)


def test_an_error_about_a_file_is_not_taken_for_lost_output() -> None:
    def show() -> None:
        raise FileNotFoundError(errno.ENOENT, "no such file", "a")

    with pytest.raises(FileNotFoundError):
        views.show_done(0, show)
