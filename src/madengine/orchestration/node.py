"""The story of one node of a remote run: what ``madengine node`` does, which a job starts once per rank.

The run directory and the environment are all that is asked. Whatever happens, ``evidence.json`` is on the disk before
this process ends, unless it is killed; the exit code says in short what that file says in full.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from madengine.core.errors import ConfigurationError, ExecutionError, MADEngineError
from madengine.core.interruptions import Interruptions, counted_interruptions
from madengine.core.redact import Redactor, secret_values
from madengine.core.redact_values import without_secrets_in
from madengine.deployment.base import Rendering, RunState
from madengine.deployment.local import LocalTarget
from madengine.execution.engine import ContainerEngine
from madengine.execution.gpu import GpuInventory, detect
from madengine.execution.select_engine import CONTAINERS, ORDER, choose_engine
from madengine.execution.spec import RunSpec
from madengine.launchers.registry import drives_allocation
from madengine.orchestration.images_here import ImageKeeper
from madengine.orchestration.node_exit import CANNOT_RUN, CLEAN, INVALID, node_exit_code
from madengine.orchestration.node_folder import IMAGE, IMAGE_LOG, NodeObserver, Say, closed, opened, write_evidence
from madengine.orchestration.node_plan import NodeInputs, node_folder, plan_node, read_inputs, request_of
from madengine.verdict.evidence import Evidence, Interruption, InterruptionKind
from madengine.verdict.judge import judge

PATIENCE = 0.1  # seconds between two looks at the run
HOST = "host"


@dataclass(frozen=True)
class Work:
    """One rank's run, ready to begin."""

    inputs: NodeInputs
    engine: ContainerEngine
    spec: RunSpec
    keeper: ImageKeeper
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Finders:
    """What looks at the machine: for the engine of a run, with a sentence about the choice, and for GPUs."""

    engine: Callable[[NodeInputs], tuple[ContainerEngine, str]]
    gpus: Callable[[str | None], GpuInventory] = detect


def run_node(run_dir: Path, rank: int, environ: Mapping[str, str], say: Say, finders: Finders | None = None) -> int:
    """Run one rank to its end; returns the exit code of ``node_exit.node_exit_code``.

    Raises ``MADEngineError`` when not even the rank's folder can be written.
    """
    folder = _made(node_folder(run_dir, rank))
    with counted_interruptions() as interruptions:
        try:
            with interruptions.raised():
                work = _prepared(run_dir, rank, environ, finders or Finders(engine_for_run))
        except KeyboardInterrupt:
            return _left(folder, _ended(run_dir, InterruptionKind.CANCELLED, "cancelled before it began"), True)
        except MADEngineError as error:
            reason = Redactor(secret_values(environ)).text(str(error))
            say(f"error: {reason}")
            refused = _ended(run_dir, InterruptionKind.REFUSED, reason)
            return _left(folder, refused, False, prepared=not isinstance(error, ConfigurationError))
        return _carried_out(work, interruptions, say)


def make_image_available(
    run_dir: Path, rank: int, environ: Mapping[str, str], say: Say, finders: Finders | None = None
) -> int:
    """Only make the image available on this node: 0, 125 when it cannot be had, 4 for orders that nobody can carry out.

    The reason stands in the rank's ``image.log``, too. Raises ``MADEngineError`` when its folder cannot be written.
    """
    folder = _made(node_folder(run_dir, rank))
    try:
        work = _prepared(run_dir, rank, environ, finders or Finders(engine_for_images))
        observer = NodeObserver(work.spec, say)
        if work.spec.image.docker_image and work.engine.needs_image:
            work.keeper(work.spec, observer)
        observer.phase("")
    except MADEngineError as error:
        reason = Redactor(secret_values(environ)).text(str(error))
        say(f"error: {reason}")
        with (folder / IMAGE_LOG).open("a", encoding="utf-8") as log:
            log.write(f"{reason}\n")
        return INVALID if isinstance(error, ConfigurationError) else CANNOT_RUN
    return CLEAN


def engine_for_run(inputs: NodeInputs) -> tuple[ContainerEngine, str]:
    """The order's engine, or the first that works here; a script that drives the whole allocation runs in none.

    A model that has an image never runs without it unless somebody said so. Raises ``ExecutionError``.
    """
    order = inputs.order
    named = HOST if drives_allocation(order.launcher) else order.engine
    has_image = bool(inputs.manifest.images[order.key].docker_image)
    return _chosen(named, inputs.environ, CONTAINERS if has_image else ORDER)


def engine_for_images(inputs: NodeInputs) -> tuple[ContainerEngine, str]:
    """The engine that images are for, whatever runs the script itself. Raises ``ExecutionError``."""
    order = inputs.order
    if drives_allocation(order.launcher):
        return _chosen("" if order.engine == HOST else order.engine, inputs.environ, CONTAINERS)
    return engine_for_run(inputs)


