"""NVIDIA GPUs, as ``nvidia-smi`` tells of them."""

from __future__ import annotations

import csv

from madengine.execution.gpu import GpuInventory, Machine

QUERY = ("nvidia-smi", "--query-gpu=index,name,compute_cap", "--format=csv,noheader")


def find_nvidia(machine: Machine) -> GpuInventory | None:
    """The NVIDIA GPUs, None when there are none."""
    text = machine.ask(QUERY)
    return parse_query(text) if text else None


def parse_query(text: str) -> GpuInventory | None:
    """The answer to :data:`QUERY`: one line ``index, name, major.minor`` per GPU; None when no line is such a one."""
    rows = [row for row in csv.reader(text.splitlines(), skipinitialspace=True) if len(row) == 3 and row[0].isdecimal()]
    if not rows:
        return None
    _, name, capability = rows[0]
    return GpuInventory("NVIDIA", len(rows), _architecture(capability), name.strip())


def _architecture(capability: str) -> str:
    """``9.0`` as ``sm_90``; old tools answer ``[N/A]``."""
    digits = capability.strip().replace(".", "")
    return f"sm_{digits}" if digits.isdecimal() else ""
