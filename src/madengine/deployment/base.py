"""The seam between a run and where it happens: this machine, Slurm, Kubernetes.

A target checks, renders, submits, polls, collects and cancels. It hands back evidence and never decides success. A run
directory is enough to poll, collect or cancel later from another process.

Nothing outside a target's own package asks for its name: what differs is said by the target's class (``remote``,
``runs_root``) and by what it answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Protocol

from madengine.catalog.card import ModelCard
from madengine.execution.engine import ContainerEngine
from madengine.execution.runner import Observer
from madengine.execution.spec import GpuGrant, Place, RunSpec
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


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. ``state`` is ok, warning or problem; ``remedy`` is empty where none is needed."""

    subject: str
    state: str
    detail: str
    remedy: str = ""


@dataclass(frozen=True)
class Progress:
    """Where a run stands, in the target's own words, for people.

    ``job`` is the scheduler's id of it, ``state`` the scheduler's word, ``nodes`` where it runs, ``elapsed`` its age in
    seconds since it began to run, ``remark`` why it waits, or that the scheduler does not answer.
    """

    job: str = ""
    state: str = ""
    nodes: str = ""
    elapsed: float | None = None
    remark: str = ""


@dataclass(frozen=True)
class Observed:
    """What the machines that a run was on know of themselves; what is not known keeps its default.

    ``duration`` is what the run took there, in seconds, without the time it waited for its nodes; ``exit_code`` the
    one of the first node's script, ``job`` the scheduler's id of the run.
    """

    hosts: tuple[str, ...] = ()
    duration: float | None = None
    gpus: GpuGrant | None = None
    image_digest: str = ""
    exit_code: int | None = None
    job: str = ""


@dataclass(frozen=True)
class Workshop:
    """What targets work with; each takes what it needs.

    ``deployment`` is the effective ``deployment_config``, ``source`` the file that it comes from. ``inherited`` is the
    command's environment, ``environ`` the same with the env file on top, ``env_file`` the path of that file, None
    without one. ``order`` holds, as plain JSON values, what another machine's madengine has to know of this command's
    options (see ``deployment.order``). ``engine`` is None where it is chosen elsewhere; ``ensure_image`` makes a spec's
    image available on this machine or raises ``MADEngineError``.
    """

    deployment: Mapping[str, Any] = field(default_factory=dict)
    source: str = "context"
    inherited: Mapping[str, str] = field(default_factory=dict, repr=False)
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    env_file: Path | None = None
    order: Mapping[str, Any] = field(default_factory=dict)
    engine: ContainerEngine | None = None
    observer_for: Callable[[RunSpec], Observer] | None = None
    ensure_image: Callable[[RunSpec, Observer], None] | None = None


class Target(Protocol):
    """What every target offers.

    ``remote`` targets carry their runs on without the submitting process, and each node chooses its container engine.
    """

    name: ClassVar[str]
    remote: ClassVar[bool]

    @classmethod
    def runs_root(cls, deployment: Mapping[str, Any]) -> Path:
        """The folder that the run directories lie in, absolute."""

    @classmethod
    def create(cls, workshop: Workshop) -> Target:
        """The target for one command."""

    def place(self, card: ModelCard) -> Place:
        """On how many nodes a card runs, and with what on each. Raises ``ConfigurationError`` for what it cannot do."""

    def check(self, specs: Sequence[RunSpec]) -> tuple[CheckProblem, ...]:
        """Pre-flight: what would make these runs fail. Starts nothing."""

    def examine(self, cards: Sequence[ModelCard]) -> tuple[Finding, ...]:
        """What runs of these cards rely on there, good and bad, for `madengine doctor`."""

    def render(self, spec: RunSpec) -> Rendering:
        """Pure: what a submit of this run would hand over."""

    def submit(self, spec: RunSpec, rendering: Rendering, after: Handle | None = None) -> Handle:
        """Start the run. A refusal is evidence (collect tells it), not an exception.

        A remote target begins it when the run ``after`` has ended, however that ended.
        """

    def poll(self, handles: Sequence[Handle], patience: float) -> Mapping[str, RunState]:
        """States by run id; waits up to ``patience`` seconds for a change."""

    def progress(self, handles: Sequence[Handle]) -> Mapping[str, Progress]:
        """By run id, what the last poll saw. Asks nobody."""

    def collect(self, handle: Handle) -> Evidence:
        """What was seen of an ended run."""

    def observed(self, handle: Handle) -> Observed:
        """What the run's machines know of themselves."""

    def cancel(self, handle: Handle) -> None:
        """End the run. Safe to call twice, and on an ended run."""


TARGETS: Mapping[str, str] = {
    "local": "madengine.deployment.local:LocalTarget",
    "slurm": "madengine.deployment.slurm.target:SlurmTarget",
}
"""Target name -> ``module:class``, imported on use. A name that is not here is refused before anything is started."""


def target_class(name: str) -> type[Target]:
    """The class of a target; its name is one of ``TARGETS``."""
    module, attribute = TARGETS[name].split(":")
    found: type[Target] = getattr(import_module(module), attribute)
    return found
