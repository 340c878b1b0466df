"""What the scripts of several nodes are given by each launcher, from a run directory to the variables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.orchestration.orders import run_directory

from madengine.execution.gpu import GpuInventory
from madengine.execution.host import HostEngine
from madengine.execution.spec import RunSpec
from madengine.launchers.registry import LAUNCHERS
from madengine.orchestration.node_plan import plan_node, read_inputs

NODES = 3
HOSTS = ("10.0.0.1", "10.0.0.2", "10.0.0.3")
TORCH = "torchrun --nnodes=3 --nproc_per_node=8 --node_rank=2 --master_addr=10.0.0.1 --master_port=29500"


def rank(tmp_path: Path, launcher: str, number: int = 2, **block: Any) -> RunSpec:
    run_dir = run_directory(
        tmp_path,
        card={"n_gpus": "-1", "name": "primus_pretrain/torchtitan_x"},
        launcher=launcher,
        nnodes=NODES,
        reporters=NODES,
        gpus_per_node=8,
        deployment={"distributed": {"launcher": launcher, "nnodes": NODES, **block}},
    )
    environ = {"MADENGINE_HOSTS": ",".join(HOSTS), "MASTER_ADDR": HOSTS[0], "MASTER_PORT": "29500"}
    spec, _ = plan_node(read_inputs(run_dir, number, environ), HostEngine(), GpuInventory("AMD", 8))
    assert spec.refusal is None
    return spec


@pytest.mark.parametrize("launcher", list(LAUNCHERS))
def test_every_launcher_says_where_the_rank_stands(tmp_path: Path, launcher: str) -> None:
    given = rank(tmp_path, launcher).environment
    assert {
        "MASTER_ADDR": "10.0.0.1",
        "MASTER_PORT": "29500",
        "NNODES": "3",
        "NODE_RANK": "2",
        "RANK": "2",
        "WORLD_SIZE": "24",
        "NPROC_PER_NODE": "8",
        "GPUS_PER_NODE": "8",
        "MAD_DEPLOYMENT_TYPE": "slurm",
        "MAD_COLLECT_METRICS": "false",
        "MAD_IS_MASTER_NODE": "false",
    }.items() <= given.items()


@pytest.mark.parametrize("launcher", list(LAUNCHERS))
def test_the_first_rank_is_the_master(tmp_path: Path, launcher: str) -> None:
    given = rank(tmp_path, launcher, 0).environment
    assert (given["MAD_IS_MASTER_NODE"], given["MAD_COLLECT_METRICS"], given["RANK"]) == ("true", "true", "0")


@pytest.mark.parametrize(
    ("launcher", "expected"),
    [
        ("none", {"MAD_MULTI_NODE_RUNNER": None}),
        ("torchrun", {"MAD_MULTI_NODE_RUNNER": TORCH}),
        (
            "megatron-lm",
            {
                "MAD_MULTI_NODE_RUNNER": TORCH,
                "TENSOR_MODEL_PARALLEL_SIZE": "8",
                "PIPELINE_MODEL_PARALLEL_SIZE": "3",
            },
        ),
        (
            "torchtitan",
            {
                "MAD_MULTI_NODE_RUNNER": TORCH,
                "TORCHTITAN_TENSOR_PARALLEL_SIZE": "8",
                "TORCHTITAN_PIPELINE_PARALLEL_SIZE": "3",
                "TORCHTITAN_FSDP_ENABLED": "1",
                "TORCHTITAN_CONTEXT_PARALLEL_SIZE": "1",
            },
        ),
        (
            "deepspeed",
            {
                "MAD_MULTI_NODE_RUNNER": "deepspeed --hostfile=deepspeed.hostfile --master_addr=10.0.0.1 "
                "--master_port=29500"
            },
        ),
        ("primus", {"MAD_MULTI_NODE_RUNNER": None, "BACKEND": "torchtitan"}),
        ("vllm", {"VLLM_TENSOR_PARALLEL_SIZE": "8", "VLLM_DISTRIBUTED_BACKEND": "none"}),
        ("sglang", {"SGLANG_TENSOR_PARALLEL_SIZE": "8", "SGLANG_PIPELINE_PARALLEL_SIZE": "1"}),
        (
            "sglang-disagg",
            {
                "SGLANG_DISAGG_MODE": "enabled",
                "SGLANG_DISAGG_PREFILL_NODES": "1",
                "SGLANG_DISAGG_DECODE_NODES": "1",
                "SGLANG_DISAGG_TOTAL_NODES": "3",
                "SGLANG_TP_SIZE": "8",
                "SGLANG_NODE_RANK": "2",
                "SGLANG_NODE_IPS": "10.0.0.1,10.0.0.2,10.0.0.3",
            },
        ),
        ("slurm_multi", {"MAD_MULTI_NODE_RUNNER": None}),
    ],
)
def test_a_launcher_gives_its_variables_on_a_node(
    tmp_path: Path, launcher: str, expected: dict[str, str | None]
) -> None:
    given = rank(tmp_path, launcher).environment
    assert {name: given.get(name) for name in expected} == expected


def test_the_launchers_files_go_with_the_run(tmp_path: Path) -> None:
    text = "".join(f"{host} slots=8\n" for host in HOSTS)
    assert rank(tmp_path, "deepspeed").files == {"deepspeed.hostfile": text}


def test_the_blocks_own_process_count_beats_the_number_of_gpus(tmp_path: Path) -> None:
    assert rank(tmp_path, "torchrun", nproc_per_node=4).environment["WORLD_SIZE"] == "12"
