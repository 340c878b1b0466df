"""Turning a manifest into run specs: one per model and image, everything a target needs resolved once.

A model that cannot be started - its script is not there, it asks for more GPUs than there are - becomes a spec with a
refusal, so that it leaves a row and the others run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from madengine.catalog.card import ModelCard
from madengine.config.context import env_map
from madengine.config.credentials import Credentials
from madengine.config.manifest import BuildManifest, ImageRecord
from madengine.config.tools import Hook, ToolStack, hooks, stack_tools
from madengine.core.errors import ConfigurationError, MADEngineError
from madengine.core.files import safe_name
from madengine.core.shell import split_words
from madengine.execution.gpu import GpuInventory, grant
from madengine.execution.spec import GpuGrant, HookScript, Place, RunSpec, ScriptPlan
from madengine.launchers.registry import DISPLAY_NONE, canonical_name, launch
from madengine.launchers.topology import Launch, Topology
from madengine.orchestration.environment import assemble, machine_facts, rocm_path
from madengine.orchestration.resources import (
    OPTIONS,
    bind_mounts,
    credential_variables,
    data_facts,
    data_mounts,
    data_sources,
    data_variables,
    engine_options,
    expected_results,
    log_rules,
    require_pre_scripts,
)
from madengine.orchestration.scripts import script_plan
from madengine.profiling import ENVIRONMENT_SCRIPT
from madengine.reporting.log_rules import compile_rules


@dataclass(frozen=True)
class RunOptions:
    """What the command line says about runs.

    ``timeout`` is in seconds, 0 for none, None when not given. ``run_anywhere`` runs models also on architectures that
    their card skips; ``system_environment`` records the environment of each run.
    """

    timeout: float | None = None
    keep_alive: bool = False
    keep_workspace: bool = False
    skip_model_run: bool = False
    run_anywhere: bool = False
    system_environment: bool = False


@dataclass(frozen=True)
class Surroundings:
    """What the planner needs to know of the world, read once at the edge.

    ``environ`` is the inherited environment with the env file on top, ``handed_on`` what of it every script is given
    as it is, ``stamp`` the command's UTC time for run ids, ``tools`` and ``data`` are the loaded definitions,
    ``credentials`` the loaded credential file, ``refusals`` (manifest key -> sentence) models that cannot run.
    ``place_of`` says on which nodes a card runs; it may raise what makes that impossible.
    """

    package: Path
    runs_root: Path
    engine: str
    inventory: GpuInventory
    environ: Mapping[str, str] = field(repr=False)
    handed_on: Mapping[str, str] = field(default_factory=dict, repr=False)
    stamp: str = ""
    tools: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    data: Mapping[str, Any] | None = None
    credentials: Credentials = field(default_factory=dict, repr=False)
    refusals: Mapping[str, str] = field(default_factory=dict)
    place_of: Callable[[ModelCard], Place] = lambda card: Place()  # noqa: ARG005


@dataclass(frozen=True)
class Plan:
    """The specs in the order of the manifest, and remarks that the user should read before they run.

    ``environ`` is the environment that the runs were planned in: the inherited one with the env file on top.
    """

    specs: tuple[RunSpec, ...]
    warnings: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)


def plan_runs(manifest: BuildManifest, options: RunOptions, world: Surroundings) -> Plan:
    """One spec per model of the manifest. Raises ``ConfigurationError`` for what is wrong with all of them."""
    common = _Common.of(manifest, options, world)
    specs: list[RunSpec] = []
    warnings: list[str] = []
    for key, card in manifest.models.items():
        spec, remarks = _plan_one(key, card, manifest.images[key], common)
        specs.append(spec)
        warnings += [f"{card.name}: {remark}" for remark in remarks]
    return Plan(tuple(specs), tuple(dict.fromkeys(warnings)), world.environ)


@dataclass(frozen=True)
class _Common:
    """What all models of one manifest share."""

    options: RunOptions
    world: Surroundings
    context: Mapping[str, Any]
    deployment: Mapping[str, Any]
    tools: ToolStack
    pre_scripts: tuple[Hook, ...]
    post_scripts: tuple[Hook, ...]

    @classmethod
    def of(cls, manifest: BuildManifest, options: RunOptions, world: Surroundings) -> _Common:
        context = manifest.context
        tools = stack_tools(context.get("tools") or (), world.tools)
        return cls(
            options,
            world,
            context,
            manifest.deployment_config or {},
            tools,
            (
                *((Hook(ENVIRONMENT_SCRIPT),) if options.system_environment else ()),
                *hooks(context.get("pre_scripts")),
                *tools.pre_scripts,
            ),
            (*tools.post_scripts, *hooks(context.get("post_scripts"))),
        )

    @property
    def docker_gpus(self) -> str:
        given = (block.get("docker_gpus") for block in (self.context, self.deployment))
        return next((str(gpus) for gpus in given if gpus not in (None, "")), "")

    def configured(self, card: ModelCard, presets: Mapping[str, str] | None = None) -> tuple[Mapping[str, str], ...]:
        """The variables of presets and then those that people wrote down, the strongest last."""
        return (
            presets or {},
            self.tools.environment,
            card.env_vars,
            env_map(self.context.get("docker_env_vars")),
            env_map(self.deployment.get("env_vars")),
        )


def _plan_one(key: str, card: ModelCard, image: ImageRecord, common: _Common) -> tuple[RunSpec, list[str]]:
    """The spec of one model; whatever makes it impossible becomes its refusal."""
    bare = _bare_spec(key, card, image, common)
    if bare.skip:
        return bare, []
    if key in common.world.refusals:
        return replace(bare, refusal=common.world.refusals[key]), []
    try:
        return _full_spec(bare, common)
    except MADEngineError as error:
        return replace(bare, refusal=str(error)), []


def _bare_spec(key: str, card: ModelCard, image: ImageRecord, common: _Common) -> RunSpec:
    world, options = common.world, common.options
    # A run that is refused keeps the values of its secrets, too: whatever is written of it must not show them.
    secrets = assemble((), common.configured(card), world.environ).secrets
    run_id = f"{world.stamp}-{safe_name(card.name.replace('/', '_'), 80)}-{os.urandom(3).hex()}"
    return RunSpec(
        run_id=run_id,
        key=key,
        card=card,
        image=image,
        package=world.package,
        run_dir=world.runs_root / run_id,
        engine=world.engine,
        script=ScriptPlan(world.package, card.text("scripts"), args=card.text("args")),
        gpus=GpuGrant(vendor=world.inventory.vendor, total=world.inventory.count),
        secrets=secrets,
        timeout=_timeout(card, common),
        results_file=card.text("multiple_results"),
        launcher=_launcher_label(card, common),
        keep_alive=options.keep_alive,
        keep_workspace=options.keep_workspace,
        skip=_skip_reason(card, common),
    )


def _full_spec(bare: RunSpec, common: _Common) -> tuple[RunSpec, list[str]]:
    card, world = bare.card, common.world
    script = script_plan(card, world.package)
    require_pre_scripts(common.pre_scripts, world.package)
    place = world.place_of(card)
    gpus = grant(_inventory_at(place, world.inventory), card.n_gpus, common.docker_gpus)
    sources = data_sources(card, world.data)
    launcher = _launch(card, gpus, place, common)
    facts = (
        world.handed_on,
        machine_facts(card.name, gpus, str(common.context.get("guest_os") or "UBUNTU")),
        rocm_path(common.context),
        launcher.environment,
        data_variables(sources),
        credential_variables(card, world.credentials),
    )
    environment = assemble(facts, common.configured(card, place.environment), world.environ)
    options = engine_options(card, world.environ, environment.secrets)
    rules = log_rules(card, common.context)
    compile_rules(rules)
    spec = replace(
        bare,
        script=script,
        gpus=gpus,
        environment=environment.plain,
        secrets={**options.secrets, **environment.secrets},
        mounts=(*bind_mounts(env_map(common.context.get("docker_mounts")), world.environ), *data_mounts(sources)),
        run_options=options.words,
        cpus=str(common.context.get("docker_cpus") or ""),
        prefix=_prefix(common),
        pre_scripts=tuple(HookScript(hook.path, hook.args) for hook in common.pre_scripts),
        post_scripts=tuple(HookScript(hook.path, hook.args) for hook in common.post_scripts),
        expected_results=expected_results(card, common.context),
        log_scan=rules,
        place=place,
        files=launcher.files,
        data=data_facts(sources),
    )
    unset = [*environment.unset, *((OPTIONS, name) for name in options.unset)]
    missing = [(where, name) for where, name in unset if not name.startswith(place.provides)]
    return spec, [f"{where} refers to ${{{name}}}, which is not set here" for where, name in missing]


def _inventory_at(place: Place, here: GpuInventory) -> GpuInventory:
    """The GPUs that a node has: this machine's, or those that are asked for when the nodes are elsewhere."""
    if not place.elsewhere:
        return here
    count = place.gpus_per_node or 0
    return GpuInventory(vendor=here.vendor if count else "CPU", count=count)


