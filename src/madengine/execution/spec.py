"""Everything a target needs to run one model in one image, resolved once.

A :class:`RunSpec` is made by ``orchestration.plan`` from a manifest and the settings; nothing further left is asked
again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from madengine.catalog.card import ModelCard
from madengine.config.manifest import ImageRecord
from madengine.execution.engine import Mount


@dataclass(frozen=True)
class ScriptPlan:
    """The model's script.

    ``folder`` is the folder in the package whose contents go to the run directory, ``file`` the script's path
    relative to it, ``interpreter`` what runs it (``("bash",)`` or ``("python3",)``), ``args`` the card's args as
    shell text, passed on word by word.
    """

    folder: Path
    file: str
    interpreter: tuple[str, ...] = ("bash",)
    args: str = ""


@dataclass(frozen=True)
class HookScript:
    """A pre- or post-script: a path relative to ``/myworkspace`` and its arguments as shell text."""

    path: str
    args: str = ""


@dataclass(frozen=True)
class GpuGrant:
    """Which GPUs a run gets on this machine.

    ``vendor`` is AMD, NVIDIA or CPU. ``indices`` are the granted devices, ``total`` how many the machine has.
    ``render_nodes`` are the AMD device files in the order of ``indices``.
    """

    vendor: str = "CPU"
    indices: tuple[int, ...] = ()
    total: int = 0
    architecture: str = ""
    product: str = ""
    hip_version: str = ""
    render_nodes: tuple[str, ...] = ()


@dataclass(frozen=True)
class LogScanRules:
    """How the log is searched for error patterns when nothing was measured. ``patterns`` None means the defaults."""

    enabled: bool = True
    benign: tuple[str, ...] = ()
    patterns: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Place:
    """Where a run's nodes are, as seen from one of them: this machine alone unless a target says otherwise.

    ``nnodes`` nodes with ``gpus_per_node`` GPUs each (None: as many as are granted there); ``rank`` counts from 0 and
    ``hosts`` are the nodes' addresses in rank order. ``environment`` are variables that come from presets: whatever a
    person configured beats them. ``elsewhere`` means that the nodes are not this machine, whose GPUs say nothing then;
    ``provides`` are beginnings of names of variables that only the nodes have.
    """

    deployment: str = "local"
    nnodes: int = 1
    gpus_per_node: int | None = None
    rank: int = 0
    master_addr: str = "localhost"
    master_port: int | None = None
    hosts: tuple[str, ...] = ("localhost",)
    environment: Mapping[str, str] = field(default_factory=dict)
    elsewhere: bool = False
    provides: tuple[str, ...] = ()


@dataclass(frozen=True)
class Folders:
    """Where a run keeps things, and what it keeps away from.

    ``artefacts`` is the folder in the run directory for what the run left in its workspace. ``workspace`` is where that
    one lies when it is not in the run directory. ``others`` are folders of other runs, which are never copied into it.
    ``results`` are folders besides the workspace in which the declared results file may be left.
    """

    artefacts: str = "node_0"
    workspace: Path | None = None
    others: tuple[Path, ...] = ()
    results: tuple[Path, ...] = ()


@dataclass(frozen=True)
class RunSpec:
    """One model in one image.

    ``run_id`` is also the name of ``run_dir``. ``key`` is the manifest's key. ``environment`` holds what the script is
    given, ``secrets`` (name -> value) what it is given besides and what must never be written anywhere. ``prefix`` are
    the shell words of tools and ``encapsulate_script`` that stand before the script's interpreter. ``files`` (name ->
    text) are what the launcher wants in the script's folder. ``timeout`` is in seconds, None for no limit. ``skip`` is
    the reason when the run is skipped on purpose, ``refusal`` the one when it cannot be started. ``part`` tells
    the parts of a run apart that share its id, such as its nodes; empty when there is one.
    """

    run_id: str
    key: str
    card: ModelCard
    image: ImageRecord
    package: Path
    run_dir: Path
    engine: str
    script: ScriptPlan
    gpus: GpuGrant
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    mounts: tuple[Mount, ...] = ()
    run_options: tuple[str, ...] = ()
    cpus: str = ""
    user: str = ""
    prefix: tuple[str, ...] = ()
    pre_scripts: tuple[HookScript, ...] = ()
    post_scripts: tuple[HookScript, ...] = ()
    timeout: float | None = None
    results_file: str = ""
    expected_results: int | None = None
    log_scan: LogScanRules = LogScanRules()
    launcher: str = "none"
    place: Place = Place()
    files: Mapping[str, str] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    keep_alive: bool = False
    keep_workspace: bool = False
    skip: str | None = None
    refusal: str | None = None
    part: str = ""
    folders: Folders = Folders()

    @property
    def hidden(self) -> tuple[str, ...]:
        """The values that may stand in nothing that is shown or written."""
        from madengine.core.redact import secret_values, secret_words
        from madengine.core.shell import rough_words

        named = secret_values({**self.environment, **self.secrets})
        texts = (self.card.text("url"), self.card.text("additional_docker_run_options"), self.script.args)
        typed = [word for text in texts for word in secret_words(rough_words(text))]
        return (*self.secrets.values(), *named, *typed)

    @property
    def workspace(self) -> Path:
        """The run's private workspace, ``/myworkspace`` to the script."""
        return self.folders.workspace or self.run_dir / "workspace"

    @property
    def artefacts(self) -> Path:
        """Where artefacts are kept."""
        return self.run_dir / self.folders.artefacts

    @property
    def log(self) -> Path:
        """The model's own output."""
        return self.run_dir / "logs" / "run.log"
