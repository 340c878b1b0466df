"""Runs that need no launcher of ours."""

from __future__ import annotations

from madengine.core.errors import ConfigurationError
from madengine.launchers.topology import Launch, Topology


def none(topology: Topology) -> Launch:  # noqa: ARG001 - every launcher takes a topology
    """The script starts what it needs by itself."""
    return Launch()


def slurm_multi(topology: Topology) -> Launch:
    """The model's own ``.slurm`` script drives the allocation; there is none on other targets."""
    if topology.deployment != "slurm":
        raise ConfigurationError(
            f"launcher slurm_multi runs the model's own Slurm script, but the target is {topology.deployment}",
            hint='run it on Slurm, for example with --additional-context \'{"slurm": {"partition": "..."}}\'',
        )
    return Launch()