def _chosen(name: str, environ: Mapping[str, str], order: Sequence[str]) -> tuple[ContainerEngine, str]:
    try:
        return choose_engine(name, environ=environ, order=order)
    except ConfigurationError as error:
        raise ExecutionError(str(error)) from error


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"the rank's folder cannot be made: {error.strerror}", where=str(folder)) from error
    return folder


def _prepared(run_dir: Path, rank: int, environ: Mapping[str, str], finders: Finders) -> Work:
    """Everything that is known before the run begins. Raises ``MADEngineError``."""
    inputs = read_inputs(run_dir, rank, environ)
    engine, sentence = finders.engine(inputs)
    inventory = finders.gpus(inputs.order.gpu_vendor or None)
    spec, warnings = plan_node(inputs, engine, inventory)
    keeper = ImageKeeper(request_of(inputs, inventory), engine, inputs.manifest.context)
    chosen_here = not (inputs.order.engine or drives_allocation(inputs.order.launcher))
    outside = chosen_here and bool(spec.image.docker_image) and not engine.needs_image
    remark = (f"rank {rank} ran without its image: {sentence}",) if outside else ()
    return Work(inputs, engine, spec, keeper, (*inputs.notes, *warnings, *remark))


def _carried_out(work: Work, interruptions: Interruptions, say: Say) -> int:
    spec, begun = work.spec, time.monotonic()
    host = work.inputs.host
    record = opened(spec, target=work.inputs.order.target, host=host, command=tuple(sys.argv))
    seen = _evidence(work, interruptions, say)
    nodes = tuple(replace(node, host=host) for node in seen.nodes)
    evidence = _without_secrets(replace(seen, nodes=nodes, notes=(*work.notes, *seen.notes)), spec)
    verdict = judge(evidence)
    digest = work.keeper.digest_of(spec.image.docker_image)
    closed(spec, record, evidence, verdict, duration=time.monotonic() - begun, digest=digest)
    say(f"{verdict.outcome.value}: {verdict.reason}")
    return node_exit_code(
        evidence,
        verdict,
        terminated=_is_terminated(evidence, interruptions),
        prepared=spec.refusal is None,
    )


def _evidence(work: Work, interruptions: Interruptions, say: Say) -> Evidence:
    spec = work.spec
    if spec.skip:
        return Evidence(spec.run_id, skipped=spec.skip)
    if spec.refusal:
        return Evidence(spec.run_id, interruption=Interruption(InterruptionKind.REFUSED, spec.refusal))
    observer = NodeObserver(spec, say)
    target = LocalTarget(work.engine, lambda _: observer, work.keeper)
    handle = target.submit(spec, Rendering())
    told = False
    while target.poll([handle], PATIENCE)[handle.run_id] is not RunState.ENDED:
        if interruptions.count and not told:
            say("told to end: ending the run")
            target.cancel(handle)
            told = True
        if interruptions.count and observer.current.startswith(IMAGE):
            # A pull or a build listens to nobody, and Slurm kills what is still there soon after its TERM.
            detail = f"cancelled while its image {spec.image.docker_image} was made available"
            return Evidence(spec.run_id, interruption=Interruption(InterruptionKind.CANCELLED, detail))
    return _told(target.collect(handle), interruptions)


def _told(evidence: Evidence, interruptions: Interruptions) -> Evidence:
    """A script may end well of itself when the whole job is told to end; without a number that is no clean end."""
    if not interruptions.count or evidence.interruption is not None or evidence.measurements:
        return evidence
    return replace(evidence, interruption=Interruption(InterruptionKind.CANCELLED, "told to end while it ran"))


def _ended(run_dir: Path, kind: InterruptionKind, reason: str) -> Evidence:
    """Evidence of a run that never began; its id is the name of its directory."""
    return Evidence(run_dir.name, interruption=Interruption(kind, reason))


def _left(folder: Path, evidence: Evidence, terminated: bool, *, prepared: bool = False) -> int:
    write_evidence(folder, evidence)
    return node_exit_code(evidence, judge(evidence), terminated=terminated, prepared=prepared)


def _is_terminated(evidence: Evidence, interruptions: Interruptions) -> bool:
    """Whether the run was ended by a signal to us; one that came when all was over ended nothing."""
    ended = evidence.interruption is not None and evidence.interruption.kind is InterruptionKind.CANCELLED
    return interruptions.count > 0 and ended


def _without_secrets(evidence: Evidence, spec: RunSpec) -> Evidence:
    return without_secrets_in(evidence, Redactor(spec.hidden))
