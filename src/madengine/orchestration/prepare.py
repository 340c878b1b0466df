"""From a command line to a plan: which target, which models, which images, which runs.

Everything that can be wrong with the request is found here, before anything is started or written.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from madengine.config.credentials import load_credentials
from madengine.config.manifest import BuildManifest
from madengine.config.settings import Settings
from madengine.core.errors import ConfigurationError
from madengine.core.redact import mask_argv
from madengine.deployment.base import TARGETS, Target, Workshop, target_class
from madengine.execution.engine import ContainerEngine
from madengine.execution.gpu import GpuInventory, detect
from madengine.execution.runner import Observer
from madengine.execution.spec import RunSpec
from madengine.orchestration.effective import effective_manifest
from madengine.orchestration.facts import BUILD_VARIABLE, PIPELINE_VARIABLE
from madengine.orchestration.inputs import data_for, tools_for
from madengine.orchestration.plan import Plan, RunOptions, Surroundings, plan_runs

if TYPE_CHECKING:
    from madengine.orchestration.images_here import ImageKeeper

ROW_VARIABLES = (PIPELINE_VARIABLE, BUILD_VARIABLE)
ALIASES: Mapping[str, str] = {"docker": "local", "kubernetes": "k8s"}
"""Other names of targets that manifests use."""


@dataclass(frozen=True)
class RunRequest:
    """What the command line asks for, besides how images are built.

    ``data_config`` and ``tools_config`` are files that the user named; without them the package's own are read when it
    has some. ``engine`` is the engine that the user named, ``command`` the command line, ``output`` what ``--output``
    says: a run elsewhere takes them along.
    """

    package: Path
    settings: Settings
    options: RunOptions
    data_config: Path | None = None
    tools_config: Path | None = None
    engine: str = ""
    command: tuple[str, ...] = field(default=(), repr=False)
    output: str = ""
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


@dataclass(frozen=True)
class Prepared:
    """What is to be run, where, and from which effective manifest.

    ``digest_of`` tells the digest of an image that was made available on this machine, empty for another.
    """

    plan: Plan
    target: Target
    manifest: BuildManifest
    digest_of: Callable[[str], str] = lambda reference: ""  # noqa: ARG005


@dataclass(frozen=True)
class Means:
    """What a command runs and builds with. ``engine`` is None where every node chooses its own.

    ``keeper_of`` makes what keeps images on this machine, from the request and the effective manifest.
    """

    engine: ContainerEngine | None
    inventory: GpuInventory
    observer_for: Callable[[RunSpec], Observer] | None = None
    keeper_of: Callable[[RunRequest, BuildManifest], ImageKeeper] | None = None


def for_this_machine(settings: Settings, inventory: GpuInventory) -> Settings:
    """Settings whose vendor is the machine's own when the user named none, so that a run builds what it can use."""
    return settings if settings.gpu_vendor else replace(settings, gpu_vendor=inventory.vendor)


def target_of(manifest: BuildManifest, settings: Settings) -> type[Target]:
    """The target of a manifest's runs. Raises ``ConfigurationError``: a job never silently becomes a run elsewhere."""
    name = _target_name(manifest, settings)
    if name not in TARGETS:
        raise ConfigurationError(
            f"the target is {name}, and this madengine knows only: {', '.join(TARGETS)}",
            where=f"{manifest.source or 'context'}#/deployment_config",
            hint="""to run it here all the same: --additional-context '{"target": "local"}'""",
        )
    return target_class(name)


def prepare_runs(source: Source, request: RunRequest, means: Means) -> Prepared:
    """The plan for what a manifest holds. Raises ``ConfigurationError`` before anything is started."""
    effective = effective_manifest(source.manifest, request.settings)
    _require_package(request.package)
    _require_models(effective)
    kind = target_of(effective, request.settings)
    env_file = env_file_of(effective)
    added = _loaded(env_file)
    here = replace(request, environ={**request.environ, **added})
    engine = means.engine
    keeper = means.keeper_of(here, effective) if means.keeper_of else None
    target = kind.create(
        Workshop(
            deployment=effective.deployment_config,
            source=str(source.manifest.source or "context"),
            inherited=request.environ,
            environ=here.environ,
            env_file=env_file,
            order=_order(here),
            engine=engine,
            observer_for=means.observer_for,
            ensure_image=keeper,
        )
    )
    world = Surroundings(
        package=request.package,
        runs_root=kind.runs_root(effective.deployment_config),
        engine=engine.name if engine and not kind.remote else request.engine,
        inventory=means.inventory,
        environ=here.environ,
        # Without a container a script inherits the caller's environment, and the env file stands above that.
        handed_on=added if engine and not engine.needs_image else {},
        stamp=f"{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}",
        tools=tools_for(request.package, request.tools_config),
        data=data_for(request.package, request.data_config),
        credentials=load_credentials(request.package, here.environ),
        refusals=source.refusals,
        place_of=target.place,
    )
    plan = plan_runs(effective, request.options, world)
    return Prepared(plan, target, effective, keeper.digest_of) if keeper else Prepared(plan, target, effective)


def _order(request: RunRequest) -> dict[str, Any]:
    """What a node's madengine has to know of this command, see ``deployment.order``."""
    hidden = request.settings.secrets.values()
    return {
        "package": str(request.package),
        "engine": request.engine,
        "gpu_vendor": request.settings.gpu_vendor or "",
        "data_config": _absolute(request.data_config),
        "tools_config": _absolute(request.tools_config),
        "options": asdict(request.options),
        "command": mask_argv(request.command, hidden),
        "row": {name: request.environ[name] for name in ROW_VARIABLES if request.environ.get(name)},
        "directory": str(Path.cwd()),
        "output": request.output,
    }


def _absolute(path: Path | None) -> str:
    return str(path.absolute()) if path else ""


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


def _target_name(manifest: BuildManifest, settings: Settings) -> str:
    """What the context says, else what the manifest says; a block for a scheduler says it, too."""
    if settings.context.get("target") or settings.target != "local":
        return ALIASES.get(settings.target, settings.target)
    deployment = manifest.deployment_config
    implied = next((name for name in ("slurm", "k8s", "kubernetes") if deployment.get(name)), "local")
    name = str(deployment.get("target") or implied)
    return ALIASES.get(name, name)


def env_file_of(manifest: BuildManifest) -> Path | None:
    """The env file that the manifest names; a relative path is relative to the manifest, if that is a file."""
    name = manifest.deployment_config.get("env_file")
    if not name:
        return None
    source = manifest.source
    from madengine.core.env_file import env_file_path

    return env_file_path(str(name), source.absolute().parent if source and not source.is_fifo() else None)


def _loaded(env_file: Path | None) -> dict[str, str]:
    if env_file is None:
        return {}
    from madengine.core.env_file import load_env_file

    return dict(load_env_file(str(env_file)))


def inventory_for(settings: Settings) -> GpuInventory:
    """The machine's GPUs; a vendor that the user named limits the search, CPU to none at all."""
    return detect(settings.gpu_vendor)


def make_runs_folder(folder: Path) -> None:
    """Make the folder of all runs; raises ``ConfigurationError`` when it cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"the folder of run directories cannot be made: {error.strerror}", where=str(folder)
        ) from error
    if not os.access(folder, os.W_OK):
        raise ConfigurationError("the folder of run directories cannot be written", where=str(folder))
