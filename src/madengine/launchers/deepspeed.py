"""DeepSpeed's own launcher (its documentation, "Getting started: resource configuration")."""

from __future__ import annotations

from madengine.launchers.topology import Launch, Topology

HOSTFILE = "deepspeed.hostfile"


def deepspeed(topology: Topology) -> Launch:
    """On one node the GPUs are counted; on several a hostfile names each node and its slots."""
    if topology.nnodes == 1:
        return Launch({"MAD_MULTI_NODE_RUNNER": f"deepspeed --num_gpus={topology.gpus_per_node}"})
    lines = "".join(f"{host} slots={topology.gpus_per_node}\n" for host in topology.hosts)
    command = (
        f"deepspeed --hostfile={HOSTFILE} --master_addr={topology.master_addr} --master_port={topology.master_port}"
    )
    return Launch({"MAD_MULTI_NODE_RUNNER": command}, {HOSTFILE: lines})
