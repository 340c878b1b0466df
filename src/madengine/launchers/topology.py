"""Where a rank stands among its peers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Topology:
    """The shape of one distributed run as seen from one node.

    ``nnodes`` nodes with ``gpus_per_node`` processes each; ``node_rank`` counts from 0. ``hosts`` are the nodes' names
    or addresses in rank order. ``block`` is the card's ``distributed`` object, for launchers that read more of it.
    """

    gpus_per_node: int
    nnodes: int = 1
    node_rank: int = 0
    master_addr: str = "localhost"
    master_port: int = 29500
    hosts: tuple[str, ...] = ("localhost",)
    deployment: str = "local"
    model_name: str = ""
    block: Mapping[str, Any] = field(default_factory=dict)

    @property
    def world_size(self) -> int:
        """Processes over all nodes."""
        return self.nnodes * self.gpus_per_node


@dataclass(frozen=True)
class Launch:
    """What a launcher gives a run: variables for the script, and files (name -> text) for the run directory.

    The launcher's command, where it has one, is in ``MAD_MULTI_NODE_RUNNER``: scripts put it in front of theirs, so it
    is absent, never empty, when a launcher has none.
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
