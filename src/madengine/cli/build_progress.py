"""What a person sees while images are built: a moving line on a terminal, one line per change elsewhere."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from madengine.cli import views
from madengine.orchestration.image_plan import Fate

if TYPE_CHECKING:
    from rich.progress import Progress


class BuildProgress:
    """Watches a build (``orchestration.build.BuildView``) and narrates on standard error."""

    def __init__(self, *, live: bool = False) -> None:
        self._live = live
        self._bar: Progress | None = None

    def say(self, text: str) -> None:
        views.say(text)

    def warn(self, text: str) -> None:
        views.warn(text)

    def started(self, number: int, total: int, image: str) -> None:
        if not self._live and sys.stderr.isatty() and views.wants_colour(sys.stderr):
            self._bar = _moving_line(f"building {number}/{total} {image}")
        else:
            views.say(f"building {number}/{total} {image}")

    def finished(self, number: int, total: int, image: str, seconds: float, error: str) -> None:
        self.close()
        word = "built" if not error else error if error == Fate.INTERRUPTED.value else "failed"
        views.say(f"{word} {number}/{total} {image} after {seconds:.1f} s")

    def output(self, chunk: bytes) -> None:
        if self._live:
            views.narrate(chunk)

    def close(self) -> None:
        """End the moving line, if there is one. Safe to call twice."""
        if self._bar is not None:
            with suppress(OSError):  # of a terminal that was closed
                self._bar.stop()
            self._bar = None


def _moving_line(text: str) -> Progress:
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    bar.add_task(text, total=None)
    bar.start()
    return bar
