"""What a person sees while images are built."""

from __future__ import annotations

import sys

import pytest

from madengine.cli.build_progress import BuildProgress


def test_elsewhere_than_on_a_terminal_each_change_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    progress = BuildProgress()
    progress.started(1, 2, "ci-a")
    progress.output(b"layer\n")
    progress.finished(1, 2, "ci-a", 12.34, "")
    progress.finished(2, 2, "ci-b", 1.0, "no such file")
    shown = capfd.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines() == [
        "building 1/2 ci-a",
        "built 1/2 ci-a after 12.3 s",
        "failed 2/2 ci-b after 1.0 s",
    ]


def test_live_output_goes_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    progress = BuildProgress(live=True)
    progress.say("a")
    progress.output("lÄyer\n".encode())
    progress.warn("b")
    assert capfd.readouterr().err == "a\nlÄyer\nwarning: b\n"


def test_on_a_terminal_a_line_moves_and_is_taken_away(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    progress = BuildProgress()
    progress.started(1, 1, "ci-[bold]a")
    assert progress._bar is not None
    progress.close()
    progress.close()
    assert progress._bar is None
    progress.finished(1, 1, "ci-a", 1.0, "")
    assert "built 1/1 ci-a after 1.0 s" in capfd.readouterr().err
