"""How one model's job is asked for: what people configured, over profiles, over presets - each value with its origin.

The strongest first: ``deployment_config.slurm`` (the manifest with the user's context on top), the card's own ``slurm``
block, the cluster profile, the vendor's preset, the built-in defaults, and the variables of sbatch that hold a site's
defaults. A null means "not given".
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from madengine.catalog.card import ModelCard
from madengine.config.presets import Preset, built_in, profile
from madengine.core.errors import ConfigurationError
from madengine.execution.spec import Place

KIND = "slurm"
OUTPUT_DIR = "./slurm_results"
CONFIGURED = "manifest or context"
CARD = "card"
DEFAULT = "built-in default"
_SITE_DEFAULTS = ("account", "constraint", "partition", "qos", "reservation")
_INTERFACE_VARIABLES = ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME")


@dataclass(frozen=True)
class SlurmOptions:
    """What a job asks Slurm for; see the manifest's schema for the meaning of each.

    ``gpus_per_node`` 0 asks for none. ``pending_timeout`` and ``marker_grace_seconds`` are in seconds. ``requeue`` None
    leaves it to the cluster. ``environment`` are the variables of presets; ``origins`` (option, or ``env:NAME``) say
    where each value comes from.
    """

    partition: str = ""
    account: str = ""
    qos: str = ""
    reservation: str = ""
    nodelist: str = ""
    exclude: str = ""
    constraint: str = ""
    nodes: int = 1
    gpus_per_node: int = 0
    time: str = ""
    mem: str = ""
    exclusive: bool = True
    modules: tuple[str, ...] = ()
    output_dir: str = OUTPUT_DIR
    results_dir: str = ""
    shared_workspace: str = ""
    network_interface: str = ""
    mail_user: str = ""
    mail_type: str = ""
    skip_gpus_directive: bool = False
    kill_on_bad_exit: bool = False
    enable_node_check: bool = False
    allow_submit_without_clean_nodes: bool = False
    requeue: bool | None = None
    marker_grace_seconds: float = 30.0
    pending_timeout: float | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)


_OPTIONS = tuple(each.name for each in fields(SlurmOptions) if each.name not in ("environment", "origins"))


def slurm_options(
    card: ModelCard,
    deployment: Mapping[str, Any],
    *,
    gpu_vendor: str = "",
    environ: Mapping[str, str] = os.environ,
) -> SlurmOptions:
    """The options of a card's job. ``deployment`` is the effective ``deployment_config``.

    Raises ``ConfigurationError`` for a profile that is not there, counts of nodes that disagree, and values that cannot
    stand in a job script.
    """
    asked = _given(_block(deployment, KIND), _nodes(deployment, "deployment_config"))
    own = _given(card.block(KIND), _nodes(card.raw, f"the card {card.name}"))
    name = asked.get("cluster_profile") or own.get("cluster_profile")
    presets = [profile(KIND, str(name), environ)] if name else []
    presets += [built_in(KIND, gpu_vendor, f"preset for {gpu_vendor}")] if gpu_vendor else []
    defaults = built_in(KIND, "default", DEFAULT)
    layers = [(CONFIGURED, asked), (CARD, own), *((p.origin, p.values) for p in (*presets, defaults))]
    layers += [(f"environment: {variable}", {key: environ[variable]}) for key, variable in _set_by_sites(environ)]
    if card.n_gpus == 0:
        layers.insert(2, ("card, which needs no GPU", {"gpus_per_node": 0}))
    values, origins = _merged(layers)
    if int(values.get("nodes") or 1) > 1:
        presets.append(built_in(KIND, "several_nodes", f"{DEFAULT} for several nodes"))
    environment, variable_origins = _environment([defaults, *reversed(presets)], values.get("network_interface"))
    _require_plain(values)
    values["modules"] = tuple(values.get("modules") or ())
    values["mem"] = str(values.get("mem", ""))
    return SlurmOptions(**values, environment=environment, origins={**origins, **variable_origins})


def output_dir(deployment: Mapping[str, Any]) -> Path:
    """The folder of the run directories, absolute; it has to be on storage that all nodes see.

    Raises ``ConfigurationError`` for one that no job can be told of.
    """
    given = _block(deployment, KIND).get("output_dir") or OUTPUT_DIR
    folder = Path(os.path.normpath(Path(str(given)).expanduser().absolute()))
    if not str(folder).isprintable() or "\\" in str(folder):
        raise ConfigurationError(
            "the path of the run directories holds a backslash or a control character, which sbatch cannot handle",
            where=repr(str(folder)),
            hint="set slurm.output_dir to another folder",
        )
    return folder


def place_of(options: SlurmOptions, card: ModelCard, deployment: Mapping[str, Any]) -> Place:
    """The nodes of a card's job as far as they are known before Slurm has chosen any."""
    block = _block(deployment, "distributed") or card.block("distributed")
    port = block.get("port") or block.get("master_port")
    return Place(
        deployment=KIND,
        nnodes=options.nodes,
        gpus_per_node=options.gpus_per_node or None,
        master_port=int(port) if port else None,
        hosts=tuple(f"node-{rank}" for rank in range(options.nodes)),
        environment=options.environment,
        elsewhere=True,
        provides=("SLURM_", "SLURMD_"),
    )


def _set_by_sites(environ: Mapping[str, str]) -> list[tuple[str, str]]:
    """Options whose variables (sbatch(1), "INPUT ENVIRONMENT VARIABLES") hold defaults that sites tell users to set."""
    names = ((key, f"SBATCH_{key.upper()}") for key in _SITE_DEFAULTS)
    return [(key, variable) for key, variable in names if environ.get(variable)]


def _block(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = document.get(key)
    return value if isinstance(value, Mapping) else {}


def _given(block: Mapping[str, Any], nodes: int | None) -> dict[str, Any]:
    given = {key: value for key, value in block.items() if value is not None}
    return {**given, "nodes": nodes} if nodes else given


def _nodes(document: Mapping[str, Any], where: str) -> int | None:
    """The number of nodes that a document asks for; its two ways of saying so must agree."""
    jobs, ranks = _block(document, KIND).get("nodes"), _block(document, "distributed").get("nnodes")
    if jobs and ranks and int(jobs) != int(ranks):
        raise ConfigurationError(
            f"slurm.nodes is {jobs} and distributed.nnodes is {ranks}: "
            "sbatch and the launcher would disagree on the world size",
            where=where,
        )
    count = jobs or ranks
    return int(count) if count else None


def _merged(layers: Sequence[tuple[str, Mapping[str, Any]]]) -> tuple[dict[str, Any], dict[str, str]]:
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for origin, layer in layers:
        for key in _OPTIONS:
            if key not in values and layer.get(key) is not None:
                values[key], origins[key] = layer[key], origin
    return values, origins


def _environment(weakest_first: Sequence[Preset], interface: Any) -> tuple[dict[str, str], dict[str, str]]:
    environment: dict[str, str] = {}
    origins: dict[str, str] = {}
    for preset in weakest_first:
        environment.update(preset.environment)
        origins.update({f"env:{name}": preset.origin for name in preset.environment})
    for name in _INTERFACE_VARIABLES if interface else ():
        environment[name], origins[f"env:{name}"] = str(interface), "slurm.network_interface"
    return environment, origins


def _require_plain(values: Mapping[str, Any]) -> None:
    """No control character can stand in a line of a job script."""
    for key, value in values.items():
        for text in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(text, str) and not text.isprintable():
                raise ConfigurationError(
                    f"the value {text!r} holds a character that no job script can hold", where=f"slurm.{key}"
                )
