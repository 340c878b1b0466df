"""The story of a run: check, submit, wait, collect, judge, record - one model after the other.

Each run's rows are written as soon as it is judged, so that whatever happens later takes nothing away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from madengine.core.errors import ConfigurationError
from madengine.core.interruptions import IMPATIENT, Interruptions
from madengine.deployment.base import RunState, Target
from madengine.execution.spec import RunSpec
from madengine.verdict.evidence import Evidence, Interruption, InterruptionKind, Verdict
from madengine.verdict.judge import judge

PATIENCE = 0.5  # seconds between two looks at a run
GIVE_UP = IMPATIENT  # times Ctrl-C after which a run that does not end is left behind


@dataclass(frozen=True)
class FinishedRun:
    """One run with what was seen of it and what it may say about itself.

    ``rows`` are its rows of perf.csv, ``saved`` says whether they are in it. ``duration`` is in seconds.
    """

    spec: RunSpec
    evidence: Evidence
    verdict: Verdict
    rows: tuple[dict[str, str], ...]
    duration: float
    saved: bool = True


@dataclass(frozen=True)
class RunReport:
    """Everything that one command ran. ``not_started`` are models that an interruption left untouched."""

    runs: tuple[FinishedRun, ...]
    not_started: tuple[str, ...] = ()
    interrupted: bool = False

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts in the order of the runs."""
        return tuple(run.verdict for run in self.runs)


class Recorder(Protocol):
    """Keeps what happened: provenance, rows, leftovers. What cannot be written is its problem, not an exception."""

    def opened(self, spec: RunSpec) -> None:
        """A run is about to start."""

    def closed(self, spec: RunSpec, evidence: Evidence, verdict: Verdict) -> FinishedRun:
        """A run has its verdict: write its rows and its record."""


class Narrator(Protocol):
    """Tells a person how the runs go."""

    def started(self, number: int, total: int, spec: RunSpec) -> None:
        """The ``number``-th of ``total`` runs begins."""

    def interrupted(self, spec: RunSpec) -> None:
        """The user wants to stop; the run is being ended."""

    def ended(self, number: int, total: int, run: FinishedRun) -> None:
        """It has its verdict."""


def check_all(target: Target, specs: Sequence[RunSpec]) -> None:
    """Raise ``ConfigurationError`` with every problem that would make these runs fail; nothing was started."""
    problems = target.check(specs)
    if problems:
        lines = [f"{problem.message} ({problem.remedy})" if problem.remedy else problem.message for problem in problems]
        raise ConfigurationError("; ".join(lines))


def run_all(
    specs: Sequence[RunSpec], target: Target, recorder: Recorder, narrator: Narrator, interruptions: Interruptions
) -> RunReport:
    """Run the specs one after the other.

    The caller counts ``interruptions``: one ends the run that is under way, which is recorded, and leaves the rest
    untouched.
    """
    finished: list[FinishedRun] = []
    for number, spec in enumerate(specs, start=1):
        if interruptions.count:
            break
        narrator.started(number, len(specs), spec)
        recorder.opened(spec)
        evidence = _evidence_of(spec, target, narrator, interruptions)
        run = recorder.closed(spec, evidence, judge(evidence))
        finished.append(run)
        narrator.ended(number, len(specs), run)
    rest = tuple(later.card.name for later in specs[len(finished) :])
    return RunReport(tuple(finished), rest, interrupted=interruptions.count > 0)


def record_broken_off(
    specs: Sequence[RunSpec], fates: Mapping[str, Interruption], recorder: Recorder, narrator: Narrator
) -> RunReport:
    """What is left when the builds before the runs were interrupted: nothing runs.

    ``fates`` are, by key, the models whose build came to a bad end, by the interruption or before it. They leave rows;
    the others were not started.
    """
    finished: list[FinishedRun] = []
    for number, spec in enumerate(specs, start=1):
        if spec.key in fates:
            recorder.opened(spec)
            evidence = Evidence(spec.run_id, interruption=fates[spec.key])
            finished.append(recorder.closed(spec, evidence, judge(evidence)))
            narrator.ended(number, len(specs), finished[-1])
    rest = dict.fromkeys(spec.card.name for spec in specs if spec.key not in fates)
    return RunReport(tuple(finished), tuple(rest), interrupted=True)


def _evidence_of(spec: RunSpec, target: Target, narrator: Narrator, interruptions: Interruptions) -> Evidence:
    """What was seen of one run."""
    if spec.skip:
        return Evidence(spec.run_id, skipped=spec.skip)
    if spec.refusal:
        return Evidence(spec.run_id, interruption=Interruption(InterruptionKind.REFUSED, spec.refusal))
    handle = target.submit(spec, target.render(spec))
    cancelled = False
    while target.poll([handle], PATIENCE)[handle.run_id] is not RunState.ENDED:
        if interruptions.impatience >= GIVE_UP:
            left = "cancelled and not waited for: what it started may still run"
            return Evidence(spec.run_id, interruption=Interruption(InterruptionKind.CANCELLED, left))
        if interruptions.count and not cancelled:
            narrator.interrupted(spec)
            target.cancel(handle)
            cancelled = True
    return target.collect(handle)
