"""From a job order to the run of one node: what is to be run, where it stands among the others, and with what."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

import madengine
from madengine.config.context import settings_of
from madengine.config.credentials import load_credentials
from madengine.config.manifest import BuildManifest
from madengine.config.manifest_io import read_manifest
from madengine.core.env_file import load_env_file
from madengine.core.errors import ConfigurationError
from madengine.core.shell import expand
from madengine.deployment.order import FILE_NAME, JobOrder, read_order
from madengine.execution.engine import ContainerEngine
from madengine.execution.gpu import GpuInventory, restricted
from madengine.execution.spec import Folders, Place, RunSpec
from madengine.orchestration.inputs import data_for, tools_for
from madengine.orchestration.plan import RunOptions, Surroundings, plan_runs
from madengine.orchestration.prepare import RunRequest

MANIFEST = "manifest.json"
ARTEFACTS = "artefacts"
HOSTS = "MADENGINE_HOSTS"  # the nodes' addresses in rank order, with commas between them
GIVEN_GPUS = ("SLURM_STEP_GPUS", "SLURM_JOB_GPUS")  # srun(1): the step's beat the job's
NODE_NAMES = ("SLURMD_NODENAME",)  # what the scheduler calls this machine (srun(1))
PASSED_ON = ("MAD_SLURM_JOB_ID", "MAD_TOTAL_NODES", "MAD_NODE_RANK")  # what scripts ask about their job
ATTEMPT = "SLURM_RESTART_COUNT"  # sbatch(1): how often the job was requeued


@dataclass(frozen=True)
class NodeInputs:
    """What a run directory and the environment tell one rank.

    ``environ`` is the inherited environment with the env file on top, ``added`` what that file added. ``manifest``
    holds the one model of the order.
    """

    order: JobOrder
    manifest: BuildManifest
    rank: int
    run_dir: Path
    environ: Mapping[str, str] = field(repr=False)
    added: Mapping[str, str] = field(default_factory=dict, repr=False)
    notes: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """The rank's own folder."""
        return node_folder(self.run_dir, self.rank)

    @property
    def given_gpus(self) -> str:
        """The GPUs that the scheduler gave to this job on this machine, empty when it does not say."""
        return next((self.environ[name] for name in GIVEN_GPUS if self.environ.get(name)), "")

    @property
    def host(self) -> str:
        """This machine as the scheduler calls it, else by its own name."""
        return next((self.environ[name] for name in NODE_NAMES if self.environ.get(name)), os.uname().nodename)


def node_folder(run_dir: Path, rank: int) -> Path:
    """The folder of one rank in a run directory."""
    return run_dir / f"node_{rank}"


def read_inputs(run_dir: Path, rank: int, environ: Mapping[str, str]) -> NodeInputs:
    """Read the order, its manifest and its env file. Raises ``ConfigurationError`` for what cannot be carried out."""
    order = read_order(run_dir)
    if not 0 <= rank < order.nnodes:
        raise ConfigurationError(
            f"there is no rank {rank}: the run has {_nodes(order)}", where=str(run_dir / FILE_NAME)
        )
    manifest, warnings = read_manifest(run_dir / MANIFEST)
    added = load_env_file(order.env_file, environment=environ) if order.env_file else {}
    return NodeInputs(
        order=order,
        manifest=_only(order.key, manifest),
        rank=rank,
        run_dir=run_dir,
        environ={**environ, **added},
        added=added,
        notes=(*warnings, *_version_note(order)),
    )


def plan_node(inputs: NodeInputs, engine: ContainerEngine, inventory: GpuInventory) -> tuple[RunSpec, tuple[str, ...]]:
    """The spec of this rank, and remarks on it. Raises ``ConfigurationError`` for what is wrong with the whole run."""
    order, package = inputs.order, Path(inputs.order.package)
    if not package.is_dir():
        raise ConfigurationError(
            "the model package is not there on this node: it has to lie on storage that all nodes see",
            where=str(package),
        )
    place = place_here(order, inputs.rank, inputs.environ)
    world = Surroundings(
        package=package,
        runs_root=inputs.run_dir,
        engine=engine.name,
        inventory=restricted(inventory, inputs.given_gpus),
        environ=inputs.environ,
        # Without a container a script inherits this process's environment, and the env file stands above that.
        handed_on={} if engine.needs_image else inputs.added,
        tools=tools_for(package, _path(order.tools_config)),
        data=data_for(package, _path(order.data_config)),
        credentials=load_credentials(package, inputs.environ),
        place_of=lambda card: place,  # noqa: ARG005
    )
    plan = plan_runs(inputs.manifest, run_options(order), world)
    return _as_part(plan.specs[0], inputs), plan.warnings


