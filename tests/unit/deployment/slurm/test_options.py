"""How a job is asked for, and where each value comes from."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from madengine.catalog.card import ModelCard
from madengine.core.errors import ConfigurationError
from madengine.deployment.slurm.options import (
    CARD,
    CONFIGURED,
    DEFAULT,
    SlurmOptions,
    output_dir,
    place_of,
    slurm_options,
)
from madengine.schemas import load_schema

NOWHERE = {"XDG_CONFIG_HOME": "/nonexistent"}


def options(slurm: Any = None, card: dict[str, Any] | None = None, **rest: Any) -> SlurmOptions:
    vendor = rest.pop("gpu_vendor", "")
    environ = rest.pop("environ", NOWHERE)
    model = ModelCard({"name": "m", **(card or {})})
    return slurm_options(model, {"slurm": slurm, **rest}, gpu_vendor=vendor, environ=environ)


def test_without_a_word_a_job_has_the_built_in_defaults() -> None:
    made = options()
    assert (made.nodes, made.gpus_per_node, made.time, made.exclusive) == (1, 8, "24:00:00", True)
    assert made.output_dir == "./slurm_results"
    assert made.environment == {"OMP_NUM_THREADS": "8", "MIOPEN_FIND_MODE": "1"}
    assert set(made.origins.values()) == {DEFAULT}


def test_the_manifest_beats_the_card_beats_the_profile_beats_the_default(tmp_path: Path) -> None:
    folder = tmp_path / "madengine" / "slurm"
    folder.mkdir(parents=True)
    profile = {
        "slurm": {"partition": "p", "qos": "p", "time": "1", "account": "p"},
        "env_vars": {"OMP_NUM_THREADS": "2"},
    }
    (folder / "c.json").write_text(json.dumps(profile))
    made = options(
        {"partition": "m", "cluster_profile": "c"},
        {"slurm": {"partition": "c", "qos": "c"}},
        environ={"XDG_CONFIG_HOME": str(tmp_path)},
    )
    assert (made.partition, made.qos, made.time, made.nodes) == ("m", "c", "1", 1)
    assert [made.origins[key] for key in ("partition", "qos", "nodes")] == [CONFIGURED, CARD, DEFAULT]
    assert made.origins["time"].startswith("profile c (")
    assert made.environment["OMP_NUM_THREADS"] == "2"
    assert made.origins["env:OMP_NUM_THREADS"].startswith("profile c (")


def test_variables_that_sites_tell_their_users_to_set_are_the_weakest() -> None:
    site = {**NOWHERE, "SBATCH_ACCOUNT": "bench", "SBATCH_PARTITION": "site", "SBATCH_TIMELIMIT": "1"}
    made = options({"partition": "mine"}, environ=site)
    assert (made.partition, made.account, made.time) == ("mine", "bench", "24:00:00")
    assert made.origins["account"] == "environment: SBATCH_ACCOUNT"


def test_null_is_not_given() -> None:
    assert options({"partition": None, "time": None}, {"slurm": None}).time == "24:00:00"


def test_a_card_that_needs_no_gpu_asks_for_none_unless_somebody_says_so() -> None:
    assert options(None, {"n_gpus": "0"}).gpus_per_node == 0
    assert options({"gpus_per_node": 4}, {"n_gpus": "0"}).gpus_per_node == 4
    assert options(None, {"n_gpus": "-1"}).gpus_per_node == 8


@pytest.mark.parametrize(
    ("slurm", "distributed", "card", "nodes", "origin"),
    [
        ({"nodes": 2}, None, {}, 2, CONFIGURED),
        (None, {"nnodes": 3}, {}, 3, CONFIGURED),
        (None, None, {"slurm": {"nodes": 4}}, 4, CARD),
        (None, None, {"distributed": {"nnodes": 5}}, 5, CARD),
        ({"nodes": 2}, {"nnodes": 2}, {"slurm": {"nodes": 4}}, 2, CONFIGURED),
    ],
)
def test_the_number_of_nodes_may_be_said_in_two_blocks(
    slurm: Any, distributed: Any, card: dict[str, Any], nodes: int, origin: str
) -> None:
    made = options(slurm, card, distributed=distributed)
    assert (made.nodes, made.origins["nodes"]) == (nodes, origin)


@pytest.mark.parametrize(
    ("slurm", "distributed", "card"),
    [({"nodes": 2}, {"nnodes": 4}, {}), (None, None, {"slurm": {"nodes": 2}, "distributed": {"nnodes": 4}})],
)
def test_two_blocks_that_disagree_are_an_error(slurm: Any, distributed: Any, card: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="disagree on the world size"):
        options(slurm, card, distributed=distributed)


def test_jobs_of_several_nodes_and_vendors_get_their_variables() -> None:
    assert options({"nodes": 2}).environment["NCCL_DEBUG"] == "WARN"
    assert options(gpu_vendor="AMD").environment["HSA_FORCE_FINE_GRAIN_PCIE"] == "1"
    assert options(gpu_vendor="CPU").environment == options().environment


def test_a_network_interface_is_what_ranks_find_each_other_on() -> None:
    made = options({"network_interface": "eno0"})
    assert (made.environment["NCCL_SOCKET_IFNAME"], made.environment["GLOO_SOCKET_IFNAME"]) == ("eno0", "eno0")
    assert made.origins["env:NCCL_SOCKET_IFNAME"] == "slurm.network_interface"


@pytest.mark.parametrize(
    "slurm", [{"partition": "a\nb"}, {"account": "a\0"}, {"modules": ["rocm", "x\n"]}, {"constraint": "\x1b[1m"}]
)
def test_a_value_that_no_script_can_hold_is_refused_by_its_name(slurm: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=f"slurm.{next(iter(slurm))}"):
        options(slurm)


def test_memory_may_be_a_number() -> None:
    assert options({"mem": 0}).mem == "0"
    assert options({"mem": "64G"}).mem == "64G"


def test_the_output_folder_is_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    assert output_dir({}) == tmp_path / "slurm_results"
    assert output_dir({"slurm": {"output_dir": "../x"}}) == tmp_path.parent / "x"
    assert output_dir({"slurm": {"output_dir": "~/x"}}) == Path("/home/me/x")


@pytest.mark.parametrize("name", ["a\\b", "a\nb", "a\x1b[1m"])
def test_a_folder_that_sbatch_cannot_handle_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="sbatch cannot handle"):
        output_dir({"slurm": {"output_dir": f"/{name}"}})


def test_the_place_of_a_card_is_elsewhere() -> None:
    made = options({"nodes": 2, "gpus_per_node": 4})
    place = place_of(made, ModelCard({"name": "m", "distributed": {"port": 1234}}), {})
    assert (place.nnodes, place.gpus_per_node, place.master_port, place.elsewhere) == (2, 4, 1234, True)
    assert len(place.hosts) == 2


def test_every_option_is_described_in_the_manifests_schema() -> None:
    described = set(load_schema()["$defs"]["slurm"]["properties"])
    ours = {each.name for each in fields(SlurmOptions)} - {"environment", "origins"}
    assert ours <= described
    assert described - ours == {"cluster_profile"}
