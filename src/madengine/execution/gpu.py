"""Which GPUs this machine has, and which of them a run gets.

One seam: a finder per vendor looks, the first that finds something is the machine's vendor, and a machine without a
GPU is honestly a CPU. Where neither the driver nor a vendor's tool is there, looking costs a few file checks.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from madengine.core.errors import ConfigurationError, ExecutionError
from madengine.core.process import Completed, run
from madengine.execution.spec import GpuGrant

TOOL_LIMIT = 30.0  # seconds; a tool hangs when the driver does


@dataclass(frozen=True)
class GpuInventory:
    """The machine's GPUs. ``vendor`` is AMD, NVIDIA or CPU.

    ``architecture`` is AMD's target name (``gfx942``) or NVIDIA's compute capability (``sm_90``), ``render_nodes`` are
    AMD's device files in the order of the GPUs, empty where they are not known. ``allowed`` are those that a scheduler
    has given to this job, None for all.
    """

    vendor: str = "CPU"
    count: int = 0
    architecture: str = ""
    product: str = ""
    hip_version: str = ""
    render_nodes: tuple[str, ...] = ()
    allowed: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Machine:
    """What the finders look at: the file system below ``root``, and programs by name (None: not installed)."""

    root: Path
    ask: Callable[[Sequence[str]], str | None]


def detect(vendor: str | None = None, *, machine: Machine | None = None) -> GpuInventory:
    """Look for GPUs. ``vendor`` (AMD, NVIDIA or CPU) limits the search to what the user says the machine has."""
    here = machine or Machine(Path("/"), ask_program)
    if vendor in (None, "AMD"):
        from madengine.execution.gpu_amd import find_amd

        found = find_amd(here)
        if found is not None:
            return found
    if vendor in (None, "NVIDIA"):
        from madengine.execution.gpu_nvidia import find_nvidia

        found = find_nvidia(here)
        if found is not None:
            return found
    return GpuInventory()


def ask_program(argv: Sequence[str]) -> str | None:
    """What a program prints; None when it is not installed or fails."""
    if shutil.which(argv[0]) is None:
        return None
    done: Completed = run(argv, timeout=TOOL_LIMIT)
    return done.stdout if done.exit_code == 0 else None


def restricted(inventory: GpuInventory, given: str) -> GpuInventory:
    """The inventory of a job that a scheduler has ``given`` some of the GPUs (``"0,2-3"``, as Slurm writes them).

    The numbers count all GPUs of the machine (srun(1), SLURM_STEP_GPUS). Where the others are hidden from the job, what
    can be seen is what it has, whatever the numbers; a text that is no list of numbers restricts nothing.
    """
    numbers = _numbers(given)
    if not numbers or len(numbers) == inventory.count or max(numbers) >= inventory.count:
        return inventory
    return replace(inventory, allowed=numbers)


def grant(inventory: GpuInventory, n_gpus: int, docker_gpus: str = "") -> GpuGrant:
    """The GPUs of a run: the first ``n_gpus`` (-1: all) of those that ``docker_gpus`` (``"0,2-4"``) allows.

    Raises ``ExecutionError`` with a sentence when the card asks for more than there is, ``ConfigurationError`` when
    ``docker_gpus`` cannot be read.
    """
    allowed = _allowed(inventory, docker_gpus) if n_gpus else ()
    if n_gpus > len(allowed):
        limit = f", and docker_gpus {docker_gpus!r} allows {len(allowed)} of them" if docker_gpus else ""
        raise ExecutionError(f"the card asks for {_gpus(n_gpus)}, this machine has {_what_there_is(inventory)}{limit}")
    chosen = allowed if n_gpus < 0 else allowed[:n_gpus]
    nodes = inventory.render_nodes
    return GpuGrant(
        vendor=inventory.vendor,
        indices=chosen,
        total=inventory.count,
        architecture=inventory.architecture,
        product=inventory.product,
        hip_version=inventory.hip_version,
        render_nodes=tuple(nodes[index] for index in chosen if index < len(nodes)),
    )


def parse_indices(text: str) -> tuple[int, ...]:
    """``"0,2-4"`` as ``(0, 2, 3, 4)``: each once, in the order given. Raises ``ConfigurationError``."""
    numbers = _numbers(text)
    if numbers is None:
        raise ConfigurationError(
            f"docker_gpus is {text!r}, which is no list of GPUs", hint='write numbers and ranges, such as "0,2-4"'
        )
    return numbers


def _numbers(text: str) -> tuple[int, ...] | None:
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = (piece.strip() for piece in part.partition("-"))
        if not _is_index(first) or (dash and not (_is_index(last) and int(first) <= int(last))):
            return None
        found += range(int(first), int(last or first) + 1)
    return tuple(dict.fromkeys(found))


def _is_index(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 4


def _allowed(inventory: GpuInventory, docker_gpus: str) -> tuple[int, ...]:
    there = tuple(range(inventory.count)) if inventory.allowed is None else inventory.allowed
    if docker_gpus.strip().lower() in ("", "all", "-1"):
        return there
    wanted = parse_indices(docker_gpus)
    absent = [str(index) for index in wanted if index >= inventory.count]
    if absent:
        raise ExecutionError(
            f"docker_gpus {docker_gpus!r} names GPU {', '.join(absent)}, this machine has {_what_there_is(inventory)}",
            hint="GPUs are counted from 0",
        )
    return tuple(index for index in wanted if index in there)


def _what_there_is(inventory: GpuInventory) -> str:
    if inventory.vendor == "CPU":
        return "no GPU"
    product = f" ({inventory.product})" if inventory.product else ""
    given = "" if inventory.allowed is None else f", of which the job has {len(inventory.allowed)}"
    return f"{inventory.count} {inventory.vendor} {'GPU' if inventory.count == 1 else 'GPUs'}{product}{given}"


def _gpus(count: int) -> str:
    return "1 GPU" if count == 1 else f"{count} GPUs"
