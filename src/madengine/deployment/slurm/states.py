"""What Slurm's words mean, and what its records of one job come to.

The words are those of squeue(1) and sacct(1), "JOB STATE CODES" and "JOB REASON CODES". All of this is pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from madengine.verdict.evidence import SchedulerReport

SLURM = "Slurm"
UNKNOWN = "unknown"
_SUCCESS = "COMPLETED"
_NOTHING_DERIVED = ("", "0:0")  # the highest exit code of all steps, sacct(1)
_NOT_STEPS = ("", "batch", "extern")

FINAL = frozenset(
    {
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "LAUNCH_FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "RECONFIG_FAIL",
        "REVOKED",
        "TIMEOUT",
    }
)
"""States that a job stays in, unless it is requeued: then it is pending again."""

NEVER_STARTS = frozenset(
    {
        "AccountNotAllowed",
        "AssocMaxCpuPerJobLimit",
        "AssocMaxGRESPerJob",
        "AssocMaxMemPerJob",
        "AssocMaxNodePerJobLimit",
        "AssocMaxWallDurationPerJobLimit",
        "BadConstraints",
        "DependencyNeverSatisfied",
        "InvalidAccount",
        "InvalidQOS",
        "PartitionConfig",
        "PartitionNodeLimit",
        "PartitionTimeLimit",
        "QOSMaxNodePerJobLimit",
        "QOSMaxWallDurationPerJobLimit",
        "QOSNotAllowed",
    }
)
"""Reasons of a pending job that go away only when somebody changes the job or the cluster."""

_NEVER_PERMITTED = ("Job's account not permitted", "Job's QOS not permitted")  # as the controller writes them out


@dataclass(frozen=True)
class QueueEntry:
    """A job as ``squeue`` or ``scontrol show job`` tells it.

    ``elapsed`` is in seconds, ``exit_code`` as Slurm writes it (``code:signal``, empty from ``squeue``), ``restarts``
    how often the job was requeued. ``reason`` is empty when Slurm says "None".
    """

    job_id: str
    state: str
    reason: str = ""
    nodes: str = ""
    elapsed: float = 0.0
    exit_code: str = ""
    restarts: int = 0


@dataclass(frozen=True)
class AccountingRecord:
    """A line of ``sacct``: the job itself (``step`` is empty) or one of its steps (``batch``, ``extern``, ``0``).

    ``ended_ago`` is how many seconds ago it ended, None when that is not known.
    """

    step: str
    state: str
    exit_code: str = ""
    derived_exit_code: str = ""
    reason: str = ""
    ended_ago: float | None = None


def normal(state: str) -> str:
    """The state's own word: ``CANCELLED by 1000`` and ``CANCELLED+`` are CANCELLED."""
    words = state.split()
    return words[0].rstrip("+").upper() if words else ""


def is_final(state: str) -> bool:
    """Whether a job in this state has ended."""
    return normal(state) in FINAL


def is_success(state: str) -> bool:
    """Whether the state is the good one."""
    return normal(state) == _SUCCESS


def never_starts(reason: str) -> bool:
    """Whether a job that is pending for this reason waits in vain."""
    return reason in NEVER_STARTS or reason.startswith(_NEVER_PERMITTED)


def has_ended(records: Sequence[AccountingRecord] | None) -> bool:
    """Whether the accounting has the job's last word: a database that comes back tells of steps later than of jobs."""
    told = records or ()
    return any(record.step == "" for record in told) and all(is_final(record.state) for record in told)


def scheduler_report(records: Sequence[AccountingRecord] | None, entry: QueueEntry | None = None) -> SchedulerReport:
    """The scheduler's last word on a job.

    The accounting's record counts, with its steps: a job can be COMPLETED 0:0 while its step FAILED 3:0. Without one
    the state that the controller told, without that "unknown", which claims nothing. The controller's exit code of the
    same end is the truer.
    """
    if has_ended(records):
        report = _accounted(records or ())
        known = entry is not None and normal(entry.state) == normal(report.state)
        return replace(report, exit_code=entry.exit_code) if entry and known and entry.exit_code else report
    if entry is not None and is_final(entry.state):
        return SchedulerReport(SLURM, entry.state, is_success(entry.state), entry.exit_code, entry.reason)
    return SchedulerReport(SLURM, UNKNOWN, success=False)


def _accounted(records: Sequence[AccountingRecord]) -> SchedulerReport:
    job = next(record for record in records if record.step == "")
    if not is_success(job.state):
        return SchedulerReport(SLURM, job.state, False, job.exit_code, job.reason)
    bad = next((record for record in records if record.step and not is_success(record.state)), None)
    if bad is None and not _is_only_derived(records, job):
        return SchedulerReport(SLURM, job.state, True, job.exit_code, job.reason)
    if bad is None:
        return SchedulerReport(SLURM, f"{normal(job.state)}, but a step failed", False, job.derived_exit_code, "")
    return SchedulerReport(SLURM, f"{normal(job.state)}, but step {bad.step} {bad.state}", False, bad.exit_code, "")


def _is_only_derived(records: Sequence[AccountingRecord], job: AccountingRecord) -> bool:
    """Whether only the derived exit code tells of a step that failed; where steps are known they tell themselves.

    After a requeue the derived code may still be that of the earlier attempt.
    """
    steps = any(record.step not in _NOT_STEPS for record in records)
    return not steps and job.derived_exit_code not in _NOTHING_DERIVED
