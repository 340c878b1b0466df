"""One run as this process follows it: its order, its submission, its watch. A run directory is all that is needed."""

from __future__ import annotations

import math
from pathlib import Path

from madengine.deployment.base import Handle, Progress, RunState
from madengine.deployment.order import JobOrder, read_order
from madengine.deployment.slurm.cancellation import read_cancellation
from madengine.deployment.slurm.client import SlurmClient
from madengine.deployment.slurm.layout import JOB_LOG, TIME_LIMIT
from madengine.deployment.slurm.markers import markers_present
from madengine.deployment.slurm.merge import merge
from madengine.deployment.slurm.nodes import read_nodes
from madengine.deployment.slurm.states import QueueEntry, is_final, is_success, scheduler_report
from madengine.deployment.slurm.submission import Submitted, find_submitted
from madengine.deployment.slurm.watch import Awaited, JobWatch, with_exit_code
from madengine.verdict.evidence import Evidence, Interruption, InterruptionKind, SchedulerReport

SEARCH = 5.0  # seconds between two questions which job a run is
_TAIL = 4096  # bytes of the job's log that are looked at


class Job:
    """A run directory that is followed. Times are in seconds of the caller's clock."""

    def __init__(self, handle: Handle, submitted: Submitted | None = None) -> None:
        """Raises ``MADEngineError`` when the directory holds no order."""
        self.handle = handle
        self.order: JobOrder = read_order(handle.run_dir)
        self.submitted = submitted
        self.watch: JobWatch | None = None
        self._inside_over_at: float | None = None
        self._next_search = -math.inf

    def locate(self, client: SlurmClient, now: float) -> None:
        """Find out which job it is, if that is not known yet."""
        if self.submitted is None and now >= self._next_search:
            self.submitted = find_submitted(client, self.handle.run_dir)
            self._next_search = now + SEARCH
        if self.watch is None and self.submitted is not None and self.submitted.job_id:
            order = self.order
            awaited = Awaited(order.reporters, order.marker_grace, order.pending_timeout)
            self.watch = JobWatch(self.submitted.job_id, awaited, now)

    def look_for_markers(self, now: float) -> None:
        """Look which nodes have reported."""
        if self.watch is not None:
            self.watch.saw_markers(now, self._markers())

    def state(self, now: float) -> RunState:
        """How far the run is."""
        if self.submitted is None:
            return RunState.PENDING
        if self.watch is None:
            return RunState.ENDED
        if self.submitted.carrier is not None:
            return self._state_inside(now)
        return self.watch.state(now)

    @property
    def asks_slurm(self) -> bool:
        """Whether the run has a job of its own; one inside of an allocation has none."""
        return self.submitted is not None and bool(self.submitted.job_id) and self.submitted.carrier is None

    def progress(self, now: float) -> Progress:
        """Where the run stands, for people."""
        if self.submitted is None:
            return Progress(remark="Slurm does not say yet which job it is")
        if self.watch is None:
            return Progress(state="REFUSED", remark=self.submitted.refusal)
        if self.submitted.carrier is not None:
            return Progress(self.submitted.job_id, "RUNNING", f"{self.order.nnodes}", remark="in this allocation")
        return self.watch.progress(now)

    def evidence(self, client: SlurmClient) -> Evidence:
        """What was seen of the run."""
        run_dir, watch = self.handle.run_dir, self.watch
        refusal = self._refusal()
        if refusal is not None or watch is None:
            return Evidence(self.order.run_id, interruption=refusal)
        readings = read_nodes(run_dir, self.order, attempt=watch.attempt)
        silent = all(reading.report.exit_code is None for reading in readings)
        notes = [*_restarts(watch), *(_job_words(run_dir) if silent else ())]
        scheduler = self._scheduler(client) if self.asks_slurm else None
        interruption = read_cancellation(run_dir) or _time_limit(run_dir)
        return merge(self.order, readings, scheduler=scheduler, interruption=interruption, notes=notes)

    def _markers(self) -> frozenset[int]:
        assert self.watch is not None
        return markers_present(self.handle.run_dir, self.order.run_id, self.order.reporters, self.watch.attempt)

    def _state_inside(self, now: float) -> RunState:
        """A run inside of an allocation ends with the process that carries it."""
        assert self.submitted is not None and self.submitted.carrier is not None
        if len(self._markers()) >= self.order.reporters:
            return RunState.ENDED
        if self.submitted.carrier.may_live():
            return RunState.RUNNING
        self._inside_over_at = now if self._inside_over_at is None else self._inside_over_at
        return RunState.ENDED if now >= self._inside_over_at + self.order.marker_grace else RunState.RUNNING

    def _refusal(self) -> Interruption | None:
        if self.submitted is None:
            return Interruption(InterruptionKind.REFUSED, "Slurm did not say which job this run is")
        if self.submitted.job_id:
            return None
        return read_cancellation(self.handle.run_dir) or Interruption(InterruptionKind.REFUSED, self.submitted.refusal)

    def _scheduler(self, client: SlurmClient) -> SchedulerReport:
        """Slurm's last word.

        The exit code of a job that failed is asked of the controller as long as that knows the job: ``sacct`` takes 128
        off a code of 128 or more (seen on Slurm 22.05), and without accounting nobody else knows it.
        """
        assert self.watch is not None
        entry, records = self.watch.entry, self.watch.records
        if entry is not None and is_final(entry.state) and not is_success(entry.state):
            told = client.job(entry.job_id).value
            if isinstance(told, QueueEntry) and is_final(told.state):
                entry = with_exit_code(entry, told)
        return scheduler_report(records, entry)


def _time_limit(run_dir: Path) -> Interruption | None:
    """The job's own time limit, of which the job was given notice: it ended before Slurm had to say TIMEOUT."""
    try:
        limit = (run_dir / TIME_LIMIT).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
    return Interruption(InterruptionKind.TIMEOUT, f"timed out: the job's time limit of {limit} was near")


def _restarts(watch: JobWatch) -> list[str]:
    times = watch.attempt or 0
    if not times:
        return []
    return [f"Slurm requeued the job {'once' if times == 1 else f'{times} times'}; this is its last attempt"]


def _job_words(run_dir: Path) -> list[str]:
    """The last line of the batch script's output, for a run of which no node has said anything."""
    try:
        with (run_dir / JOB_LOG).open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - _TAIL))
            lines = file.read(_TAIL).decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return [f"the job's own output ends with: {last}"] if last else []
