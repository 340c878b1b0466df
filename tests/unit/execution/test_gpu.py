"""Finding GPUs in recorded answers of drivers and tools, and granting them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from madengine.core.errors import ConfigurationError, ExecutionError
from madengine.execution.gpu import GpuInventory, Machine, ask_program, detect, grant, parse_indices, restricted
from madengine.execution.gpu_amd import parse_amd_smi, parse_rocm_smi, parse_rocminfo, target_name
from madengine.execution.gpu_nvidia import parse_query

RECORDED = Path(__file__).parents[2] / "data" / "gpu"
MI300X = GpuInventory("AMD", 8, "gfx942", "AMD Instinct MI300X", "6.4", tuple(f"/dev/dri/renderD{n}" for n in range(8)))
CPU = GpuInventory()


def recorded(name: str) -> str:
    return (RECORDED / name).read_text()


def machine(root: Path, **answers: str) -> Machine:
    """A machine with these files and these programs; every other program is not installed."""

    def ask(argv: Sequence[str]) -> str | None:
        return answers.get(argv[0].replace("-", "_"))

    return Machine(root, ask)


def test_amd_gpus_are_read_from_the_drivers_topology() -> None:
    here = machine(RECORDED / "amd_mi300x", amd_smi=recorded("amd_smi_static_asic.json"))
    assert detect(machine=here) == GpuInventory(
        vendor="AMD",
        count=2,
        architecture="gfx942",
        product="AMD Instinct MI300X",
        hip_version="6.4.1-83",
        render_nodes=("/dev/dri/renderD128", "/dev/dri/renderD136"),
    )


def test_without_any_tool_the_topology_still_tells_count_and_architecture() -> None:
    found = detect(machine=machine(RECORDED / "amd_mi300x"))
    assert (found.count, found.architecture, found.product) == (2, "gfx942", "")


def test_the_older_tool_names_the_product_and_hipconfig_the_version() -> None:
    here = machine(
        RECORDED / "amd_mi300x", rocm_smi=recorded("rocm_smi_showproductname.json"), hipconfig="6.4.43483-a187df25c"
    )
    found = detect(machine=here)
    assert (found.product, found.hip_version) == ("AMD Instinct MI300X", "6.4.43483-a187df25c")


def test_without_a_topology_rocminfo_is_asked(tmp_path: Path) -> None:
    found = detect(machine=machine(tmp_path, rocminfo=recorded("rocminfo.txt")))
    assert found == GpuInventory("AMD", 1, "gfx942", "AMD Instinct MI300X")


def test_nvidia_gpus_are_read_from_nvidia_smi(tmp_path: Path) -> None:
    found = detect(machine=machine(tmp_path, nvidia_smi=recorded("nvidia_smi_query.csv")))
    assert found == GpuInventory("NVIDIA", 2, "sm_90", "NVIDIA H100 80GB HBM3")


def test_a_machine_without_a_gpu_is_a_cpu(tmp_path: Path) -> None:
    assert detect(machine=machine(tmp_path)) == CPU


def test_a_vendor_that_is_said_limits_the_search() -> None:
    here = machine(RECORDED / "amd_mi300x", nvidia_smi=recorded("nvidia_smi_query.csv"))
    assert detect("NVIDIA", machine=here).vendor == "NVIDIA"
    assert detect("CPU", machine=here) == CPU


@pytest.mark.parametrize(
    ("version", "name"),
    [(90402, "gfx942"), (90010, "gfx90a"), (90500, "gfx950"), (110000, "gfx1100"), (120001, "gfx1201"), (0, "")],
)
def test_a_target_version_is_the_name_of_a_target(version: int, name: str) -> None:
    assert target_name(version) == name


@pytest.mark.parametrize(
    "text", ["", "garbage", "{", "[]", "{}", '{"gpu_data": []}', '{"card0": 1}', "[1]", '"x"', "7"]
)
def test_what_tools_print_in_trouble_names_nothing(text: str) -> None:
    assert parse_amd_smi(text) == ""
    assert parse_rocm_smi(text) == ""
    assert parse_rocminfo(text) == ([], "")
    assert parse_query(text) is None


def test_an_old_nvidia_smi_knows_no_architecture() -> None:
    found = parse_query("0, Tesla K80, [N/A]\n")
    assert found is not None
    assert (found.count, found.architecture) == (1, "")


def test_a_program_that_is_missing_or_fails_has_no_answer() -> None:
    assert ask_program(["no-such-gpu-tool"]) is None
    assert ask_program(["false"]) is None
    assert ask_program(["echo", "hello"]) == "hello\n"


@pytest.mark.parametrize(
    ("inventory", "n_gpus", "docker_gpus", "indices"),
    [
        (MI300X, -1, "", tuple(range(8))),
        (MI300X, 2, "", (0, 1)),
        (MI300X, 0, "", ()),
        (MI300X, 0, "0,1", ()),
        (MI300X, -1, "0,2-4", (0, 2, 3, 4)),
        (MI300X, 2, "4,2,2", (4, 2)),
        (MI300X, -1, "all", tuple(range(8))),
        (CPU, -1, "", ()),
        (CPU, 0, "", ()),
    ],
)
def test_a_grant_is_what_the_card_asks_and_the_user_allows(
    inventory: GpuInventory, n_gpus: int, docker_gpus: str, indices: tuple[int, ...]
) -> None:
    found = grant(inventory, n_gpus, docker_gpus)
    assert found.indices == indices
    assert found.render_nodes == tuple(inventory.render_nodes[index] for index in indices)
    assert (found.vendor, found.total) == (inventory.vendor, inventory.count)


@pytest.mark.parametrize(
    ("inventory", "n_gpus", "docker_gpus", "sentence"),
    [
        (GpuInventory("AMD", 2), 8, "", "the card asks for 8 GPUs, this machine has 2 AMD GPUs"),
        (CPU, 1, "", "the card asks for 1 GPU, this machine has no GPU"),
        (
            MI300X,
            4,
            "0,1",
            "the card asks for 4 GPUs, this machine has 8 AMD GPUs (AMD Instinct MI300X), "
            "and docker_gpus '0,1' allows 2 of them",
        ),
        (GpuInventory("NVIDIA", 1), -1, "0-2", "docker_gpus '0-2' names GPU 1, 2, this machine has 1 NVIDIA GPU"),
        (CPU, -1, "0", "docker_gpus '0' names GPU 0, this machine has no GPU"),
    ],
)
def test_more_than_there_is_is_refused_in_a_sentence(
    inventory: GpuInventory, n_gpus: int, docker_gpus: str, sentence: str
) -> None:
    with pytest.raises(ExecutionError) as refused:
        grant(inventory, n_gpus, docker_gpus)
    assert refused.value.message == sentence


@pytest.mark.parametrize("text", ["a", "1-", "-1-2", "3-1", "1,,2", "1;2", "$(id)", "0x1", "١", "99999", ","])
def test_a_list_of_gpus_that_is_none_is_an_error(text: str) -> None:
    with pytest.raises(ConfigurationError, match="docker_gpus"):
        parse_indices(text)


@pytest.mark.parametrize(
    ("count", "given", "indices"),
    [
        (8, "", tuple(range(8))),
        (8, "4,5", (4, 5)),
        (8, "0-3", (0, 1, 2, 3)),
        (2, "4,5", (0, 1)),  # the others are hidden from the job
        (2, "0,1", (0, 1)),
        (8, "(null)", tuple(range(8))),
    ],
)
def test_a_job_gets_the_gpus_that_its_scheduler_gave_it(count: int, given: str, indices: tuple[int, ...]) -> None:
    assert grant(restricted(GpuInventory("AMD", count), given), -1).indices == indices


def test_more_gpus_than_the_job_has_are_refused_with_both_numbers() -> None:
    with pytest.raises(ExecutionError, match=r"asks for 8 GPUs, this machine has 8 AMD GPUs.*, of which the job has 2"):
        grant(restricted(MI300X, "0,1"), 8)


def test_what_the_user_allows_is_taken_from_what_the_job_has() -> None:
    assert grant(restricted(MI300X, "4-7"), -1, "0-5").indices == (4, 5)
