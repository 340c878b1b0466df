"""What was seen of a run: plain frozen values, gathered by targets and read by the judge.

A target hands back :class:`Evidence` and never decides success. All facets are optional facts: an absent fact
claims nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True)
class Measurement:
    """One finite number that the run reported.

    ``name`` is the model name of the row inside a results CSV, empty for a metric line. ``metric`` is the unit or
    name as the model wrote it. ``extra`` keeps the row's other columns as text. ``source`` says where it was
    read (``run.log:12`` or ``perf_x.csv:3``). ``rank`` is the node rank that reported it.
    """

    value: float
    metric: str
    name: str = ""
    source: str = ""
    text: str = ""
    rank: int = 0
    extra: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class EmptyRow:
    """A row of the declared results file without a usable number; ``reason`` says what stood there."""

    name: str
    metric: str
    reason: str
    source: str = ""
    rank: int = 0
    extra: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class NodeReport:
    """What one expected rank said of itself.

    ``exit_code`` is None when the rank never reported; ``detail`` then says what was looked at (a marker's path,
    a parse error). Beside an exit code it says what more is known of a failure. ``out_of_memory`` is what the container
    engine or scheduler stated, not a guess. ``script`` says that the code is the model script's own and not that of a
    madengine on the node: 5 then has no meaning of ours.
    """

    rank: int
    host: str = ""
    exit_code: int | None = None
    detail: str = ""
    out_of_memory: bool = False
    script: bool = False

    @property
    def clean(self) -> bool:
        """Whether the rank did its part: 0, or 5 when its madengine found no metric (one rank prints for all).

        Kubernetes can state OOMKilled beside an exit code of 0, so that statement counts whatever the code.
        """
        well = (0,) if self.script else (0, 5)
        return self.exit_code in well and not self.out_of_memory


@dataclass(frozen=True)
class SchedulerReport:
    """The scheduler's own final word, for example Slurm's ``State`` and ``ExitCode`` of ``sacct``.

    ``success`` is what that state means; a run without a scheduler has no report at all. A scheduler that does not
    answer has one with the state "unknown": it claims nothing, and neither does an empty state, whatever ``success``
    says. ``exit_code`` is as the scheduler writes it (``0:9`` is signal 9). The target reads steps and containers too
    and puts the worst state here: a Slurm job can be COMPLETED while its step FAILED.
    """

    name: str
    state: str
    success: bool
    exit_code: str = ""
    reason: str = ""

    @property
    def failed(self) -> bool:
        """Whether the state is known and not a success; the exit code does not matter (NODE_FAIL carries 0:0)."""
        return not self.success and self.state.strip().lower() not in ("", "unknown")


@dataclass(frozen=True)
class LogFinding:
    """The first line of a log that matches an error pattern."""

    file: str
    line: int
    pattern: str
    text: str


@dataclass(frozen=True)
class ContractProblem:
    """Why nothing (or not everything) could be read from where the card said results would be.

    ``summary`` is one sentence. ``searched`` lists the paths looked at, ``given`` the variables and values the
    container was given, ``candidates`` lines that name files beside the run that look like results, ``remedy``
    how to mend it.
    """

    summary: str
    searched: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()
    remedy: str = ""


class InterruptionKind(str, Enum):
    """How a run was ended from our side or before it began."""

    TIMEOUT = "timed out"
    CANCELLED = "cancelled"
    REFUSED = "refused"


@dataclass(frozen=True)
class Interruption:
    """Our own time-out, a cancellation by the user, or a submission that was refused. ``detail`` is a sentence."""

    kind: InterruptionKind
    detail: str


@dataclass(frozen=True)
class Evidence:
    """Everything that was seen of one run.

    ``run_id`` names the run that all of it belongs to. ``skipped`` is the reason when the run was skipped on
    purpose. ``expected_results`` is the number of measured rows that the card promised, None when it did not
    say. ``troubles`` are what else went wrong beside the model's own script, such as a post-script that failed.
    ``notes`` are remarks that do not change a verdict, such as "3 metric lines, the last one counts".
    """

    run_id: str
    skipped: str | None = None
    measurements: tuple[Measurement, ...] = ()
    empty_rows: tuple[EmptyRow, ...] = ()
    expected_results: int | None = None
    nodes: tuple[NodeReport, ...] = ()
    scheduler: SchedulerReport | None = None
    log_findings: tuple[LogFinding, ...] = ()
    contract_problems: tuple[ContractProblem, ...] = ()
    interruption: Interruption | None = None
    troubles: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Outcome(str, Enum):
    """What a run is allowed to say about itself, see VERDICT in the documentation."""

    SKIPPED = "SKIPPED"
    SUCCESS = "SUCCESS"
    INCOMPLETE = "INCOMPLETE"
    FAILURE = "FAILURE"
    NO_METRIC = "NO_METRIC"


@dataclass(frozen=True)
class Verdict:
    """The judge's answer.

    ``reason`` is one sentence that an operator can act on without opening a log. ``warnings`` name each thing that
    went wrong although the numbers stand; ``notes`` are worth reading and change nothing; ``explanation`` holds
    the lines that say how to mend a NO_METRIC. ``exit_code`` is the outcome's own, ``strict_exit_code`` the one
    under ``--strict``.
    """

    outcome: Outcome
    reason: str
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    explanation: tuple[str, ...] = ()
    exit_code: int = 0
    strict_exit_code: int = 0
