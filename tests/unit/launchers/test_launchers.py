"""Launchers: what each gives a rank, on one node and on several."""

from __future__ import annotations

import pytest

from madengine.core.errors import ConfigurationError
from madengine.launchers.registry import LAUNCHERS, canonical_name, launch
from madengine.launchers.topology import Topology

ONE = Topology(8)
TWO = Topology(8, nnodes=2, node_rank=1, master_addr="gpu-01", hosts=("gpu-01", "gpu-02"), deployment="slurm")
TORCH_ONE = "torchrun --standalone --nproc_per_node=8"
TORCH_TWO = "torchrun --nnodes=2 --nproc_per_node=8 --node_rank=1 --master_addr=gpu-01 --master_port=29500"


@pytest.mark.parametrize(
    ("name", "topology", "expected"),
    [
        ("torchrun", ONE, {"MAD_MULTI_NODE_RUNNER": TORCH_ONE}),
        ("torchrun", TWO, {"MAD_MULTI_NODE_RUNNER": TORCH_TWO}),
        ("megatron-lm", ONE, {"TENSOR_MODEL_PARALLEL_SIZE": "8", "PIPELINE_MODEL_PARALLEL_SIZE": "1"}),
        ("megatron-lm", ONE, {"CONTEXT_PARALLEL_SIZE": "1", "MAD_MULTI_NODE_RUNNER": TORCH_ONE}),
        ("megatron-lm", Topology(16), {"TENSOR_MODEL_PARALLEL_SIZE": "8"}),
        ("megatron-lm", TWO, {"TENSOR_MODEL_PARALLEL_SIZE": "8", "PIPELINE_MODEL_PARALLEL_SIZE": "2"}),
        ("torchtitan", ONE, {"TORCHTITAN_TENSOR_PARALLEL_SIZE": "8", "TORCHTITAN_PIPELINE_PARALLEL_SIZE": "1"}),
        ("torchtitan", TWO, {"TORCHTITAN_FSDP_ENABLED": "1", "TORCHTITAN_CONTEXT_PARALLEL_SIZE": "1"}),
        ("deepspeed", ONE, {"MAD_MULTI_NODE_RUNNER": "deepspeed --num_gpus=8"}),
        ("vllm", ONE, {"VLLM_TENSOR_PARALLEL_SIZE": "8", "VLLM_DISTRIBUTED_BACKEND": "auto"}),
        ("vllm", TWO, {"VLLM_PIPELINE_PARALLEL_SIZE": "1", "VLLM_DISTRIBUTED_BACKEND": "none"}),
        ("sglang", TWO, {"SGLANG_TENSOR_PARALLEL_SIZE": "8", "SGLANG_PIPELINE_PARALLEL_SIZE": "1"}),
        ("none", TWO, {"MASTER_ADDR": "gpu-01", "MASTER_PORT": "29500", "WORLD_SIZE": "16", "RANK": "1"}),
        ("none", TWO, {"NNODES": "2", "NODE_RANK": "1", "NPROC_PER_NODE": "8", "GPUS_PER_NODE": "8"}),
        ("none", TWO, {"MAD_DEPLOYMENT_TYPE": "slurm", "MAD_IS_MASTER_NODE": "false"}),
        ("none", ONE, {"MAD_COLLECT_METRICS": "true", "MAD_IS_MASTER_NODE": "true", "WORLD_SIZE": "8"}),
    ],
)
def test_a_launcher_gives_its_variables(name: str, topology: Topology, expected: dict[str, str]) -> None:
    environment = launch(name, topology).environment
    assert {key: environment.get(key) for key in expected} == expected


@pytest.mark.parametrize("name", ["none", "primus", "vllm", "sglang", "slurm_multi"])
def test_a_launcher_without_a_runner_gives_no_empty_runner_variable(name: str) -> None:
    assert "MAD_MULTI_NODE_RUNNER" not in launch(name, TWO).environment


def test_context_parallelism_is_only_set_on_one_node() -> None:
    assert "CONTEXT_PARALLEL_SIZE" not in launch("megatron", TWO).environment
    assert "TORCHTITAN_FSDP_ENABLED" not in launch("torchtitan", ONE).environment


def test_deepspeed_on_several_nodes_names_each_with_its_slots() -> None:
    result = launch("deepspeed", TWO)
    assert result.files == {"deepspeed.hostfile": "gpu-01 slots=8\ngpu-02 slots=8\n"}
    assert "--hostfile=deepspeed.hostfile --master_addr=gpu-01" in result.environment["MAD_MULTI_NODE_RUNNER"]


def test_primus_reads_its_block_and_guesses_the_backend_from_the_name() -> None:
    given = Topology(8, block={"primus": {"config_path": "a.yaml", "cli_extra": "--x", "backend": "megatron"}})
    assert launch("primus", given).environment.items() >= {
        ("PRIMUS_CONFIG_PATH", "a.yaml"),
        ("PRIMUS_CLI_EXTRA", "--x"),
        ("BACKEND", "megatron"),
    }
    named = Topology(8, model_name="primus_pretrain/torchtitan_MI300X_llama")
    assert launch("primus", named).environment["BACKEND"] == "torchtitan"
    assert "BACKEND" not in launch("primus", ONE).environment


@pytest.mark.parametrize(
    ("nodes", "block", "split"),
    [
        (2, {}, ("1", "1")),
        (2, {"prefill_nodes": 1, "decode_nodes": 1}, ("1", "1")),
        (3, {}, ("1", "1")),
        (6, {}, ("2", "3")),
        (24, {}, ("9", "14")),
        (5, {"prefill_nodes": 3, "decode_nodes": 1}, ("3", "1")),
    ],
)
def test_disaggregated_serving_splits_the_nodes(nodes: int, block: dict[str, int], split: tuple[str, str]) -> None:
    hosts = tuple(f"n{index}" for index in range(nodes))
    environment = launch("sglang-disagg", Topology(8, nodes, hosts=hosts, block={"sglang_disagg": block})).environment
    assert (environment["SGLANG_DISAGG_PREFILL_NODES"], environment["SGLANG_DISAGG_DECODE_NODES"]) == split
    assert environment["SGLANG_DISAGG_TOTAL_NODES"] == str(nodes)
    assert environment["SGLANG_NODE_IPS"] == ",".join(hosts)


@pytest.mark.parametrize(
    ("nodes", "block"),
    [(1, {}), (4, {"prefill_nodes": 2, "decode_nodes": 2}), (4, {"prefill_nodes": 0, "decode_nodes": 3})],
)
def test_a_split_that_does_not_fit_is_refused(nodes: int, block: dict[str, int]) -> None:
    with pytest.raises(ConfigurationError):
        launch("sglang-disagg", Topology(8, nodes, block={"sglang_disagg": block}))


def test_the_slurm_launcher_is_refused_elsewhere() -> None:
    with pytest.raises(ConfigurationError, match="the target is local"):
        launch("slurm_multi", ONE)


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("sglang_disagg", "sglang-disagg"),
        ("slurm-multi", "slurm_multi"),
        ("megatron", "megatron-lm"),
        ("docker", "none"),
        ("", "none"),
        (" TorchRun ", "torchrun"),
    ],
)
def test_aliases_mean_the_same_launcher(alias: str, name: str) -> None:
    assert canonical_name(alias) == name


def test_an_unknown_launcher_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(ConfigurationError) as caught:
        launch("mpirun", ONE)
    assert all(name in str(caught.value) for name in LAUNCHERS)