def request_of(inputs: NodeInputs, inventory: GpuInventory) -> RunRequest:
    """What making the image available has to know of the command that was given elsewhere."""
    settings = settings_of(inputs.manifest.context, inputs.environ)
    vendor = inputs.order.gpu_vendor or settings.gpu_vendor or inventory.vendor
    return RunRequest(
        package=Path(inputs.order.package),
        settings=replace(settings, gpu_vendor=vendor),
        options=run_options(inputs.order),
        environ=inputs.environ,
    )


def place_here(order: JobOrder, rank: int, environ: Mapping[str, str]) -> Place:
    """Where this rank stands. Raises ``ConfigurationError`` when the job does not say where the others are."""
    hosts = tuple(host for host in environ.get(HOSTS, "").split(",") if host) or (os.uname().nodename,)
    if len(hosts) != order.nnodes and order.reporters > 1:
        raise ConfigurationError(
            f"the run has {_nodes(order)}, and {HOSTS} names {len(hosts)}",
            hint="the job's own script sets it: this command is not for people",
        )
    return Place(
        deployment=order.target,
        nnodes=order.nnodes,
        gpus_per_node=order.gpus_per_node or None,
        rank=rank,
        master_addr=environ.get("MASTER_ADDR") or hosts[0],
        master_port=_port(environ.get("MASTER_PORT", "")) or order.master_port,
        hosts=hosts,
        environment={**{name: environ[name] for name in PASSED_ON if environ.get(name)}, **order.environment},
    )


def run_options(order: JobOrder) -> RunOptions:
    """The options of the command that was given; those that this version does not know are left out."""
    known = {each.name for each in fields(RunOptions)}
    return RunOptions(**{name: value for name, value in order.options.items() if name in known})


def _as_part(spec: RunSpec, inputs: NodeInputs) -> RunSpec:
    """The spec with the run's id and this rank's folders; its containers are those of this rank and attempt alone."""
    run_dir, rank = inputs.run_dir, inputs.rank
    shared = _shared_workspace(inputs.order)
    attempt = inputs.environ.get(ATTEMPT, "")
    return replace(
        spec,
        run_id=inputs.order.run_id,
        run_dir=inputs.folder,
        part=f"node{rank}" + (f"-{attempt}" if attempt not in ("", "0") else ""),
        folders=Folders(
            artefacts=ARTEFACTS,
            workspace=shared / inputs.order.run_id / f"node_{rank}" if shared else None,
            others=(run_dir.parent, *_neighbours(spec, run_dir.parent), *([shared] if shared else [])),
            results=_results_folders(inputs),
        ),
    )


def _shared_workspace(order: JobOrder) -> Path | None:
    """The folder for the workspaces of all runs, when there is one; relative to where the command was given."""
    return Path(order.directory, order.workspaces).absolute() if order.workspaces else None


def _results_folders(inputs: NodeInputs) -> tuple[Path, ...]:
    """Where a script leaves its results besides its workspace; names in the path are those of this node."""
    text, _ = expand(inputs.order.results_dir, inputs.environ)
    return (Path(inputs.order.directory, text).expanduser(),) if text else ()


def _neighbours(spec: RunSpec, runs: Path) -> list[Path]:
    """The other run directories, when they lie right in a folder that is copied."""
    if runs.resolve() not in (spec.script.folder.resolve(), (spec.package / "scripts").resolve()):
        return []
    return [path.parent for path in runs.glob(f"*/{FILE_NAME}")]


def _only(key: str, manifest: BuildManifest) -> BuildManifest:
    if key not in manifest.models:
        raise ConfigurationError(
            f"the manifest has no model {key!r}, which the order names", where=f"{manifest.source}#/built_models"
        )
    return replace(manifest, models={key: manifest.models[key]}, images={key: manifest.images[key]})


def _version_note(order: JobOrder) -> tuple[str, ...]:
    here = madengine.__version__
    return () if order.madengine == here else (f"submitted by madengine {order.madengine}, run here by {here}",)


def _nodes(order: JobOrder) -> str:
    return "1 node" if order.nnodes == 1 else f"{order.nnodes} nodes"


def _port(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() else None


def _path(text: str) -> Path | None:
    return Path(text) if text else None
