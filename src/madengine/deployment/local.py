"""The target ``local``: a run on this machine, by whatever engine was chosen.

The run lives in a thread of the submitting process. What another process needs lies in the run directory:
``evidence.json`` once the run has ended, ``pid`` while it goes on.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from madengine.core.errors import MADEngineError
from madengine.core.files import write_atomic
from madengine.deployment.base import CheckProblem, Handle, Rendering, RunState
from madengine.deployment.describe import describe
from madengine.execution.engine import ContainerEngine
from madengine.execution.runner import Observer, run_model
from madengine.execution.spec import RunSpec
from madengine.verdict.evidence import Evidence, Interruption, InterruptionKind, NodeReport
from madengine.verdict.evidence_json import from_json, to_json

ImageKeeper = Callable[[RunSpec, Observer], None]

EVIDENCE = "evidence.json"
PID = "pid"


class LocalTarget:
    """Runs models on this machine, each in a thread that watches its engine."""

    name = "local"

    def __init__(
        self, engine: ContainerEngine, observer_for: Callable[[RunSpec], Observer], ensure_image: ImageKeeper
    ) -> None:
        """``ensure_image`` makes a spec's image available on this machine or raises ``MADEngineError``."""
        self._engine = engine
        self._observer_for = observer_for
        self._ensure_image = ensure_image
        self._runs: dict[str, _LiveRun] = {}

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

    def render(self, spec: RunSpec) -> Rendering:
        """The run in words; the target needs no script of its own."""
        return describe(spec)

    def submit(self, spec: RunSpec, rendering: Rendering) -> Handle:
        """Start the run's thread."""
        spec.run_dir.mkdir(parents=True, exist_ok=True)
        for name, text in rendering.files.items():
            write_atomic(spec.run_dir / name, text, durable=False)
        write_atomic(spec.run_dir / PID, f"{os.getpid()}\n", durable=False)
        live = _LiveRun(spec, self._engine, self._observer_for(spec), self._ensure_image)
        self._runs[spec.run_id] = live
        live.thread.start()
        return Handle(spec.run_id, spec.run_dir)

    def poll(self, handles: Sequence[Handle], patience: float) -> Mapping[str, RunState]:
        """States by run id; returns as soon as one of this process's runs ends."""
        deadline = time.monotonic() + patience
        for handle in handles:
            live = self._runs.get(handle.run_id)
            if live is not None:
                live.ended.wait(max(0.0, deadline - time.monotonic()))
        return {handle.run_id: self._state(handle) for handle in handles}

    def collect(self, handle: Handle) -> Evidence:
        """The run's evidence; a run whose process is gone without leaving any never reported."""
        live = self._runs.get(handle.run_id)
        if live is not None:
            live.ended.wait()
        try:
            document = json.loads((handle.run_dir / EVIDENCE).read_text(encoding="utf-8"))
            return from_json(document)
        except (OSError, ValueError, MADEngineError) as error:
            detail = f"{handle.run_dir / EVIDENCE}: {error}"
            return Evidence(handle.run_id, nodes=(NodeReport(0, host=os.uname().nodename, detail=detail),))

    def cancel(self, handle: Handle) -> None:
        """End the run: its own thread is told, another process is interrupted as Ctrl-C would."""
        live = self._runs.get(handle.run_id)
        if live is not None:
            live.cancel.set()
            return
        pid = _pid(handle.run_dir)
        if pid is not None and self._state(handle) is RunState.RUNNING:
            os.kill(pid, signal.SIGINT)

    def _state(self, handle: Handle) -> RunState:
        live = self._runs.get(handle.run_id)
        if live is not None:
            return RunState.ENDED if live.ended.is_set() else RunState.RUNNING
        if (handle.run_dir / EVIDENCE).exists():
            return RunState.ENDED
        pid = _pid(handle.run_dir)
        return RunState.RUNNING if pid is not None and _alive(pid) else RunState.ENDED


class _LiveRun:
    """A run of this process: the thread that carries it, the event that ends it, and the event that says it has ended.

    The thread itself is not asked: a Ctrl-C during ``Thread.join`` makes Python (before 3.13) take a thread that is
    alive for one that has ended.
    """

    def __init__(self, spec: RunSpec, engine: ContainerEngine, observer: Observer, ensure_image: ImageKeeper) -> None:
        self.cancel, self.ended = threading.Event(), threading.Event()
        self._spec, self._engine, self._observer, self._ensure_image = spec, engine, observer, ensure_image
        self.thread = threading.Thread(target=self._carry, name=spec.run_id, daemon=True)

    def _carry(self) -> None:
        try:
            self._run()
        finally:
            self.ended.set()

    def _run(self) -> None:
        """Run the model and leave the evidence; an error of the engine is evidence too."""
        try:
            if self._engine.needs_image:
                self._ensure_image(self._spec, self._observer)
            evidence = run_model(self._spec, self._engine, observer=self._observer, cancel=self.cancel)
        except MADEngineError as error:
            refused = Interruption(InterruptionKind.REFUSED, str(error))
            evidence = Evidence(self._spec.run_id, interruption=refused)
        except Exception as error:
            defect = f"madengine itself failed: {type(error).__name__}: {error}"
            evidence = Evidence(self._spec.run_id, nodes=(NodeReport(0, exit_code=1, detail=defect),))
        self._observer.phase("")
        text = json.dumps(to_json(evidence), indent=1)
        # The rows follow at once and wait for the disk; this is for other processes.
        write_atomic(self._spec.run_dir / EVIDENCE, text + "\n", durable=False)


def _pid(run_dir: Path) -> int | None:
    try:
        return int((run_dir / PID).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