def _launch(card: ModelCard, gpus: GpuGrant, place: Place, common: _Common) -> Launch:
    """The launcher at this node; on this machine alone a script without a ``distributed`` block gets no variables."""
    block = _distributed(card, common)
    if not block and place.deployment == "local":
        return Launch()
    processes = int(block.get("nproc_per_node") or 0) or place.gpus_per_node or max(1, len(gpus.indices))
    topology = Topology(
        processes,
        nnodes=place.nnodes,
        node_rank=place.rank,
        master_addr=place.master_addr,
        master_port=int(block.get("port") or block.get("master_port") or place.master_port or 29500),
        hosts=place.hosts,
        deployment=place.deployment,
        model_name=card.name,
        block=block,
    )
    return launch(_launcher_name(block) if block else "none", topology)


def _distributed(card: ModelCard, common: _Common) -> Mapping[str, Any]:
    block = common.deployment.get("distributed")
    return block if isinstance(block, Mapping) and block else card.block("distributed")


def _launcher_name(block: Mapping[str, Any]) -> str:
    return str(block.get("launcher") or "torchrun")


def _launcher_label(card: ModelCard, common: _Common) -> str:
    """What perf.csv's ``launcher`` column says."""
    block = _distributed(card, common)
    if not block:
        return DISPLAY_NONE["local"]
    try:
        name = canonical_name(_launcher_name(block))
    except ConfigurationError:
        return _launcher_name(block)
    return DISPLAY_NONE["local"] if name == "none" else name


def _timeout(card: ModelCard, common: _Common) -> float | None:
    """Explicit value, then the context's, then the card's, then the default; 0 and less mean no limit."""
    given = common.options.timeout
    if given is None and common.context.get("timeout") is not None:
        given = float(common.context["timeout"])
    if given is None:
        return card.timeout
    return given if given > 0 else None


def _skip_reason(card: ModelCard, common: _Common) -> str | None:
    if common.options.skip_model_run:
        return "--skip-model-run was given"
    here = common.world.inventory.architecture
    if here and here in card.skip_gpu_arch and not common.options.run_anywhere:
        return f"the card skips GPU architecture {here} (--disable-skip-gpu-arch runs it all the same)"
    return None


def _prefix(common: _Common) -> tuple[str, ...]:
    """The words before the interpreter: tools in their order, then ``encapsulate_script``."""
    parts = [*common.tools.commands, str(common.context.get("encapsulate_script") or "")]
    return tuple(word for part in parts for word in split_words(part))
