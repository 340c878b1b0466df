"""Inference servers: vLLM, SGLang and SGLang with prefill and decode apart."""

from __future__ import annotations

from madengine.core.errors import ConfigurationError
from madengine.launchers.topology import Launch, Topology


def vllm(topology: Topology) -> Launch:
    """One replica a node: tensor parallel over the node's GPUs, no backend between nodes."""
    return Launch(
        {
            "VLLM_TENSOR_PARALLEL_SIZE": str(topology.gpus_per_node),
            "VLLM_PIPELINE_PARALLEL_SIZE": "1",
            "VLLM_DISTRIBUTED_BACKEND": "auto" if topology.nnodes == 1 else "none",
        }
    )


def sglang(topology: Topology) -> Launch:
    """Tensor parallel over the GPUs of each node."""
    return Launch(
        {
            "SGLANG_TENSOR_PARALLEL_SIZE": str(topology.gpus_per_node),
            "SGLANG_PIPELINE_PARALLEL_SIZE": "1",
        }
    )


def sglang_disagg(topology: Topology) -> Launch:
    """Rank 0 is the proxy, then prefill nodes, then decode nodes. Raises ``ConfigurationError`` on a bad split."""
    if topology.nnodes < 2:
        raise ConfigurationError(
            "launcher sglang-disagg needs at least 2 nodes: prefill and decode run apart",
            hint="set distributed.nnodes to 2 or more and run on Slurm or Kubernetes",
        )
    prefill, decode = disagg_split(topology)
    return Launch(
        {
            "SGLANG_DISAGG_MODE": "enabled",
            "SGLANG_DISAGG_PREFILL_NODES": str(prefill),
            "SGLANG_DISAGG_DECODE_NODES": str(decode),
            "SGLANG_DISAGG_TOTAL_NODES": str(topology.nnodes),
            "SGLANG_TP_SIZE": str(topology.gpus_per_node),
            "SGLANG_NODE_RANK": str(topology.node_rank),
            "SGLANG_NODE_IPS": ",".join(topology.hosts),
        }
    )


def disagg_split(topology: Topology) -> tuple[int, int]:
    """Number of prefill and decode nodes: as given, else two fifths of the nodes beside the proxy prefill.

    With two nodes the proxy shares rank 0 with prefill.
    """
    workers = topology.nnodes - 1
    given = topology.block.get("sglang_disagg") or {}
    if not given:
        return (1, 1) if topology.nnodes == 2 else _default_split(workers)
    prefill, decode = int(given.get("prefill_nodes", 0)), int(given.get("decode_nodes", 0))
    fits = prefill + decode == (2 if topology.nnodes == 2 else workers)
    if prefill < 1 or decode < 1 or not fits:
        raise ConfigurationError(
            f"sglang_disagg asks for {prefill} prefill and {decode} decode nodes beside the proxy, "
            f"but the run has {topology.nnodes} nodes",
            hint="each must be at least 1, and prefill_nodes + decode_nodes + 1 must equal nnodes",
        )
    return prefill, decode


def _default_split(workers: int) -> tuple[int, int]:
    prefill = max(1, workers * 2 // 5)
    return prefill, workers - prefill
