"""The target ``local``: a run on this machine, by whatever engine was chosen.

The run lives in a thread of the submitting process. What another process needs lies in the run directory:
``evidence.json`` once the run has ended, and ``pid``, which names the process that carries it.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from madengine.catalog.card import ModelCard
from madengine.core.documents import load_json
from madengine.core.errors import ConfigurationError, MADEngineError
from madengine.core.files import write_atomic
from madengine.core.redact import Redactor
from madengine.deployment.base import CheckProblem, Finding, Handle, Observed, Progress, Rendering, RunState, Workshop
from madengine.deployment.carrier import Carrier
from madengine.deployment.describe import describe
from madengine.execution.engine import ContainerEngine
from madengine.execution.runner import Observer, run_model
from madengine.execution.spec import Place, RunSpec
from madengine.verdict.evidence import Evidence, Interruption, InterruptionKind, NodeReport
from madengine.verdict.evidence_json import from_json, to_json

ImageKeeper = Callable[[RunSpec, Observer], None]

EVIDENCE = "evidence.json"
ONE_NODE = """to run on one all the same: --additional-context '{"distributed": {"nnodes": 1}}'"""
LOOK = 0.1  # seconds between two looks at a run of another process


class LocalTarget:
    """Runs models on this machine, each in a thread that watches its engine."""

    name: ClassVar[str] = "local"
    remote: ClassVar[bool] = False

    def __init__(
        self,
        engine: ContainerEngine,
        observer_for: Callable[[RunSpec], Observer],
        ensure_image: ImageKeeper,
        deployment: Mapping[str, Any] | None = None,
    ) -> None:
        """``ensure_image`` makes a spec's image available on this machine or raises ``MADEngineError``."""
        self._deployment = deployment or {}
        self._engine = engine
        self._observer_for = observer_for
        self._ensure_image = ensure_image
        self._runs: dict[str, _LiveRun] = {}
        self._changed = threading.Condition()

    @classmethod
    def runs_root(cls, deployment: Mapping[str, Any]) -> Path:  # noqa: ARG003 - nothing there names another folder
        """The folder ``runs`` where the command was given."""
        return Path("runs").absolute()

    @classmethod
    def create(cls, workshop: Workshop) -> LocalTarget:
        """The target for one command, whose workshop has an engine, an observer and a keeper of images."""
        nodes = int((workshop.deployment.get("distributed") or {}).get("nnodes") or 1)
        if nodes > 1:
            raise ConfigurationError(
                f"the runs are for {nodes} nodes, and on this machine a run has one",
                where=f"{workshop.source}#/deployment_config/distributed/nnodes",
                hint=ONE_NODE,
            )
        engine, observer_for, keeper = workshop.engine, workshop.observer_for, workshop.ensure_image
        assert engine is not None and observer_for is not None and keeper is not None
        return cls(engine, observer_for, keeper, workshop.deployment)

    def place(self, card: ModelCard) -> Place:
        """This machine. A run of several nodes does not silently become one of a single node."""
        block = self._deployment.get("distributed") or card.block("distributed")
        nodes = int(block.get("nnodes") or card.block("slurm").get("nodes") or 1)
        if nodes > 1:
            raise ConfigurationError(
                f"the card is for {nodes} nodes, and on this machine a run has one",
                hint=ONE_NODE,
            )
        return Place()

    def check(self, specs: Sequence[RunSpec]) -> tuple[CheckProblem, ...]:
        """Whether the engine works and every image is named."""
        problem = self._engine.problem()
        problems = [CheckProblem(f"engine {self._engine.name}: {problem}", "see `madengine doctor`")] if problem else []
        for spec in specs:
            starts = not (spec.skip or spec.refusal)
            if starts and self._engine.needs_image and not spec.image.docker_image:
                problems.append(
                    CheckProblem(
                        f"{spec.card.name} has no image for engine {self._engine.name}",
                        "the manifest was made for the host engine: build it with a container engine, "
                        "or run it with --engine host",
                    )
                )
        return tuple(problems)

    def examine(self, cards: Sequence[ModelCard]) -> tuple[Finding, ...]:  # noqa: ARG002
        """Nothing: what a run on this machine relies on is looked at by `madengine doctor` itself."""
        return ()

    def render(self, spec: RunSpec) -> Rendering:
        """The run in words; the target needs no script of its own."""
        return describe(spec)

    def submit(self, spec: RunSpec, rendering: Rendering, after: Handle | None = None) -> Handle:  # noqa: ARG002
        """Start the run's thread, at once."""
        live = _LiveRun(spec, self._engine, self._observer_for(spec), self._ensure_image, self._changed)
        self._runs[spec.run_id] = live
        try:
            _leave_for_others(spec.run_dir, rendering)
        except (OSError, MADEngineError) as error:
            live.refuse(f"the run directory cannot be written: {error}")
        else:
            live.thread.start()
        return Handle(spec.run_id, spec.run_dir)

    def poll(self, handles: Sequence[Handle], patience: float) -> Mapping[str, RunState]:
        """States by run id; returns as soon as one of them changes, at once when all have ended."""
        deadline = time.monotonic() + patience
        with self._changed:
            before = states = self._states(handles)
            while states == before and RunState.RUNNING in states.values() and time.monotonic() < deadline:
                self._changed.wait(min(LOOK, max(0.0, deadline - time.monotonic())))
                states = self._states(handles)
        return states

    def progress(self, handles: Sequence[Handle]) -> Mapping[str, Progress]:
        """The state of each, which is all that there is to say: an observer shows more."""
        return {handle.run_id: Progress(state=self._state(handle).value) for handle in handles}

    def observed(self, handle: Handle) -> Observed:  # noqa: ARG002 - the recorder's own machine is the run's
        """Nothing beyond what the submitting process knows of itself."""
        return Observed()

    def collect(self, handle: Handle) -> Evidence:
        """The run's evidence; a run whose process is gone without leaving any never reported."""
        live = self._runs.get(handle.run_id)
        if live is not None:
            return live.result()
        path = handle.run_dir / EVIDENCE
        try:
            evidence = from_json(load_json(path, what="evidence"), source=str(path))
        except MADEngineError as error:
            return _never_reported(handle, str(error))
        if evidence.run_id != handle.run_id:
            return _never_reported(handle, f"{path} is of another run, {evidence.run_id}")
        return evidence

    def cancel(self, handle: Handle) -> None:
        """End the run: its own thread is told, another process gets a TERM, on which it ends its run and records it.

        Raises ``ExecutionError`` when that process cannot be reached from here.
        """
        live = self._runs.get(handle.run_id)
        if live is not None:
            live.cancel.set()
            return
        if self._state(handle) is not RunState.RUNNING:
            return
        carrier = Carrier.read(handle.run_dir)
        if carrier is not None:
            carrier.end()

    def _states(self, handles: Sequence[Handle]) -> dict[str, RunState]:
        return {handle.run_id: self._state(handle) for handle in handles}

    def _state(self, handle: Handle) -> RunState:
        live = self._runs.get(handle.run_id)
        if live is not None:
            return RunState.ENDED if live.ended.is_set() else RunState.RUNNING
        if (handle.run_dir / EVIDENCE).exists():
            return RunState.ENDED
        carrier = Carrier.read(handle.run_dir)
        return RunState.RUNNING if carrier is not None and carrier.may_live() else RunState.ENDED


