"""The target ``slurm``: one job per run, submitted, watched and collected; a run directory is enough to go on with."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import madengine
from madengine.catalog.card import ModelCard
from madengine.core.errors import ExecutionError, MADEngineError
from madengine.core.files import write_atomic
from madengine.deployment.base import CheckProblem, Finding, Handle, Observed, Progress, Rendering, RunState, Workshop
from madengine.deployment.carrier import Carrier
from madengine.deployment.order import JobOrder, write_order
from madengine.deployment.slurm import nodes
from madengine.deployment.slurm.cancellation import by_this_user, note_cancellation
from madengine.deployment.slurm.checks import check_jobs, examine_jobs
from madengine.deployment.slurm.client import Ask, SlurmClient, ask_program
from madengine.deployment.slurm.jobs import Job
from madengine.deployment.slurm.layout import JOB_LOG
from madengine.deployment.slurm.options import KIND, SlurmOptions, output_dir, place_of, slurm_options
from madengine.deployment.slurm.probe import ProbeContext
from madengine.deployment.slurm.script import Shape, render
from madengine.deployment.slurm.submission import start_inside, submit_job
from madengine.execution.ensure_image import ARCHIVES_VARIABLE
from madengine.execution.spec import Place, RunSpec
from madengine.launchers.registry import drives_allocation
from madengine.verdict.evidence import Evidence, Interruption, InterruptionKind

LOOK = 0.1  # seconds between two looks at the nodes' markers
LINKS = "runs"  # in the directory of the command: links to its run directories
ALLOCATION = "SLURM_JOB_ID"


class SlurmTarget:
    """Runs models as jobs of the cluster that ``sbatch`` leads to."""

    name: ClassVar[str] = KIND
    remote: ClassVar[bool] = True

    def __init__(
        self,
        workshop: Workshop,
        ask: Ask = ask_program,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._workshop, self._ask, self._client = workshop, ask, SlurmClient(ask)
        self._clock, self._sleep = clock, sleep
        self._jobs: dict[str, Job] = {}
        self._inside: list[subprocess.Popen[bytes]] = []

    @classmethod
    def runs_root(cls, deployment: Mapping[str, Any]) -> Path:
        """``slurm.output_dir``, which is on storage that all nodes see."""
        return output_dir(deployment)

    @classmethod
    def create(cls, workshop: Workshop) -> SlurmTarget:
        """The target for one command."""
        return cls(workshop)

    def place(self, card: ModelCard) -> Place:
        """The nodes that the card's job asks for. Raises ``ConfigurationError``."""
        return place_of(self._options(card), card, self._workshop.deployment)

    def check(self, specs: Sequence[RunSpec]) -> tuple[CheckProblem, ...]:
        """Whether the cluster will take these jobs. A node is looked at only when ``enable_node_check`` asks for it."""
        jobs = [self._options(spec.card) for spec in specs if not (spec.skip or spec.refusal)]
        return check_jobs(jobs, self._probe_context(), self._ask)

    def examine(self, cards: Sequence[ModelCard]) -> tuple[Finding, ...]:
        """The cluster, what jobs of these cards ask of it, and what a node sees."""
        return examine_jobs([self._options(card) for card in cards], self._probe_context(), self._ask)

    def _probe_context(self) -> ProbeContext:
        order = self._workshop.order
        return ProbeContext(
            output_dir=output_dir(self._workshop.deployment),
            package=Path(str(order.get("package") or Path.cwd())),
            madengine=own_command(),
            version=madengine.__version__,
            engine=str(order.get("engine") or ""),
            archives=self._workshop.environ.get(ARCHIVES_VARIABLE, ""),
        )

    def render(self, spec: RunSpec) -> Rendering:
        """The scripts of the job, and the run in words."""
        return render(spec, self._options(spec.card), madengine=own_command())

    def submit(self, spec: RunSpec, rendering: Rendering, after: Handle | None = None) -> Handle:
        """Hand the job to Slurm. What keeps it from being one is noted in the run directory, and evidence later."""
        handle = Handle(spec.run_id, spec.run_dir)
        self._furnish(spec, rendering)
        environment = {**self._workshop.inherited, **spec.secrets}
        allocation = self._workshop.inherited.get(ALLOCATION, "")
        if allocation and drives_allocation(spec.launcher):
            submitted, process = start_inside(spec.run_dir, allocation, environment)
            self._inside.append(process)
        else:
            submitted = submit_job(self._client, spec.run_dir, environment, self._job_id(after))
        self._jobs[spec.run_id] = Job(handle, submitted)
        return handle

    def poll(self, handles: Sequence[Handle], patience: float) -> Mapping[str, RunState]:
        """States by run id; returns as soon as one changes, at once when all have ended."""
        deadline = self._clock() + patience
        before = self._look(handles, ask=False)
        while True:
            states = self._look(handles)
            now = self._clock()
            if states != before or now >= deadline or all(state is RunState.ENDED for state in states.values()):
                return states
            self._sleep(min(LOOK, deadline - now))

    def progress(self, handles: Sequence[Handle]) -> Mapping[str, Progress]:
        """What the last look saw of each."""
        now = self._clock()
        return {handle.run_id: self._job(handle).progress(now) for handle in handles}

    def collect(self, handle: Handle) -> Evidence:
        """What the nodes left, and Slurm's last word. Raises ``MADEngineError`` for a directory without an order."""
        job = self._job(handle)
        job.locate(self._client, self._clock())
        return job.evidence(self._client)

    def observed(self, handle: Handle) -> Observed:
        """What the nodes' own records say."""
        job = self._job(handle)
        return replace(nodes.observed(handle.run_dir, job.order), job=job.submitted.job_id if job.submitted else "")

    def cancel(self, handle: Handle) -> None:
        """End the run and note who did it; a run that has ended stays as it is. Raises ``ExecutionError``."""
        job = self._job(handle)
        self._look([handle])
        if job.state(self._clock()) is RunState.ENDED or (job.watch is not None and job.watch.job_has_ended):
            return
        if job.watch is None:
            raise ExecutionError("Slurm does not say which job this run is: it may be about to be submitted")
        self._end(job, by_this_user())

    def _look(self, handles: Sequence[Handle], *, ask: bool = True) -> dict[str, RunState]:
        """Look at the markers, ask Slurm for all jobs that it is time for, and end those that never start."""
        jobs = [self._job(handle) for handle in handles]
        now = self._clock()
        if ask:
            for job in jobs:
                job.locate(self._client, now)
            self._ask_queue([job for job in jobs if job.asks_slurm], now)
            for job in jobs:  # after the queue has told which attempt it is
                job.look_for_markers(now)
            self._ask_accounting([job for job in jobs if job.asks_slurm], now)
            for job in jobs:
                self._end_hopeless(job, now)
        return {job.handle.run_id: job.state(now) for job in jobs}

    def _ask_queue(self, jobs: Sequence[Job], now: float) -> None:
        """One question for all jobs that are not over, when it is time for any of them."""
        watches = [job.watch for job in jobs if job.watch and job.state(now) is not RunState.ENDED]
        if not any(watch.is_due(now) for watch in watches):
            return
        answer = self._client.queue([watch.job_id for watch in watches])
        for watch in watches:
            if answer.value is None:
                watch.saw_silence(self._clock())
            else:
                watch.saw_entry(self._clock(), answer.value.get(watch.job_id))

    def _ask_accounting(self, jobs: Sequence[Job], now: float) -> None:
        watches = [job.watch for job in jobs if job.watch and job.watch.wants_accounting(now)]
        if not watches:
            return
        answer = self._client.accounting([watch.job_id for watch in watches])
        for watch in watches:
            if answer.value is None:
                watch.saw_no_accounting(self._clock(), disabled=answer.disabled)
            else:
                watch.saw_accounting(self._clock(), answer.value.get(watch.job_id, ()))

    def _end_hopeless(self, job: Job, now: float) -> None:
        reason = job.watch.hopeless(now) if job.watch and job.asks_slurm else ""
        if reason:
            kind = InterruptionKind.TIMEOUT if "timed out" in reason else InterruptionKind.REFUSED
            with suppress(MADEngineError):  # the next look tries again
                self._end(job, Interruption(kind, reason))

    def _end(self, job: Job, why: Interruption) -> None:
        """End it, and then say so: what could not be cancelled was not."""
        submitted = job.submitted
        if submitted is not None and submitted.carrier is not None:
            submitted.carrier.end()
        elif submitted is not None and submitted.job_id:
            trouble = self._client.cancel(submitted.job_id)
            if trouble:
                raise ExecutionError(f"job {submitted.job_id} could not be cancelled: {trouble}")
        note_cancellation(job.handle.run_dir, why)

    def _furnish(self, spec: RunSpec, rendering: Rendering) -> None:
        """Everything that the job needs, in its run directory. Raises ``MADEngineError`` or ``OSError``."""
        run_dir = spec.run_dir
        (run_dir / JOB_LOG).parent.mkdir(parents=True, exist_ok=True)
        Carrier.this_process().write(run_dir)
        for name, text in rendering.files.items():
            write_atomic(run_dir / name, text)
        write_order(run_dir, self._order(spec))
        self._leave_link(run_dir)

    def _order(self, spec: RunSpec) -> JobOrder:
        options = self._options(spec.card)
        shape = Shape.of(spec, options)
        env_file = self._workshop.env_file
        return JobOrder(
            run_id=spec.run_id,
            key=spec.key,
            model=spec.card.name,
            target=self.name,
            madengine=madengine.__version__,
            launcher=spec.launcher,
            nnodes=shape.nodes,
            reporters=shape.reporters,
            gpus_per_node=options.gpus_per_node,
            master_port=shape.master_port,
            env_file=str(env_file) if env_file else "",
            workspaces=options.shared_workspace,
            results_dir=options.results_dir,
            timeout=spec.timeout,
            results_file=spec.results_file,
            expected_results=spec.expected_results,
            environment=options.environment,
            marker_grace=options.marker_grace_seconds,
            pending_timeout=options.pending_timeout,
            **self._workshop.order,
        )

    def _leave_link(self, run_dir: Path) -> None:
        """A link where the command was given, so that a later one finds the run from there."""
        links = Path(str(self._workshop.order.get("directory") or Path.cwd())) / LINKS
        if links == run_dir.parent:
            return
        with suppress(OSError):  # the run directory can be named by its path as well
            links.mkdir(exist_ok=True)
            (links / run_dir.name).symlink_to(run_dir)

    def _job(self, handle: Handle) -> Job:
        job = self._jobs.get(handle.run_id)
        if job is None:
            job = self._jobs[handle.run_id] = Job(handle)
        return job

    def _job_id(self, handle: Handle | None) -> str:
        submitted = self._job(handle).submitted if handle is not None else None
        return submitted.job_id if submitted is not None else ""

    def _options(self, card: ModelCard) -> SlurmOptions:
        vendor = str(self._workshop.order.get("gpu_vendor") or "")
        return slurm_options(card, self._workshop.deployment, gpu_vendor=vendor, environ=self._workshop.inherited)


def own_command() -> str:
    """The path of this madengine's command, for nodes that see the same files; its bare name when it has none."""
    called = Path(sys.argv[0]) if sys.argv else Path("madengine")
    if called.name == "madengine" and called.is_file():
        return str(called.absolute())
    beside = Path(sys.executable).with_name("madengine")
    return str(beside) if beside.is_file() else shutil.which("madengine") or "madengine"
