"""Turning a manifest into run specs: one per model and image, everything a target needs resolved once.

A model that cannot be started - its script is not there, it asks for more GPUs than there are - becomes a spec with a
refusal, so that it leaves a row and the others run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from madengine.catalog.card import ModelCard
from madengine.config.context import env_map, env_text
from madengine.config.data import DataSource, resolve_data
from madengine.config.manifest import BuildManifest, ImageRecord
from madengine.config.tools import Hook, ToolStack, hooks, stack_tools
from madengine.core.errors import ConfigurationError, MADEngineError
from madengine.core.files import safe_name
from madengine.core.shell import expand, split_words
from madengine.execution.engine import Mount
from madengine.execution.gpu import GpuInventory, grant
from madengine.execution.spec import GpuGrant, HookScript, LogScanRules, RunSpec, ScriptPlan
from madengine.launchers.registry import DISPLAY_NONE, canonical_name, launch
from madengine.launchers.topology import Launch, Topology
from madengine.orchestration.environment import assemble, machine_facts
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

    ``environ`` is the inherited environment with the env file on top, ``stamp`` the command's UTC time for run ids,
    ``token`` makes short unique suffixes, ``tools`` and ``data`` are the loaded definitions, ``credentials`` the loaded
    credential file, ``refusals`` (manifest key -> sentence) models that cannot run.
    """

    package: Path
    runs_root: Path
    engine: str
    inventory: GpuInventory
    environ: Mapping[str, str] = field(repr=False)
    stamp: str = ""
    tools: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    data: Mapping[str, Any] | None = None
    credentials: Mapping[str, Any] = field(default_factory=dict, repr=False)
    refusals: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """The specs in the order of the manifest, and remarks that the user should read before they run."""

    specs: tuple[RunSpec, ...]
    warnings: tuple[str, ...] = ()


def plan_runs(manifest: BuildManifest, options: RunOptions, world: Surroundings) -> Plan:
    """One spec per model of the manifest. Raises ``ConfigurationError`` for what is wrong with all of them."""
    common = _Common.of(manifest, options, world)
    specs: list[RunSpec] = []
    warnings: list[str] = []
    for key, card in manifest.models.items():
        spec, remarks = _plan_one(key, card, manifest.images[key], common)
        specs.append(spec)
        warnings += [f"{card.name}: {remark}" for remark in remarks]
    return Plan(tuple(specs), tuple(dict.fromkeys(warnings)))


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
        return str(self.context.get("docker_gpus") or self.deployment.get("docker_gpus") or "")

    def layer(self, block: str) -> dict[str, str]:
        return env_map((self.deployment if block == "env_vars" else self.context).get(block))


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
    gpus = grant(world.inventory, card.n_gpus, common.docker_gpus)
    sources = _data_sources(card, world.data)
    environment = assemble(_layers(card, gpus, sources, common), world.environ, _credentials(card, world.credentials))
    options, unset = _run_options(card, world.environ)
    mounts, unset_mounts = _mounts(common, sources, world.environ)
    rules = _log_rules(card, common.context)
    compile_rules(rules)
    spec = replace(
        bare,
        script=script,
        gpus=gpus,
        environment=environment.plain,
        secrets=environment.secrets,
        mounts=mounts,
        run_options=options,
        cpus=str(common.context.get("docker_cpus") or ""),
        prefix=_prefix(common),
        pre_scripts=tuple(HookScript(hook.path, hook.args) for hook in common.pre_scripts),
        post_scripts=tuple(HookScript(hook.path, hook.args) for hook in common.post_scripts),
        expected_results=_expected_results(card, common.context),
        log_scan=rules,
        data=_data_facts(sources),
    )
    missing = [*environment.unset, *(("additional_docker_run_options", name) for name in unset), *unset_mounts]
    return spec, [f"{where} refers to ${{{name}}}, which is not set here" for where, name in missing]


def _layers(
    card: ModelCard, gpus: GpuGrant, sources: tuple[DataSource, ...], common: _Common
) -> tuple[Mapping[str, str], ...]:
    guest_os = str(common.context.get("guest_os") or "UBUNTU")
    return (
        machine_facts(card.name, gpus, guest_os),
        _launch(card, gpus, common).environment,
        _data_variables(sources),
        common.tools.environment,
        card.env_vars,
        common.layer("docker_env_vars"),
        common.layer("env_vars"),
    )


