"""Remarks about manifests that keep to their contract."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from madengine.schemas.lint import count_nodes, lint_manifest
from madengine.schemas.package_files import is_package, missing_files

TOKEN = "hf_" + "a1B2" * 8


def codes(document: Any, secrets: tuple[str, ...] = ()) -> dict[str, str]:
    return {problem.pointer: problem.code for problem in lint_manifest(document, secrets)}


def blocks(container: dict[str, Any] | None, job: dict[str, Any] | None, **deployment: Any) -> dict[str, Any]:
    return {"context": {"docker_env_vars": container}, "deployment_config": {"env_vars": job, **deployment}}


CONTAINER, JOB = "/context/docker_env_vars/", "/deployment_config/env_vars/"


@pytest.mark.parametrize(
    "name", ["NCCL_IB_HCA", "RCCL_AINIC_ROCE", "RDMAV_DRIVERS", "IBV_DRIVERS", "GLOO_SOCKET_IFNAME"]
)
def test_a_transport_variable_must_be_the_same_in_both_blocks(name: str) -> None:
    assert codes(blocks({name: "a"}, {name: "b"})) == {JOB + name: "transport-differs"}
    assert codes(blocks({name: "a", "X": "1"}, {"Y": "2"})) == {CONTAINER + name: "transport-one-sided"}
    assert codes(blocks({"X": "1"}, {name: "a"})) == {JOB + name: "transport-one-sided"}
    assert codes(blocks({name: "a"}, {name: "a"})) == {}


def test_values_are_compared_as_the_text_that_a_process_is_given() -> None:
    assert codes(blocks({"NCCL_A": 1, "NCCL_B": True}, {"NCCL_A": "1", "NCCL_B": "true"})) == {}


def test_other_variables_may_differ() -> None:
    assert codes(blocks({"A": "1", "IBV_SHOW_WARNINGS": "1"}, {"A": "2"})) == {}


def test_a_missing_block_is_only_worth_a_remark_when_the_run_goes_elsewhere() -> None:
    assert codes(blocks({"NCCL_A": "1"}, None)) == {}
    assert codes(blocks({"NCCL_A": "1"}, None, target="local")) == {}
    assert codes(blocks({"NCCL_A": "1"}, None, target="slurm")) == {CONTAINER + "NCCL_A": "transport-one-sided"}
    assert codes(blocks({"NCCL_A": "1"}, None, slurm={"nodes": 1})) == {CONTAINER + "NCCL_A": "transport-one-sided"}


def test_transport_variables_are_compared_once_they_are_filled_in() -> None:
    assert codes(blocks({"NCCL_A": "<FILL_A>", "NCCL_B": "1"}, {"NCCL_A": "<FILL_A same>"})) == {}


@pytest.mark.parametrize(
    ("nodelist", "count"),
    [
        ("a", 1),
        ("a,b", 2),
        ("node[1-4]", 4),
        ("node-[01-04,7],gpu1", 6),
        ("r[1-2]n[1-3]", 6),
        ("[1-3]", 3),
        ("node[4-1]", None),
        ("node[1-", None),
        ("node]1[", None),
        ("a,,b", None),
        ("", None),
        ("n[1--2]", None),
        ("n[" + "9" * 50 + "]", None),
    ],
)
def test_the_hosts_of_a_list_are_counted(nodelist: str, count: int | None) -> None:
    assert count_nodes(nodelist) == count


def test_a_nodelist_of_another_length_is_a_remark() -> None:
    deployment = {"slurm": {"nodes": 3, "nodelist": "a,b"}}
    (remark,) = lint_manifest({"deployment_config": deployment})
    assert remark.message == "nodelist names 2 nodes, but nodes is 3"
    deployment["slurm"]["nodelist"] = "<OPTIONAL a,b>"
    assert lint_manifest({"deployment_config": deployment}) == []


def test_comments_in_maps_become_variables_and_mounts() -> None:
    document = {
        "_comment": "fine",
        "context": {"_comment": "fine", "docker_mounts": {"_comment_a": "x"}, "docker_build_arg": {"_note": "y"}},
        "built_models": {"a/b": {"_note": "fine", "env_vars": {"_comment": "z"}}},
    }
    assert codes(document) == {
        "/context/docker_mounts/_comment_a": "comment-in-map",
        "/context/docker_build_arg/_note": "comment-in-map",
        "/built_models/a~1b/env_vars/_comment": "comment-in-map",
    }


@pytest.mark.parametrize("value", [TOKEN, f"--token={TOKEN} -x", "ghp_" + "a" * 36, "-----BEGIN RSA PRIVATE KEY-----"])
def test_what_looks_like_a_secret_is_remarked_wherever_it_stands_and_never_quoted(value: str) -> None:
    remarks = lint_manifest({"built_models": {"a": {"args": [value]}}})
    assert [(remark.pointer, remark.code) for remark in remarks] == [("/built_models/a/args/0", "secret")]
    assert value not in str(remarks)


def test_a_variable_named_like_a_secret_must_be_a_reference() -> None:
    names = {"HF_TOKEN": "some-literal-value", "DB_PASSWORD": "${DB_PASSWORD}", "TOKENIZER_PATH": "/a/long/path"}
    assert codes(blocks(names, None)) == {CONTAINER + "HF_TOKEN": "secret"}


def test_a_value_known_to_be_secret_is_found_inside_other_values() -> None:
    document = {"context": {"x": "a canary-value b"}}
    assert codes(document, ("canary-value",)) == {"/context/x": "secret"}
    assert codes(document, ("a", "")) == {}


def test_a_secret_is_remarked_once() -> None:
    assert codes(blocks({"HF_TOKEN": TOKEN}, None)) == {CONTAINER + "HF_TOKEN": "secret"}
    assert len(lint_manifest(blocks({"HF_TOKEN": TOKEN}, None))) == 1


def test_the_real_manifests_deserve_no_remark(real_mad: Path) -> None:
    for path in (real_mad / "manifests").glob("*.json"):
        assert lint_manifest(json.loads(path.read_text())) == [], path.name


def package(folder: Path) -> Path:
    for name in ("docker/a.ubuntu.amd.Dockerfile", "docker/b.Dockerfile", "scripts/x/run.sh"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def test_files_that_the_package_lacks_are_remarked(tmp_path: Path) -> None:
    document = {
        "built_images": {"a": {"dockerfile": "docker/a.ubuntu.amd.Dockerfile"}, "b": {"dockerfile": "docker/z"}},
        "built_models": {
            "a": {"dockerfile": "docker/a", "scripts": "scripts/x/run.sh"},
            "b": {"dockerfile": "docker/a.ubuntu.amd", "scripts": "scripts/y"},
            "c": {"dockerfile": "N/A (local image mode)", "scripts": "scripts/x"},
            "d": {"dockerfile": None, "scripts": "<FILL_SCRIPT>"},
        },
    }
    found = {problem.pointer: problem.code for problem in missing_files(document, package(tmp_path))}
    assert found == {
        "/built_images/b/dockerfile": "missing-dockerfile",
        "/built_models/b/scripts": "missing-scripts",
    }


@pytest.mark.parametrize("value", ["a\0b", "x" * 5000, "../../..", "\udcff"])
def test_impossible_paths_are_missing_not_a_traceback(value: str, tmp_path: Path) -> None:
    document = {"built_models": {"a": {"dockerfile": value, "scripts": value + "/nowhere"}}}
    assert len(missing_files(document, package(tmp_path))) == 2


def test_a_folder_with_cards_alone_is_no_whole_package(tmp_path: Path, real_mad: Path) -> None:
    assert is_package(package(tmp_path))
    assert not is_package(tmp_path / "scripts")
    assert not is_package(real_mad)