def _leave_for_others(run_dir: Path, rendering: Rendering) -> None:
    run_dir.mkdir(parents=True, exist_ok=True)
    for name, text in rendering.files.items():
        write_atomic(run_dir / name, text, durable=False)
    Carrier.this_process().write(run_dir)


def _never_reported(handle: Handle, detail: str) -> Evidence:
    return Evidence(handle.run_id, nodes=(NodeReport(0, host=os.uname().nodename, detail=detail),))


class _LiveRun:
    """A run of this process: the thread that carries it, the event that ends it, and the event that says it has ended.

    The thread itself is not asked: a Ctrl-C during ``Thread.join`` makes Python (before 3.13) take a thread that is
    alive for one that has ended.
    """

    def __init__(
        self,
        spec: RunSpec,
        engine: ContainerEngine,
        observer: Observer,
        ensure_image: ImageKeeper,
        changed: threading.Condition,
    ) -> None:
        self.cancel, self.ended = threading.Event(), threading.Event()
        self._spec, self._engine, self._observer, self._ensure_image = spec, engine, observer, ensure_image
        self._changed = changed
        self._evidence = Evidence(spec.run_id)
        self.thread = threading.Thread(target=self._carry, name=spec.run_id, daemon=True)

    def result(self) -> Evidence:
        """The evidence of the run; waits for its end."""
        self.ended.wait()
        return self._evidence

    def refuse(self, reason: str) -> None:
        """The run cannot begin."""
        self._end(Evidence(self._spec.run_id, interruption=Interruption(InterruptionKind.REFUSED, reason)))

    def _carry(self) -> None:
        """Run the model and leave the evidence; an error of the engine is evidence too."""
        evidence = self._run()
        try:
            self._observer.phase("")
            write_atomic(self._spec.run_dir / EVIDENCE, json.dumps(to_json(evidence), indent=1) + "\n")
        except Exception as error:  # whoever waits for the end must hear of it
            evidence = replace(evidence, notes=(*evidence.notes, f"{EVIDENCE} was not written: {error}"))
        self._end(evidence)

    def _run(self) -> Evidence:
        run_id = self._spec.run_id
        hidden = Redactor(self._spec.hidden)
        try:
            if self._engine.needs_image:
                self._ensure_image(self._spec, self._observer)
            return run_model(self._spec, self._engine, observer=self._observer, cancel=self.cancel)
        except MADEngineError as error:
            refused = Interruption(InterruptionKind.REFUSED, hidden.text(str(error)))
            return Evidence(run_id, interruption=refused)
        except Exception as error:
            defect = hidden.text(f"madengine itself failed: {type(error).__name__}: {error}")
            return Evidence(run_id, nodes=(NodeReport(self._spec.place.rank, exit_code=1, detail=defect),))

    def _end(self, evidence: Evidence) -> None:
        self._evidence = evidence
        with self._changed:
            self.ended.set()
            self._changed.notify_all()
