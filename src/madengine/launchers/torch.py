"""torchrun and the training stacks that it starts.

The flags are those of ``torchrun --help`` (PyTorch, "torchrun (Elastic Launch)"); the variables of Megatron-LM and
TorchTitan runs are the ones that MAD's scripts read.
"""

from __future__ import annotations

from madengine.launchers.topology import Launch, Topology


def runner(topology: Topology) -> str:
    """The command that scripts put in front of theirs, as shell text."""
    processes = f"--nproc_per_node={topology.gpus_per_node}"
    if topology.nnodes == 1:
        return f"torchrun --standalone {processes}"
    return (
        f"torchrun --nnodes={topology.nnodes} {processes} --node_rank={topology.node_rank} "
        f"--master_addr={topology.master_addr} --master_port={topology.master_port}"
    )


def torchrun(topology: Topology) -> Launch:
    """Plain torchrun."""
    return Launch({"MAD_MULTI_NODE_RUNNER": runner(topology)})


def megatron(topology: Topology) -> Launch:
    """Megatron-LM: tensor parallel inside a node, pipeline parallel across nodes."""
    one = topology.nnodes == 1
    gpus = topology.gpus_per_node
    sizes = {
        "TENSOR_MODEL_PARALLEL_SIZE": str(min(gpus, 8) if one else gpus),
        "PIPELINE_MODEL_PARALLEL_SIZE": str(topology.nnodes),
    }
    context = {"CONTEXT_PARALLEL_SIZE": "1"} if one else {}
    return Launch({"MAD_MULTI_NODE_RUNNER": runner(topology), **sizes, **context})


def torchtitan(topology: Topology) -> Launch:
    """TorchTitan: as Megatron-LM, with FSDP on several nodes."""
    sizes = {
        "TORCHTITAN_TENSOR_PARALLEL_SIZE": str(topology.gpus_per_node),
        "TORCHTITAN_PIPELINE_PARALLEL_SIZE": str(topology.nnodes),
    }
    several = {"TORCHTITAN_FSDP_ENABLED": "1", "TORCHTITAN_CONTEXT_PARALLEL_SIZE": "1"}
    return Launch({"MAD_MULTI_NODE_RUNNER": runner(topology), **sizes, **(several if topology.nnodes > 1 else {})})
