"""The runs of one command on their way: which wait, which are under way, which have their verdict.

A run that goes wrong in a way that nobody foresaw is that run's evidence: it takes nothing from the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from madengine.core.errors import MADEngineError
from madengine.core.redact import Redactor
from madengine.deployment.base import Handle, Observed, Progress, RunState, Target
from madengine.execution.spec import RunSpec
from madengine.orchestration.report import (
    NOTHING_OBSERVED,
    NOTHING_SEEN,
    FinishedRun,
    LeftRun,
    Narrator,
    Recorder,
    RunReport,
)
from madengine.verdict.evidence import Evidence, Interruption, InterruptionKind, NodeReport
from madengine.verdict.judge import judge

NOT_WAITED_FOR = "cancelled and not waited for: what it started may still run"


@dataclass
class _Run:
    """A submitted run as it was last seen. ``ending``: it is to end; ``trouble``: why it could not be told so yet."""

    number: int
    spec: RunSpec
    handle: Handle
    progress: Progress = NOTHING_SEEN
    ending: bool = False
    trouble: str = ""


class Flight:
    """All runs of one command, begun in the order of their specs; numbers count from 1."""

    def __init__(self, specs: Sequence[RunSpec], target: Target, recorder: Recorder, narrator: Narrator) -> None:
        self._specs, self._target, self._recorder, self._narrator = specs, target, recorder, narrator
        self._begun = 0
        self._finished: dict[int, FinishedRun] = {}
        self._left: list[LeftRun] = []
        self._under_way: list[_Run] = []

    @property
    def under_way(self) -> int:
        """How many runs were submitted and have no verdict yet."""
        return len(self._under_way)

    def begin(self, *, behind: int = 0) -> bool:
        """Submit the next run; whether there was one. One that does not run has its verdict at once.

        ``behind`` is the number of runs under way behind which it waits for its turn; 0 when it waits for none.
        """
        if self._begun == len(self._specs):
            return False
        spec = self._specs[self._begun]
        self._begun += 1
        self._narrator.started(self._begun, len(self._specs), spec)
        self._recorder.opened(spec)
        if spec.skip:
            self._close(self._begun, spec, Evidence(spec.run_id, skipped=spec.skip))
        elif spec.refusal:
            self._close(self._begun, spec, _refused(spec, spec.refusal))
        else:
            self._submit(spec, behind)
        return True

    def adopt(self, number: int, spec: RunSpec, handle: Handle) -> None:
        """Follow a run that somebody submitted before."""
        self._begun = max(self._begun, number)
        self._under_way.append(_Run(number, spec, handle))

    def look(self, patience: float) -> None:
        """Look at all runs under way, wait up to ``patience`` seconds for a change, and record those that ended."""
        if not self._under_way:
            return
        handles = [run.handle for run in self._under_way]
        states = self._target.poll(handles, patience)
        seen = self._target.progress(handles)
        for run in self._under_way:
            run.progress = seen.get(run.handle.run_id, run.progress)
        self._narrator.progress([(run.spec, run.progress) for run in self._under_way])
        for run in [run for run in self._under_way if states[run.handle.run_id] is RunState.ENDED]:
            self._under_way.remove(run)
            self._close(run.number, run.spec, *self._collected(run), run.progress.job)

    def cancel(self) -> None:
        """Tell each run under way to end: once, and again while it cannot be told."""
        for run in self._under_way:
            if not run.ending:
                self._narrator.interrupted(run.spec)
            if not run.ending or run.trouble:
                run.ending, run.trouble = True, self._cancelled(run)

    def leave(self) -> None:
        """Wait for nothing. What a remote target carries on stays open, the rest is recorded as cancelled."""
        left, self._under_way = self._under_way, []
        for run in left:
            if self._target.remote:
                self._left.append(LeftRun(run.spec, run.progress))
            else:
                cancelled = Interruption(InterruptionKind.CANCELLED, NOT_WAITED_FOR)
                self._close(run.number, run.spec, Evidence(run.spec.run_id, interruption=cancelled))
        self._narrator.progress([])

    def report(self, *, interrupted: bool) -> RunReport:
        """What they came to so far."""
        finished = tuple(self._finished[number] for number in sorted(self._finished))
        rest = tuple(spec.card.name for spec in self._specs[self._begun :])
        return RunReport(finished, rest, interrupted, tuple(self._left))

    def _submit(self, spec: RunSpec, behind: int) -> None:
        after = self._under_way[-behind].handle if 0 < behind <= len(self._under_way) else None
        try:
            handle = self._target.submit(spec, self._target.render(spec), after)
        except Exception as error:
            self._close(self._begun, spec, _refused(spec, _told(spec, error)))
        else:
            self._under_way.append(_Run(self._begun, spec, handle))

    def _cancelled(self, run: _Run) -> str:
        """What kept the run from being told to end."""
        try:
            self._target.cancel(run.handle)
        except Exception as error:
            return f"it could not be cancelled: {_told(run.spec, error)}"
        return ""

    def _collected(self, run: _Run) -> tuple[Evidence, Observed]:
        """What was seen of an ended run; what cannot be read is evidence too."""
        notes = [run.trouble] if run.trouble else []
        observed = NOTHING_OBSERVED
        try:
            evidence = self._target.collect(run.handle)
        except Exception as error:
            lost = f"what the run left cannot be read: {_told(run.spec, error)}"
            evidence = Evidence(run.spec.run_id, nodes=(NodeReport(0, detail=lost),))
        try:
            observed = self._target.observed(run.handle)
        except Exception as error:
            notes.append(f"where it ran, and for how long, cannot be read: {_told(run.spec, error)}")
        if observed.duration is None:
            observed = replace(observed, duration=run.progress.elapsed)
        return replace(evidence, notes=(*evidence.notes, *notes)), observed

    def _close(
        self, number: int, spec: RunSpec, evidence: Evidence, observed: Observed = NOTHING_OBSERVED, job: str = ""
    ) -> None:
        finished = self._recorder.closed(spec, evidence, judge(evidence), observed)
        finished = replace(finished, job=finished.job or job)
        self._finished[number] = finished
        self._narrator.ended(number, len(self._specs), finished)


def _refused(spec: RunSpec, reason: str) -> Evidence:
    return Evidence(spec.run_id, interruption=Interruption(InterruptionKind.REFUSED, reason))


def _told(spec: RunSpec, error: Exception) -> str:
    """An error as a sentence of its run, without secrets; one that nobody foresaw is said to be ours."""
    foreseen = isinstance(error, (MADEngineError, OSError))
    text = str(error) if foreseen else f"madengine itself failed: {type(error).__name__}: {error}"
    return Redactor(spec.hidden).text(text)
