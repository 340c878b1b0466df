"""What a container needs to reach the GPUs that a run was granted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from madengine.execution.spec import GpuGrant

KFD = "/dev/kfd"
ALL_RENDER_NODES = "/dev/dri"

_SHARED = ("--ipc=host", "--network=host")
_VENDOR_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "AMD": (*_SHARED, "--cap-add=SYS_PTRACE", "--security-opt=seccomp=unconfined"),
    "NVIDIA": _SHARED,
}
"""Collectives need the host's network and more shared memory than a container has by itself; ROCm's debugger interface
and memory pinning need the rest (AMD's documentation of ROCm in containers)."""

_SAME_MEANING = {"--ipc": ("--ipc", "--shm-size"), "--network": ("--network", "--net"), "--security-opt": ()}


def devices(gpus: GpuGrant) -> tuple[str, ...]:
    """AMD's device files; without known render nodes the folder of all of them."""
    if gpus.vendor != "AMD" or not gpus.indices:
        return ()
    return (KFD, *(gpus.render_nodes or (ALL_RENDER_NODES,)))


def nvidia_indices(gpus: GpuGrant) -> str:
    """NVIDIA's devices as a list for the engine."""
    return ",".join(map(str, gpus.indices)) if gpus.vendor == "NVIDIA" else ""


def vendor_options(gpus: GpuGrant, given: Sequence[str]) -> tuple[str, ...]:
    """Options that GPU runs need, but for those about which the user's own options say something."""
    wanted = _VENDOR_OPTIONS.get(gpus.vendor, ()) if gpus.indices else ()
    return tuple(option for option in wanted if not _is_said(option, given))


def visible_devices(gpus: GpuGrant) -> dict[str, str]:
    """Without a container only a variable limits a script to the GPUs that it was granted."""
    name = {"AMD": "ROCR_VISIBLE_DEVICES", "NVIDIA": "CUDA_VISIBLE_DEVICES"}.get(gpus.vendor)
    if name is None or len(gpus.indices) == gpus.total:
        return {}
    return {name: ",".join(map(str, gpus.indices))}


def _is_said(option: str, given: Sequence[str]) -> bool:
    name = option.partition("=")[0]
    names = _SAME_MEANING.get(name, (name,))
    return any(word == said or word.startswith(said + "=") for word in given for said in names)
