"""What a person sees while a model runs: a moving line on a terminal, a line per change elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence

from madengine.cli import views
from madengine.cli.run_view import seconds
from madengine.deployment.base import Progress
from madengine.execution.spec import RunSpec
from madengine.orchestration.report import FinishedRun
from madengine.orchestration.run import GIVE_UP

TICK = 1.0  # seconds between two updates of the moving line
ALWAYS_TOLD = ("image",)  # steps that may take minutes before a model starts


class RunNarrator:
    """One line when a run begins, one when it has its verdict (``orchestration.report.Narrator``)."""

    def started(self, number: int, total: int, spec: RunSpec) -> None:
        """Which run begins."""
        views.say(f"run {number}/{total} {spec.card.name}")

    def progress(self, runs: Sequence[tuple[RunSpec, Progress]]) -> None:
        """Nothing: a run on this machine has an observer, which tells more."""

    def interrupted(self, spec: RunSpec) -> None:
        """That it is being ended, which may take a while, and how not to wait."""
        views.say(f"interrupted: ending {spec.card.name} (Ctrl-C {GIVE_UP - 1} times more: do not wait for it)")

    def ended(self, number: int, total: int, run: FinishedRun) -> None:
        """What it came to."""
        views.say(f"run {number}/{total} {run.spec.card.name}: {run.verdict.outcome.value} in {seconds(run.duration)}")


class RunProgress:
    """Watches one run (``execution.runner.Observer``) and narrates on standard error.

    With ``live`` the model's own output is shown as it comes; the moving line would tear it, so there is none then.
    """

    def __init__(self, *, live: bool = False, verbose: bool = False) -> None:
        self._live = live
        self._verbose = verbose
        self._moving = not live and sys.stderr.isatty() and views.wants_colour(sys.stderr)
        self._started = time.monotonic()
        self._phase = ""
        self._last_line = self._unfinished = b""
        self._ended = threading.Event()
        self._ticker: threading.Thread | None = None

    def phase(self, name: str) -> None:
        """A new step of the run begins; an empty name means that the run has ended."""
        self._phase = name
        if self._moving:
            self._move(bool(name))
        elif name and (self._verbose or name.startswith(ALWAYS_TOLD)):
            views.say(f"  {name}")

    def output(self, chunk: bytes) -> None:
        """What the model prints."""
        if self._live:
            views.narrate(chunk)
        elif self._moving:
            self._last_line, self._unfinished = last_line(self._unfinished, chunk)

    def note(self, text: str) -> None:
        """A remark on the run."""
        if self._verbose:
            views.say(f"  {text}")

    def _move(self, going_on: bool) -> None:
        if going_on and self._ticker is None:
            self._ticker = threading.Thread(target=self._tick, daemon=True)
            self._ticker.start()
        elif not going_on:
            self._ended.set()
            if self._ticker is not None:
                self._ticker.join()
            _clear_line()

    def _tick(self) -> None:
        while not self._ended.is_set():
            elapsed = time.monotonic() - self._started
            last = views.printable(self._last_line.decode(errors="replace").strip().replace("\t", " "))
            _draw_line(f"  {self._phase} {elapsed:.0f} s  {last}")
            self._ended.wait(TICK)


def last_line(unfinished: bytes, chunk: bytes) -> tuple[bytes, bytes]:
    """The last line after another chunk of output, shortened, and what of it the next chunk goes on from."""
    text = unfinished + chunk[-4096:]
    lines = text.splitlines()
    last = lines[-1][-400:] if lines else b""
    return last, b"" if text.endswith((b"\n", b"\r")) else last


def _draw_line(text: str) -> None:
    import shutil

    width = shutil.get_terminal_size().columns - 1
    views.narrate(f"\r\x1b[K{text[:width]}")


def _clear_line() -> None:
    views.narrate("\r\x1b[K")
