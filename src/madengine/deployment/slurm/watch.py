"""One job as it is watched: from what was seen of it to how far it is. Pure; times are handed in, in seconds.

A run has ended only when nothing more is worth waiting for: all expected markers are there, or the grace for storage
that lags is over since the job's end; and the accounting has its last word, or was asked long enough, or there is none.
One look decides nothing: a controller that does not answer is asked again, and its silence is counted.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from madengine.deployment.base import Progress, RunState
from madengine.deployment.slurm.states import AccountingRecord, QueueEntry, has_ended, is_final, never_starts, normal

FIRST_LOOK = 0.5  # seconds between two questions to the controller, at first
SLOWEST_LOOK = 10.0
GROWTH = 1.5
HURRY = 0.2  # when the run is about to end
ACCOUNTING_LIMIT = 60.0  # seconds that the accounting may lag behind the end of a job
ACCOUNTING_TRIES = 3  # failed questions after which its database counts as away
SILENCE_LIMIT = 3600.0  # seconds without any answer after which the controller's word is unknown
SHOWN_RANKS = 5
_PENDING = ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT")


@dataclass(frozen=True)
class Awaited:
    """What a run is waited for with: the ranks that are to report, and the seconds of grace for their markers.

    ``pending_timeout`` is how long the job may wait for its nodes, in seconds, None for as long as it takes.
    """

    ranks: int
    grace: float = 30.0
    pending_timeout: float | None = None


class JobWatch:
    """Told what was seen, it answers how far the run is."""

    def __init__(self, job_id: str, awaited: Awaited, now: float) -> None:
        self.job_id = job_id
        self.entry: QueueEntry | None = None
        self.records: tuple[AccountingRecord, ...] | None = None
        self._awaited, self._begun = awaited, now
        self._present: frozenset[int] = frozenset()
        self._complete_at: float | None = None
        self._ended_at: float | None = None
        self._answered_at, self._failures = now, 0
        self._no_accounting, self._accounting_failures = False, 0
        self._interval = FIRST_LOOK
        self._next_look = self._next_accounting = now
        self._same_reason = 0

    @property
    def attempt(self) -> int | None:
        """How often the job was requeued, None as long as nobody said."""
        return self.entry.restarts if self.entry else None

    @property
    def job_has_ended(self) -> bool:
        """Whether Slurm has said that the job is over, however much there still is to wait for."""
        return self._ended_at is not None

    def is_due(self, now: float) -> bool:
        """Whether the controller should be asked now."""
        return now >= self._next_look

    def wants_accounting(self, now: float) -> bool:
        """Whether the accounting should be asked now: the job has ended and its last word is not there yet."""
        if self._ended_at is None or self._is_accounted(now):
            return False
        return now >= self._next_accounting

    def saw_entry(self, now: float, entry: QueueEntry | None) -> None:
        """The controller answered; it may not know the job (any more), which only counts when it knew it before."""
        self._answered_at, self._failures = now, 0
        before = self.entry
        if entry is None:
            self._ended(now)
        else:
            self.entry = entry
            self._same_reason = self._same_reason + 1 if _waits_for_ever(entry) else 0
            if is_final(entry.state):
                self._ended(now)
            else:
                self._ended_at = self.records = None  # what an earlier attempt came to is not its end
        if entry is not None and before is not None and _is_pending(entry) and not _is_pending(before):
            self._begun = now  # it waits anew
        changed = before is None or entry is None or (before.state, before.reason) != (entry.state, entry.reason)
        self._interval = FIRST_LOOK if changed else min(self._interval * GROWTH, SLOWEST_LOOK)
        self._schedule(now)

    def saw_silence(self, now: float) -> None:
        """The controller did not answer."""
        self._failures += 1
        self._interval = min(self._interval * GROWTH, SLOWEST_LOOK)
        if now - self._answered_at >= SILENCE_LIMIT:
            self._ended(now)
        self._schedule(now)

    def saw_accounting(self, now: float, records: Sequence[AccountingRecord]) -> None:
        """The accounting answered, with nothing when it has not heard of the job yet."""
        self.records = tuple(records)
        ages = [record.ended_ago for record in records if record.step == "" and record.ended_ago is not None]
        if self._ended_at is not None and ages and has_ended(records):
            self._ended_at = min(self._ended_at, now - ages[0])  # it may have ended long before this process looked
        self._accounting_failures = 0
        self._next_accounting = now + FIRST_LOOK

    def saw_no_accounting(self, now: float, *, disabled: bool) -> None:
        """The accounting did not answer; ``disabled`` when the cluster has none."""
        self._accounting_failures += 1
        self._no_accounting = disabled or self._accounting_failures >= ACCOUNTING_TRIES
        self._next_accounting = now + FIRST_LOOK * self._accounting_failures

    def saw_markers(self, now: float, present: Collection[int]) -> None:
        """The ranks whose markers are there."""
        self._present = frozenset(present)
        complete = len(self._present) >= self._awaited.ranks
        if complete and self._complete_at is None:
            self._complete_at = now
            self._schedule(now)
        elif not complete:
            self._complete_at = None

    def state(self, now: float) -> RunState:
        """How far the run is."""
        if self._is_over(now):
            return RunState.ENDED
        if self.entry is None or normal(self.entry.state) in _PENDING:
            return RunState.PENDING
        return RunState.RUNNING

    def is_silent(self, now: float) -> bool:
        """Whether the controller was away for so long that its word is unknown."""
        return now - self._answered_at >= SILENCE_LIMIT

    def hopeless(self, now: float) -> str:
        """Why the job is to be cancelled, since it will not start; empty as long as it may."""
        if self.entry is None or normal(self.entry.state) != "PENDING":
            return ""
        reason = self.entry.reason or "no reason given"
        if self._same_reason >= 2:
            return f"the job can never start: {reason}"
        limit = self._awaited.pending_timeout
        if limit is not None and now - self._begun >= limit:
            return f"timed out: the job was still waiting for its nodes after {limit:g} s ({reason})"
        return ""

    def progress(self, now: float) -> Progress:
        """Where the run stands, for people."""
        entry = self.entry
        if entry is None:
            return Progress(self.job_id, remark=self._silence(now))
        pending = normal(entry.state) in _PENDING
        return Progress(
            self.job_id,
            entry.state,
            entry.nodes,
            None if pending else entry.elapsed,
            self._silence(now) or (entry.reason if pending else self._waited_for()),
        )

    def _ended(self, now: float) -> None:
        if self._ended_at is None:
            self._ended_at = self._next_accounting = now

    def _is_over(self, now: float) -> bool:
        if self._ended_at is not None:
            grace_over = now >= self._ended_at + self._awaited.grace
            return (self._complete_at is not None or grace_over) and self._is_accounted(now)
        # All nodes have reported; a job that stays "completing" for its epilog has nothing more to tell.
        return self._complete_at is not None and now >= self._complete_at + ACCOUNTING_LIMIT

    def _is_accounted(self, now: float) -> bool:
        if has_ended(self.records) or self._no_accounting or self.is_silent(now):
            return True
        return self._ended_at is not None and now >= self._ended_at + ACCOUNTING_LIMIT

    def _schedule(self, now: float) -> None:
        about_to_end = self._complete_at is not None and self._ended_at is None and not self._failures
        self._next_look = now + (HURRY if about_to_end else self._interval)

    def _silence(self, now: float) -> str:
        if not self._failures:
            return ""
        since = now - self._answered_at
        return f"Slurm does not answer ({self._failures} times, since {since:.0f} s)"

    def _waited_for(self) -> str:
        if self._ended_at is None:
            return ""
        missing = [str(rank) for rank in range(self._awaited.ranks) if rank not in self._present]
        if missing:
            shown = ", ".join(missing[:SHOWN_RANKS]) + (", ..." if len(missing) > SHOWN_RANKS else "")
            return f"ended; waiting for the status of node {shown}"
        return "ended; waiting for the accounting"


def _is_pending(entry: QueueEntry) -> bool:
    return normal(entry.state) == "PENDING"


def _waits_for_ever(entry: QueueEntry) -> bool:
    return _is_pending(entry) and never_starts(entry.reason)


def with_exit_code(entry: QueueEntry, told: QueueEntry) -> QueueEntry:
    """The queue's entry with the exit code that ``scontrol`` told of the same job."""
    return replace(entry, state=told.state, exit_code=told.exit_code, reason=told.reason or entry.reason)
