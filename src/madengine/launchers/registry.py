"""All launchers by name. A new one is one function in a file of its own and one line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from madengine.core.errors import ConfigurationError
from madengine.launchers.topology import Launch, Topology

Launcher = Callable[[Topology], Launch]

LAUNCHERS: Mapping[str, str] = {
    "none": "madengine.launchers.plain:none",
    "torchrun": "madengine.launchers.torch:torchrun",
    "deepspeed": "madengine.launchers.deepspeed:deepspeed",
    "megatron-lm": "madengine.launchers.torch:megatron",
    "torchtitan": "madengine.launchers.torch:torchtitan",
    "primus": "madengine.launchers.primus:primus",
    "vllm": "madengine.launchers.serving:vllm",
    "sglang": "madengine.launchers.serving:sglang",
    "sglang-disagg": "madengine.launchers.serving:sglang_disagg",
    "slurm_multi": "madengine.launchers.plain:slurm_multi",
}
"""Launcher name -> ``module:function``, imported only when it is asked for."""

ALIASES: Mapping[str, str] = {
    "": "none",
    "docker": "none",
    "native": "none",
    "megatron": "megatron-lm",
    "megatron_lm": "megatron-lm",
    "sglang_disagg": "sglang-disagg",
    "slurm-multi": "slurm_multi",
}

ONE_SCRIPT = "slurm_multi"
"""The launcher whose one script drives the whole allocation from its first node."""

DISPLAY_NONE: Mapping[str, str] = {"local": "docker", "slurm": "docker", "k8s": "native"}
"""What perf.csv's ``launcher`` column says on each target when a run has no launcher."""


def canonical_name(name: str) -> str:
    """The launcher's one name. Raises ``ConfigurationError`` listing the known ones when there is none."""
    key = name.strip().lower()
    known = ALIASES.get(key, key)
    if known not in LAUNCHERS:
        raise ConfigurationError(
            f"there is no launcher named {name!r}", hint=f"known launchers: {', '.join(sorted(LAUNCHERS))}"
        )
    return known


def drives_allocation(name: str) -> bool:
    """Whether a run has one script for all its nodes, which starts what it needs on the others by itself."""
    return ALIASES.get(name.strip().lower(), name.strip().lower()) == ONE_SCRIPT


def launch(name: str, topology: Topology) -> Launch:
    """The launcher's environment for this node, with the variables that every launcher gives."""
    module, attribute = LAUNCHERS[canonical_name(name)].split(":")
    launcher: Launcher = getattr(import_module(module), attribute)
    own = launcher(topology)
    return Launch({**common_environment(topology), **own.environment}, own.files)


def common_environment(topology: Topology) -> dict[str, str]:
    """Variables that scripts find on every node, whatever the launcher (RANK is the node's rank)."""
    first = topology.node_rank == 0
    return {
        "MASTER_ADDR": topology.master_addr,
        "MASTER_PORT": str(topology.master_port),
        "NNODES": str(topology.nnodes),
        "NODE_RANK": str(topology.node_rank),
        "RANK": str(topology.node_rank),
        "WORLD_SIZE": str(topology.world_size),
        "NPROC_PER_NODE": str(topology.gpus_per_node),
        "GPUS_PER_NODE": str(topology.gpus_per_node),
        "MAD_DEPLOYMENT_TYPE": topology.deployment,
        "MAD_COLLECT_METRICS": "true" if first else "false",
        "MAD_IS_MASTER_NODE": "true" if first else "false",
    }
