"""What a person is told of runs that a scheduler has: a live table on a terminal, a line per change elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from madengine.cli import views
from madengine.cli.job_lines import JobLines, Runs
from madengine.cli.job_table import JobRow, Screen
from madengine.cli.run_view import seconds
from madengine.deployment.base import Progress
from madengine.execution.spec import RunSpec
from madengine.orchestration.report import FinishedRun
from madengine.orchestration.run import GIVE_UP

SUBMITTING = Progress(state="submitting")


class JobNarrator:
    """Tells of all runs that are under way (``orchestration.report.Narrator``), on standard error."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lines = JobLines(clock)
        self._screen = Screen() if sys.stderr.isatty() and views.wants_colour(sys.stderr) else None
        self._runs: dict[str, tuple[RunSpec, Progress]] = {}
        self._aged: dict[str, tuple[float | None, float]] = {}
        self._hinted = False

    def started(self, number: int, total: int, spec: RunSpec) -> None:
        """That it is being submitted."""
        if self._screen is None:
            views.say(views.printable(f"run {number}/{total} {spec.card.name}", keep=""))
        else:
            self._runs[spec.run_id] = (spec, SUBMITTING)
            self._draw(self._screen)

    def progress(self, runs: Runs) -> None:
        """Where all of them stand."""
        if self._screen is None:
            for line in self._lines.news(runs):
                views.say(line)
        else:
            self._runs = {spec.run_id: (spec, progress) for spec, progress in runs}
            self._draw(self._screen)

    def interrupted(self, spec: RunSpec) -> None:
        """That it is being cancelled, and how not to wait for that."""
        hint = "" if self._hinted else f" (Ctrl-C {GIVE_UP - 1} times more: do not wait for it)"
        self._hinted = True
        self._say(f"interrupted: cancelling {spec.card.name}{hint}")

    def ended(self, number: int, total: int, run: FinishedRun) -> None:
        """What it came to."""
        self._runs.pop(run.spec.run_id, None)
        job = f" (job {run.job})" if run.job else ""
        outcome, took = run.verdict.outcome.value, seconds(run.duration)
        self._say(f"run {number}/{total} {run.spec.card.name}: {outcome} in {took}{job}")

    def _say(self, text: str) -> None:
        line = views.printable(text, keep="")
        if self._screen is None:
            views.say(line)
        else:
            self._screen.say(line)
            self._draw(self._screen)

    def _draw(self, screen: Screen) -> None:
        screen.draw([self._row(spec, progress) for spec, progress in self._runs.values()])

    def _row(self, spec: RunSpec, seen: Progress) -> JobRow:
        return JobRow(spec.card.name, seen.job, seen.state, seen.nodes, self._age(spec.run_id, seen), seen.remark)

    def _age(self, run_id: str, seen: Progress) -> float | None:
        """The age of a run now: a scheduler is asked more seldom than the table is drawn."""
        before, at = self._aged.get(run_id, (None, 0.0))
        if seen.elapsed is None or seen.elapsed != before:
            self._aged[run_id] = seen.elapsed, self._clock()
            return seen.elapsed
        return seen.elapsed + round(self._clock() - at)
