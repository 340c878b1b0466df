"""Primus: its own command line starts the ranks, so scripts get its configuration and no runner."""

from __future__ import annotations

import re

from madengine.launchers.topology import Launch, Topology

_BACKEND_IN_NAME = re.compile(r"primus_pretrain/([A-Za-z0-9-]+)_")


def primus(topology: Topology) -> Launch:
    """``PRIMUS_CONFIG_PATH``, ``PRIMUS_CLI_EXTRA`` and ``BACKEND``, each only where there is a value."""
    block = topology.block.get("primus") or {}
    in_name = _BACKEND_IN_NAME.search(topology.model_name)
    values = {
        "PRIMUS_CONFIG_PATH": block.get("config_path"),
        "PRIMUS_CLI_EXTRA": block.get("cli_extra"),
        "BACKEND": block.get("backend") or (in_name.group(1) if in_name else None),
    }
    return Launch({name: str(value) for name, value in values.items() if value})
