"""From a command line to a plan: which engine, which models, which images, which runs.

Everything that can be wrong with the request is found here, before anything is started or written.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from madengine.config.credentials import load_credentials
from madengine.config.data import load_data_config
from madengine.config.manifest import BuildManifest
from madengine.config.settings import Settings
from madengine.config.tools import load_tools
from madengine.core.errors import ConfigurationError
from madengine.deployment.base import TARGETS
from madengine.execution.engine import ContainerEngine
from madengine.execution.gpu import GpuInventory, detect
from madengine.orchestration.effective import effective_manifest
from madengine.orchestration.plan import Plan, RunOptions, Surroundings, plan_runs
from madengine.profiling import TOOLS_FILE

PACKAGE_TOOLS = "tools.json"
PACKAGE_DATA = "data.json"
RUNS = Path("runs")


@dataclass(frozen=True)
class RunRequest:
    """What the command line asks for, besides how images are built.

    ``data_config`` and ``tools_config`` are files that the user named; without them the package's own are read when it
    has some.
    """

    package: Path
    settings: Settings
    options: RunOptions
    data_config: Path | None = None
    tools_config: Path | None = None
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Source:
    """A manifest to run from. ``refusals`` (key -> sentence) are models in it that have no image to run in.

    ``built`` is the manifest without these, as ``madengine build`` writes it; None when nothing was built.
    ``interrupted``: the builds were broken off, so nothing is to run. ``cancelled`` are the keys of the models whose
    build that ended, ``not_started`` of those whose build had not begun; both stand in ``refusals``, too.
    """

    manifest: BuildManifest
    refusals: Mapping[str, str] = field(default_factory=dict)
    build_failed: bool = False
    built: BuildManifest | None = None
    interrupted: bool = False
    cancelled: frozenset[str] = frozenset()
    not_started: frozenset[str] = frozenset()


def for_this_machine(settings: Settings, inventory: GpuInventory) -> Settings:
    """Settings whose vendor is the machine's own when the user named none, so that a run builds what it can use."""
    return settings if settings.gpu_vendor else replace(settings, gpu_vendor=inventory.vendor)


def prepare_runs(source: Source, request: RunRequest, engine: ContainerEngine, inventory: GpuInventory) -> Plan:
    """The plan for what a manifest holds. Raises ``ConfigurationError`` before anything is started."""
    effective = effective_manifest(source.manifest, request.settings)
    _require_package(request.package)
    _require_models(effective)
    _require_local(effective, request.settings)
    added = _env_file(effective)
    environ = {**request.environ, **added}
    world = Surroundings(
        package=request.package,
        runs_root=RUNS.absolute(),
        engine=engine.name,
        inventory=inventory,
        environ=environ,
        # Without a container a script inherits the caller's environment, and the env file stands above that.
        handed_on={} if engine.needs_image else added,
        stamp=f"{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}",
        tools=load_tools(_tool_files(request)),
        data=_data(request),
        credentials=load_credentials(request.package, environ),
        refusals=source.refusals,
    )
    return plan_runs(effective, request.options, world)


def _require_models(manifest: BuildManifest) -> None:
    if not manifest.models:
        raise ConfigurationError(
            "the manifest holds no model, so there is nothing to run",
            where=str(manifest.source or "manifest"),
            hint="its summary says which builds failed; `madengine build` makes a new one",
        )


def _require_package(package: Path) -> None:
    if not os.path.isdir(package):  # noqa: PTH112 - Path.is_dir raises for a name that is too long
        raise ConfigurationError(
            "there is no model package: the scripts of the models are to be found there",
            where=str(package),
            hint="go to the package, or name it with --model-dir",
        )


def _require_local(manifest: BuildManifest, settings: Settings) -> None:
    """A job for a scheduler, or one of several nodes, never silently becomes a run on this machine."""
    where = f"{manifest.source or 'context'}#/deployment_config"
    target = _target(manifest, settings)
    if target not in TARGETS and target != "docker":
        raise ConfigurationError(
            f"the target is {target}, and this madengine knows only: {', '.join(TARGETS)}",
            where=where,
            hint="""to run it here all the same: --additional-context '{"target": "local"}'""",
        )
    nodes = (manifest.deployment_config.get("distributed") or {}).get("nnodes") or 1
    if int(nodes) > 1:
        raise ConfigurationError(
            f"the runs are for {nodes} nodes, and on this machine a run has one",
            where=f"{where}/distributed/nnodes",
            hint="""to run them on one all the same: --additional-context '{"distributed": {"nnodes": 1}}'""",
        )


def _target(manifest: BuildManifest, settings: Settings) -> str:
    """What the context says, else what the manifest says; a block for a scheduler says it, too."""
    if settings.context.get("target") or settings.target != "local":
        return settings.target
    deployment = manifest.deployment_config
    implied = next((name for name in ("slurm", "k8s", "kubernetes") if deployment.get(name)), "local")
    return str(deployment.get("target") or implied)


def _env_file(manifest: BuildManifest) -> dict[str, str]:
    """What ``deployment_config.env_file`` adds; a relative path is relative to the manifest, if that is a file."""
    name = manifest.deployment_config.get("env_file")
    if not name:
        return {}
    from madengine.core.env_file import load_env_file

    source = manifest.source
    base = source.absolute().parent if source and not source.is_fifo() else Path.cwd()
    return dict(load_env_file(str(name), base_dir=base))


def _tool_files(request: RunRequest) -> list[Path]:
    own = request.package / PACKAGE_TOOLS
    named = [request.tools_config] if request.tools_config else []
    return [TOOLS_FILE, *([own] if os.path.lexists(own) else []), *named]


def _data(request: RunRequest) -> Mapping[str, Any] | None:
    own = request.package / PACKAGE_DATA
    path = request.data_config or (own if os.path.lexists(own) else None)
    return load_data_config(path) if path else None


def inventory_for(settings: Settings) -> GpuInventory:
    """The machine's GPUs; a vendor that the user named limits the search, CPU to none at all."""
    return detect(settings.gpu_vendor)


def make_runs_folder() -> None:
    """Make the folder of all runs; raises ``ConfigurationError`` when it cannot be written."""
    try:
        RUNS.mkdir(exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"the folder of run directories cannot be made: {error.strerror}", where=str(RUNS.absolute())
        ) from error
    if not os.access(RUNS, os.W_OK):
        raise ConfigurationError("the folder of run directories cannot be written", where=str(RUNS.absolute()))