def _launch(card: ModelCard, gpus: GpuGrant, common: _Common) -> Launch:
    """The launcher on this one node; without a ``distributed`` block a script is given no launcher variables."""
    block = _distributed(card, common)
    if not block:
        return Launch()
    processes = int(block.get("nproc_per_node") or 0) or max(1, len(gpus.indices))
    port = int(block.get("port") or block.get("master_port") or 29500)
    topology = Topology(processes, master_port=port, model_name=card.name, block=block)
    return launch(_launcher_name(block), topology)


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


def _run_options(card: ModelCard, environ: Mapping[str, str]) -> tuple[tuple[str, ...], list[str]]:
    """``additional_docker_run_options`` as words: split as a shell would, then references expanded in each word."""
    words: list[str] = []
    unset: list[str] = []
    for word in split_words(card.text("additional_docker_run_options")):
        text, missing = expand(word, environ)
        words.append(text)
        unset += missing
    return tuple(words), unset


def _mounts(
    common: _Common, sources: tuple[DataSource, ...], environ: Mapping[str, str]
) -> tuple[tuple[Mount, ...], list[tuple[str, str]]]:
    """``docker_mounts`` (container path -> host path) and local data. A host path that is not there is a refusal."""
    mounts: list[Mount] = []
    unset: list[tuple[str, str]] = []
    for target, source in common.layer("docker_mounts").items():
        text, missing = expand(source, environ)
        unset += [(f"docker_mounts {target}", name) for name in missing]
        path = Path(os.path.expanduser(text))  # noqa: PTH111 - Path.expanduser raises for ~ and no such user
        if not os.path.exists(path):  # noqa: PTH110 - Path.exists raises for a name that is too long
            raise ConfigurationError(
                f"docker_mounts gives {target} the host path {text}, which does not exist here",
                hint="docker_mounts maps container paths to host paths",
            )
        mounts.append(Mount(path.resolve(), target))
    mounts += [Mount(source.path, source.home) for source in sources if source.path]
    return tuple(mounts), unset


def _data_sources(card: ModelCard, sources: Mapping[str, Any] | None) -> tuple[DataSource, ...]:
    """A package without data.json has nothing to say about data: scripts fetch it themselves."""
    return resolve_data(card.text("data"), sources) if sources is not None else ()


def _data_variables(sources: tuple[DataSource, ...]) -> dict[str, str]:
    local = [source for source in sources if source.path]
    variables = {"MAD_DATANAME": ",".join(source.name for source in sources)} if sources else {}
    return {**variables, "MAD_DATAHOME": local[0].home} if local else variables


def _data_facts(sources: tuple[DataSource, ...]) -> dict[str, str]:
    return {
        "dataname": ",".join(source.name for source in sources),
        "data_provider_type": ",".join(source.provider for source in sources if source.provider),
    }


def _credentials(card: ModelCard, credentials: Mapping[str, Any]) -> dict[str, str]:
    """``<cred>_USERNAME``, ``<cred>_PASSWORD`` and the like for the credential that the card names."""
    name = card.text("cred")
    entry = credentials.get(name) if name else None
    if name and not isinstance(entry, Mapping):
        raise ConfigurationError(
            f"the card needs the credential {name!r}, and there is none",
            hint=f'add "{name}": {{"username": ..., "password": ...}} to credential.json',
        )
    return {f"{name}_{field.upper()}": env_text(value) for field, value in (entry or {}).items()}


def _expected_results(card: ModelCard, context: Mapping[str, Any]) -> int | None:
    value = card.raw.get("expected_results", context.get("expected_results"))
    return int(value) if value is not None else None


def _log_rules(card: ModelCard, context: Mapping[str, Any]) -> LogScanRules:
    def chosen(key: str) -> Any:
        return card.raw.get(key, context.get(key))

    patterns = chosen("log_error_patterns")
    return LogScanRules(
        enabled=chosen("log_error_pattern_scan") is not False,
        benign=tuple(chosen("log_error_benign_patterns") or ()),
        patterns=None if patterns is None else tuple(patterns),
    )
