"""What the runs of one command came to, and who is told of them while they go on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from madengine.deployment.base import Observed, Progress
from madengine.execution.spec import RunSpec
from madengine.verdict.evidence import Evidence, Verdict

NOTHING_OBSERVED = Observed()
NOTHING_SEEN = Progress()


@dataclass(frozen=True)
class FinishedRun:
    """One run with what was seen of it and what it may say about itself.

    ``rows`` are its rows of perf.csv, ``saved`` says whether they are in it. ``duration`` is in seconds. ``observed``
    is what the machines it ran on know of themselves, ``job`` the scheduler's id of it, empty without one. ``before``
    says that another command recorded it, so that this one added nothing.
    """

    spec: RunSpec
    evidence: Evidence
    verdict: Verdict
    rows: tuple[dict[str, str], ...]
    duration: float
    saved: bool = True
    observed: Observed = NOTHING_OBSERVED
    job: str = ""
    before: bool = False


@dataclass(frozen=True)
class LeftRun:
    """A run that goes on without this process, as it was last seen: ``madengine collect`` finishes its story."""

    spec: RunSpec
    progress: Progress = NOTHING_SEEN


@dataclass(frozen=True)
class RunReport:
    """Everything that one command ran, in the order of its specs.

    ``not_started`` are models that an interruption left untouched, ``left`` runs that were submitted and not waited
    for: nothing of them is recorded.
    """

    runs: tuple[FinishedRun, ...]
    not_started: tuple[str, ...] = ()
    interrupted: bool = False
    left: tuple[LeftRun, ...] = ()

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts in the order of the runs."""
        return tuple(run.verdict for run in self.runs)


class Recorder(Protocol):
    """Keeps what happened: provenance, rows, leftovers. What cannot be written is its problem, not an exception."""

    def opened(self, spec: RunSpec) -> None:
        """A run is about to start."""

    def closed(
        self, spec: RunSpec, evidence: Evidence, verdict: Verdict, observed: Observed = NOTHING_OBSERVED
    ) -> FinishedRun:
        """A run has its verdict: write its rows and its record."""


class Narrator(Protocol):
    """Tells a person how the runs go."""

    def started(self, number: int, total: int, spec: RunSpec) -> None:
        """The ``number``-th of ``total`` runs begins."""

    def progress(self, runs: Sequence[tuple[RunSpec, Progress]]) -> None:
        """Where all runs that are under way stand: told after each look at them, and when none is waited for."""

    def interrupted(self, spec: RunSpec) -> None:
        """The user wants to stop; the run is being ended."""

    def ended(self, number: int, total: int, run: FinishedRun) -> None:
        """It has its verdict."""
