"""The seam between a run and where it happens: this machine, Slurm, Kubernetes.

A target checks, renders, submits, polls, collects and cancels. It hands back evidence and never decides success. A run
directory is enough to poll, collect or cancel later from another process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

from madengine.execution.spec import RunSpec
from madengine.verdict.evidence import Evidence


class RunState(str, Enum):
    """How far a submitted run is."""

    PENDING = "pending"
    RUNNING = "running"
    ENDED = "ended"


@dataclass(frozen=True)
class Rendering:
    """What a submit would hand over: text artefacts for the run directory (name -> text) and facts to be shown.

    A dry run prints it, a submit takes it. It never holds a secret, only names.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Handle:
    """A submitted run: its id and its directory."""

    run_id: str
    run_dir: Path


@dataclass(frozen=True)
class CheckProblem:
    """Something that would make runs fail: one line, and its remedy."""

    message: str
    remedy: str = ""


class Target(Protocol):
    """What every target offers."""

    name: str

    def check(self, specs: Sequence[RunSpec]) -> tuple[CheckProblem, ...]:
        """Pre-flight: what would make these runs fail. Starts nothing."""

    def render(self, spec: RunSpec) -> Rendering:
        """Pure: what a submit of this run would hand over."""

    def submit(self, spec: RunSpec, rendering: Rendering) -> Handle:
        """Start the run. A refusal is evidence (collect tells it), not an exception."""

    def poll(self, handles: Sequence[Handle], patience: float) -> Mapping[str, RunState]:
        """States by run id; waits up to ``patience`` seconds for a change."""

    def collect(self, handle: Handle) -> Evidence:
        """What was seen of an ended run."""

    def cancel(self, handle: Handle) -> None:
        """End the run. Safe to call twice, and on an ended run."""


TARGETS: Mapping[str, str] = {"local": "madengine.deployment.local:LocalTarget"}
"""Target name -> ``module:class``. A name that is not here is refused before anything is started."""
