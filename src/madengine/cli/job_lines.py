"""Jobs of a scheduler as lines of text: one when something changes, none while nothing does."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from madengine.cli import views
from madengine.deployment.base import Progress
from madengine.execution.spec import RunSpec

REPEAT = 60.0  # seconds after which a remark is told again whose numbers alone have changed
_NUMBER = re.compile(r"\d+")

Runs = Sequence[tuple[RunSpec, Progress]]


@dataclass(frozen=True)
class _Told:
    progress: Progress
    at: float


class JobLines:
    """Remembers what was told of each run. ``clock`` gives seconds that never jump."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._told: dict[str, _Told] = {}

    def news(self, runs: Runs) -> list[str]:
        """A line for each run whose state, nodes or remark differ from what was told last.

        A remark that several runs get at once, such as that the scheduler does not answer, is one line.
        """
        changed: list[tuple[RunSpec, Progress]] = []
        remarked: dict[str, list[tuple[RunSpec, Progress]]] = {}
        for spec, progress in runs:
            told = self._told.get(spec.run_id)
            if not self._is_news(told, progress):
                continue
            alike = told is not None and progress.remark and _place(told.progress) == _place(progress)
            (remarked.setdefault(progress.remark, []) if alike else changed).append((spec, progress))
            self._told[spec.run_id] = _Told(progress, self._clock())
        return [*(job_line(spec, progress) for spec, progress in changed), *_remarks(remarked)]

    def _is_news(self, told: _Told | None, progress: Progress) -> bool:
        if told is None:
            return bool(progress.state or progress.remark)
        before = told.progress
        if _place(before) != _place(progress) or _wording(before.remark) != _wording(progress.remark):
            return True
        return before.remark != progress.remark and self._clock() - told.at >= REPEAT


def job_line(spec: RunSpec, progress: Progress) -> str:
    """One run: ``job 4711 llama: RUNNING on node[1-2]``."""
    job = f"job {progress.job} " if progress.job else ""
    return views.printable(f"{job}{spec.card.name}: {_standing(progress)}", keep="")


def _standing(progress: Progress) -> str:
    where = f"{progress.state} on {progress.nodes}" if progress.nodes else progress.state
    if not (where and progress.remark):
        return where or progress.remark
    return f"{where}: {progress.remark}" if "(" in progress.remark else f"{where} ({progress.remark})"


def _remarks(remarked: dict[str, list[tuple[RunSpec, Progress]]]) -> Iterator[str]:
    for remark, runs in remarked.items():
        if len(runs) == 1:
            yield job_line(*runs[0])
        else:
            states = {progress.state for _, progress in runs}
            shared = Progress(state=states.pop() if len(states) == 1 else "", remark=remark)
            yield views.printable(f"{len(runs)} jobs: {_standing(shared)}", keep="")


def _place(progress: Progress) -> tuple[str, str, str]:
    return progress.job, progress.state, progress.nodes


def _wording(remark: str) -> str:
    """A remark without its numbers, which may change at every look."""
    return _NUMBER.sub("#", remark)
