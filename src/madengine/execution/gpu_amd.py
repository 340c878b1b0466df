"""AMD GPUs, as the kernel driver and AMD's tools tell of them.

The driver's topology (``/sys/class/kfd/kfd/topology/nodes/N/properties``, lines ``name value``; Linux amdkfd) says
most. A node with ``simd_count`` above 0 is a GPU; ``gfx_target_version`` is ``major * 10000 + minor * 100 + stepping``
of its target; ``drm_render_minor`` is the number of its render node. The nodes' order is the order of HIP's devices.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from madengine.execution.gpu import GpuInventory, Machine

TOPOLOGY = Path("sys/class/kfd/kfd/topology/nodes")


def find_amd(machine: Machine) -> GpuInventory | None:
    """The AMD GPUs, None when there are none."""
    nodes = [node for node in _nodes(machine.root) if int(node.get("simd_count", "0")) > 0]
    if nodes:
        return GpuInventory(
            vendor="AMD",
            count=len(nodes),
            architecture=target_name(int(nodes[0].get("gfx_target_version", "0"))),
            product=_product(machine),
            hip_version=_hip_version(machine),
            render_nodes=tuple(f"/dev/dri/renderD{node['drm_render_minor']}" for node in nodes if _has_render(node)),
        )
    return _from_rocminfo(machine)


def target_name(version: int) -> str:
    """``90402`` as ``gfx942``, ``90010`` as ``gfx90a``: minor and stepping are hexadecimal digits of the name."""
    if version <= 0:
        return ""
    major, minor, stepping = version // 10000, version // 100 % 100, version % 100
    return f"gfx{major}{minor:x}{stepping:x}"


def parse_rocminfo(text: str) -> tuple[list[str], str]:
    """Target names of the GPU agents in ``rocminfo``'s output, and the marketing name of the first."""
    targets: list[str] = []
    product = ""
    for agent in re.split(r"^\*+\s*\nAgent \d+\s*\n\*+\s*\n", text, flags=re.MULTILINE)[1:]:
        fields = dict(re.findall(r"^  ([A-Z][A-Za-z ]+):\s+(.*?)\s*$", agent, re.MULTILINE))
        if fields.get("Device Type") == "GPU":
            targets.append(fields.get("Name", ""))
            product = product or fields.get("Marketing Name", "")
    return targets, product


def parse_amd_smi(text: str) -> str:
    """The market name of the first GPU in the output of ``amd-smi static --asic --json``."""
    document = _json(text)
    entries = document.get("gpu_data") if isinstance(document, dict) else document
    first = entries[0] if isinstance(entries, list) and entries else None
    asic = first.get("asic") if isinstance(first, dict) else None
    return str(asic.get("market_name", "")) if isinstance(asic, dict) else ""


def parse_rocm_smi(text: str) -> str:
    """The name of the first card in the output of ``rocm-smi --showproductname --json``."""
    document = _json(text)
    facts = sorted(document.items()) if isinstance(document, dict) else []
    cards = [value for key, value in facts if key.startswith("card") and isinstance(value, dict)]
    names = {key.lower(): value for key, value in cards[0].items()} if cards else {}
    return str(names.get("card series") or names.get("card model") or "")


def _nodes(root: Path) -> list[Mapping[str, str]]:
    """The topology's nodes in their order; a node that this user may not read is no node of ours."""
    found: list[Mapping[str, str]] = []
    for folder in sorted((root / TOPOLOGY).glob("[0-9]*"), key=lambda path: int(path.name)):
        try:
            text = (folder / "properties").read_text(encoding="ascii", errors="replace")
        except OSError:
            continue
        found.append(dict(re.findall(r"^(\w+) (\d+)$", text, re.MULTILINE)))
    return found


def _has_render(node: Mapping[str, str]) -> bool:
    return int(node.get("drm_render_minor", "0")) > 0


def _product(machine: Machine) -> str:
    text = machine.ask(["amd-smi", "static", "--asic", "--json"])
    name = parse_amd_smi(text) if text else ""
    if name:
        return name
    text = machine.ask(["rocm-smi", "--showproductname", "--json"])
    return parse_rocm_smi(text) if text else ""


def _hip_version(machine: Machine) -> str:
    """``hipconfig --version``, else the version of the ROCm that is installed."""
    text = machine.ask(["hipconfig", "--version"])
    if text and text.strip():
        return text.split()[0]
    try:
        return (machine.root / "opt/rocm/.info/version").read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def _from_rocminfo(machine: Machine) -> GpuInventory | None:
    """Where the topology is not to be seen (a container without ``/sys``), ROCm's own tool may still know."""
    text = machine.ask(["rocminfo"])
    targets, product = parse_rocminfo(text) if text else ([], "")
    if not targets:
        return None
    return GpuInventory("AMD", len(targets), targets[0], product, _hip_version(machine))


def _json(text: str) -> Any:
    """The JSON value in a tool's output; some versions print warnings before it."""
    start = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=-1)
    try:
        return json.loads(text[start:]) if start >= 0 else None
    except ValueError:
        return None
