"""The build manifest: null rules, required keys, pointers, document order, cross-field checks, migration."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from madengine.core.errors import ValidationError
from madengine.schemas import migrate_top_level_deployment_blocks, validate_build_manifest
from madengine.schemas.manifest import manifest_problems


def manifest(**changes: Any) -> dict[str, Any]:
    """A small manifest that keeps to its contract, with some top-level keys replaced."""
    return {
        "built_images": {"a": {"docker_image": "ci-a"}},
        "built_models": {"a": {"name": "a"}},
        "context": {},
        **changes,
    }


def deployed(**deployment: Any) -> dict[str, Any]:
    return manifest(deployment_config=deployment)


def first_violation(document: Any) -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        validate_build_manifest(document, source="m.json")
    return caught.value


def test_a_small_manifest_gives_no_warning() -> None:
    assert validate_build_manifest(manifest()) == []


def test_the_real_manifests_keep_to_the_contract(real_mad: Path) -> None:
    for path in sorted((real_mad / "manifests").glob("*.json")):
        assert validate_build_manifest(json.loads(path.read_text()), str(path)) == []


@pytest.mark.parametrize("key", ["built_images", "built_models", "context"])
def test_a_required_block_that_is_missing_is_named(key: str) -> None:
    document = manifest()
    del document[key]
    error = first_violation(document)
    assert str(error).startswith(f'm.json#: found an object without "{key}", allowed: an object with "built_images"')


def test_a_misspelt_required_key_is_recognised() -> None:
    document = manifest()
    document["built_imagse"] = document.pop("built_images")
    assert first_violation(document).hint == 'there is a key "built_imagse": is it misspelt?'


NULLS = {
    "an image": {"built_images": {"a": dict.fromkeys(("model", "docker_image", "dockerfile", "base_docker",
        "docker_sha", "local_image", "registry", "registry_image", "gpu_vendor", "gpu_architecture", "build_duration",
        "build_command", "log_file"))}},
    "a model": {"built_models": {"a": {"name": "a", **dict.fromkeys(("dockerfile", "dockercontext", "scripts", "url",
        "cred", "owner", "data", "n_gpus", "timeout", "training_precision", "tags", "args", "multiple_results",
        "skip_gpu_arch", "deprecated", "additional_docker_run_options", "env_vars", "distributed", "slurm"))}}},
    "the blocks of the context": {"context": dict.fromkeys(("docker_env_vars", "docker_mounts", "docker_build_arg",
        "docker_gpus", "gpu_vendor", "guest_os", "tools", "pre_scripts", "post_scripts", "encapsulate_script"))},
    "deployment_config": {"deployment_config": None},
    "its blocks": {"deployment_config": dict.fromkeys(("slurm", "k8s", "kubernetes", "distributed", "vllm",
        "env_vars", "env_file"))},
    "the rest": {"credentials_required": None, "summary": None},
}  # fmt: skip


@pytest.mark.parametrize("name", NULLS)
def test_null_is_accepted_where_madengine_may_write_it(name: str) -> None:
    assert validate_build_manifest(manifest(**NULLS[name])) == []


VIOLATIONS: list[tuple[dict[str, Any], str, str]] = [
    (manifest(built_images=[]), "/built_images", "found a list, allowed: an object"),
    (manifest(built_images={"a": None}), "/built_images/a", "found null, allowed: an object"),
    (manifest(built_images={"a": {"local_image": 1}}), "/built_images/a/local_image", "found the number 1, allowed: t"),
    (manifest(built_models={"a": {}}), "/built_models/a", 'found an object without "name", allowed: an obj'),
    (manifest(built_models={"a": {"name": ""}}), "/built_models/a/name", 'found a string "", allowed: a str'),
    (manifest(built_models={"a": {"name": "a", "n_gpus": True}}), "/built_models/a/n_gpus", "found true, allowed: a"),
    (manifest(built_models={"a": {"name": "a", "n_gpus": "two"}}), "/built_models/a/n_gpus", 'found a string "two"'),
    (manifest(built_models={"a": {"name": "a", "timeout": "9"}}), "/built_models/a/timeout", 'found a string "9"'),
    (manifest(built_models={"a": {"name": "a", "tags": [1]}}), "/built_models/a/tags/0", "found the number 1, allowed"),
    (manifest(context=None), "/context", "found null, allowed: an object"),
    (manifest(context={"docker_env_vars": {"A": None}}), "/context/docker_env_vars/A", "found null, allowed: a string"),
    (manifest(context={"docker_env_vars": {"A": []}}), "/context/docker_env_vars/A", "found a list, allowed"),
    (manifest(context={"docker_env_vars": {"A=B": 1}}), "/context/docker_env_vars/A=B", 'found the key "A=B", allowed'),
    (manifest(context={"docker_env_vars": {"": 1}}), "/context/docker_env_vars/", 'found the key "", allowed: the'),
    (manifest(context={"docker_mounts": {"/a": 1}}), "/context/docker_mounts/~1a", "found the number 1, allowed: a"),
    (manifest(context={"gpu_vendor": "INTEL"}), "/context/gpu_vendor", 'found a string "INTEL", allowed: "AMD", "NV'),
    (manifest(context={"tools": [{"cmd": "x"}]}), "/context/tools/0", 'found an object without "name"'),
    (deployed(target="mars"), "/deployment_config/target", 'found a string "mars", allowed: "local", "docker"'),
    (deployed(env_vars={"A": None}), "/deployment_config/env_vars/A", "found null"),
    (deployed(slurm={"nodes": "two"}), "/deployment_config/slurm/nodes", 'found a string "two", allowed: an int'),
    (deployed(slurm={"nodes": 0}), "/deployment_config/slurm/nodes", "found the number 0, allowed: an integer >= 1"),
    (deployed(slurm={"nodes": True}), "/deployment_config/slurm/nodes", "found true, allowed: an integer >= 1"),
    (deployed(slurm={"nodes": 1.5}), "/deployment_config/slurm/nodes", "found the number 1.5, allowed: an int"),
    (deployed(slurm={"gpus_per_node": -1}), "/deployment_config/slurm/gpus_per_node", "found the number -1"),
    (deployed(slurm={"time": 60}), "/deployment_config/slurm/time", "found the number 60, allowed: a string"),
    (deployed(slurm={"exclusive": "yes"}), "/deployment_config/slurm/exclusive", "allowed: true or false"),
    (deployed(slurm={"modules": "rocm"}), "/deployment_config/slurm/modules", "allowed: a list of strings"),
    (deployed(distributed={"nnodes": 0}), "/deployment_config/distributed/nnodes", "allowed: an integer >= 1"),
    (deployed(distributed={"nproc_per_node": []}), "/deployment_config/distributed/nproc_per_node", "found a list"),
    (deployed(distributed={"port": 0}), "/deployment_config/distributed/port", "allowed: an integer from 1 to 65535"),
    (deployed(distributed={"port": 65536}), "/deployment_config/distributed/port", "found the number 65536"),
    (deployed(k8s={"gpu_count": "1"}), "/deployment_config/k8s/gpu_count", 'found a string "1"'),
]  # fmt: skip


@pytest.mark.parametrize(("document", "pointer", "message"), VIOLATIONS, ids=[f"{p}: {m}" for _, p, m in VIOLATIONS])
def test_a_violation_names_file_pointer_what_was_found_and_what_is_allowed(
    document: dict[str, Any], pointer: str, message: str
) -> None:
    error = first_violation(document)
    assert error.pointer == pointer
    assert message in error.message
    assert str(error).startswith(f"m.json#{pointer}: found ")
    assert error.message == f"found {error.found}, allowed: {error.allowed}"


@pytest.mark.parametrize("string", ["partition", "account", "qos", "reservation", "nodelist", "exclude", "constraint",
    "time", "output_dir", "results_dir", "shared_workspace", "network_interface", "cluster_profile"])  # fmt: skip
def test_the_text_settings_of_slurm_are_strings(string: str) -> None:
    assert first_violation(deployed(slurm={string: 5})).pointer == f"/deployment_config/slurm/{string}"
    assert validate_build_manifest(deployed(slurm={string: "5"})) == []


@pytest.mark.parametrize("key", ["a/b", "c~d", "~1", "", "ä ö", "010", "10"])
def test_the_pointer_escapes_keys(key: str) -> None:
    escaped = key.replace("~", "~0").replace("/", "~1")
    error = first_violation(manifest(built_images={key: {}}, built_models={key: {"name": 1}}))
    assert error.pointer == f"/built_models/{escaped}/name"


def test_the_first_violation_is_the_first_in_the_document_not_in_the_schema() -> None:
    early = {"context": {"docker_gpus": []}, **{k: v for k, v in manifest().items() if k != "context"}}
    early["built_models"] = {"a": {"timeout": "x", "name": 5}}
    assert first_violation(early).pointer == "/context/docker_gpus"
    del early["context"]["docker_gpus"]
    assert first_violation(early).pointer == "/built_models/a/timeout"


def test_list_items_are_ordered_as_numbers_among_keys_that_look_like_numbers() -> None:
    tags: list[Any] = ["x"] * 12
    tags[2] = tags[10] = 5
    assert (
        first_violation(manifest(built_models={"a": {"name": "a", "tags": tags}})).pointer == "/built_models/a/tags/2"
    )
    models = {"10": {"name": 1}, "9": {"name": 1, "tags": [1]}, "a": {"name": 1}}
    document = manifest(built_images={key: {} for key in models}, built_models=models)
    pointers = [problem.pointer for problem in manifest_problems(document)]
    assert pointers == [f"/built_models/{place}" for place in ("10/name", "9/name", "9/tags/0", "a/name")]


def test_an_object_comes_before_its_members() -> None:
    document = manifest(built_models={"a": {"tags": 5}})
    assert [problem.code for problem in manifest_problems(document)] == ["required", "type"]


def test_a_manifest_full_of_violations_is_judged_by_its_first_ones() -> None:
    document = manifest(context={"docker_env_vars": dict.fromkeys((f"A{n}" for n in range(200_000)), None)})
    assert first_violation(document).pointer == "/context/docker_env_vars/A0"
    assert len(manifest_problems(document)) == 1000


def test_a_model_without_an_image_is_an_error() -> None:
    error = first_violation(manifest(built_models={"a": {"name": "a"}, "b/c": {"name": "b"}}))
    assert error.pointer == "/built_models/b~1c"
    assert "built_images has no such key" in error.message


def test_nodes_that_disagree_are_an_error_that_says_what_would_happen() -> None:
    error = first_violation(deployed(slurm={"nodes": 2}, distributed={"nnodes": 4}))
    assert error.pointer == "/deployment_config/slurm/nodes"
    assert "slurm.nodes is 2 but distributed.nnodes is 4" in error.message
    assert "sbatch and the launcher would disagree on the world size" in error.message


def test_nodes_of_a_card_that_disagree_are_an_error() -> None:
    card = {"name": "a", "slurm": {"nodes": 2}, "distributed": {"nnodes": 1}}
    assert first_violation(manifest(built_models={"a": card})).pointer == "/built_models/a/slurm/nodes"


@pytest.mark.parametrize("block", [{"slurm": {"nodes": 2}}, {"distributed": {"nnodes": 2}}, {"slurm": {"nodes": 2},
    "distributed": {"nnodes": 2}}, {"slurm": None, "distributed": {"nnodes": 2}}])  # fmt: skip
def test_nodes_that_are_given_once_or_agree_are_fine(block: dict[str, Any]) -> None:
    assert validate_build_manifest(deployed(**block)) == []


def test_an_image_without_a_model_is_a_warning() -> None:
    (warning,) = validate_build_manifest(manifest(built_images={"a": {}, "b~": {}}), "m.json")
    assert warning.startswith('m.json#/built_images/b~0: no model runs in the image "b~"')


@pytest.mark.parametrize("block", [{}, {"slurm": None}, {"slurm": {}}])
def test_the_target_slurm_without_a_slurm_block_is_a_warning(block: dict[str, Any]) -> None:
    (warning,) = validate_build_manifest(deployed(target="slurm", **block))
    assert 'there is no "slurm" block' in warning


@pytest.mark.parametrize("block", ["slurm", "k8s", "kubernetes", "distributed"])
@pytest.mark.parametrize("present", [{}, {"deployment_config": None}, {"deployment_config": {"debug": True}}])
def test_a_top_level_block_moves_under_deployment_config(block: str, present: dict[str, Any]) -> None:
    document = manifest(**copy.deepcopy(present), **{block: {"x": 1}})
    (warning,) = validate_build_manifest(document)
    assert f'"{block}" belongs under "deployment_config"' in warning
    assert block not in document
    assert document["deployment_config"] == {**(present.get("deployment_config") or {}), block: {"x": 1}}


def test_a_block_under_deployment_config_wins_and_the_other_is_reported() -> None:
    document = manifest(slurm={"nodes": 2}, deployment_config={"slurm": {"nodes": 3}})
    (warning,) = migrate_top_level_deployment_blocks(document)
    assert "this one is ignored" in warning
    assert document == manifest(deployment_config={"slurm": {"nodes": 3}})


def test_a_block_that_is_null_under_deployment_config_does_not_win() -> None:
    document = manifest(slurm={"nodes": 2}, deployment_config={"slurm": None})
    assert "belongs under" in migrate_top_level_deployment_blocks(document)[0]
    assert document["deployment_config"]["slurm"] == {"nodes": 2}


def test_without_migration_the_document_stays_as_it_was() -> None:
    document = manifest(slurm={"nodes": 2})
    assert validate_build_manifest(document, migrate=False) == []
    assert document == manifest(slurm={"nodes": 2})


@pytest.mark.parametrize("document", [None, [], "x", 5, manifest(deployment_config=[], slurm={})])
def test_migration_leaves_alone_what_it_cannot_move(document: Any) -> None:
    before = copy.deepcopy(document)
    assert migrate_top_level_deployment_blocks(document) == []
    assert document == before


def test_a_violation_in_a_moved_block_is_reported_where_it_was_written() -> None:
    document = manifest(distributed={"port": 0}, slurm={"nodes": 2})
    found = {problem.pointer: problem.code for problem in manifest_problems(document)}
    assert found == {"/distributed": "belongs-under", "/slurm": "belongs-under", "/distributed/port": "range"}


@pytest.mark.parametrize(
    ("blocks", "pointer"),
    [
        ({"slurm": {"nodes": "2"}}, "/slurm/nodes"),
        ({"slurm": []}, "/slurm"),
        ({"slurm": {"nodes": 2}, "distributed": {"nnodes": 3}}, "/slurm/nodes"),
        ({"slurm": {"nodes": 2}, "deployment_config": {"slurm": {"nodes": "3"}}}, "/deployment_config/slurm/nodes"),
    ],
)
def test_the_first_violation_names_the_place_where_the_user_wrote_it(blocks: dict[str, Any], pointer: str) -> None:
    error = first_violation(manifest(**blocks))
    assert error.pointer == pointer
    assert f"#{pointer}:" in str(error)


def test_all_problems_are_listed_not_only_the_first() -> None:
    document = manifest(
        built_images={"z": {"local_image": 3}},
        deployment_config={"slurm": {"nodes": 1}, "distributed": {"nnodes": 2, "port": "x"}},
    )
    assert [problem.code for problem in manifest_problems(document)] == [
        "type", "type", "model-without-image", "nodes-mismatch", "image-without-model",
    ]  # fmt: skip


def test_unknown_and_comment_keys_are_allowed_everywhere() -> None:
    document = manifest(_comment=["x"], future={"a": None}, context={"_note": 1, "x": []})
    document["built_images"]["a"]["_comment"] = "x"
    document["built_models"]["a"]["later"] = None
    document["deployment_config"] = {"monitor": True, "slurm": {"_comment": "x", "later": 1}}
    assert validate_build_manifest(document) == []


def test_a_secret_of_the_wrong_type_is_not_quoted() -> None:
    error = first_violation(manifest(built_models={"a": {"name": "a", "distributed": {"port": "canary"}}}))
    assert "canary" in str(error)
    error = first_violation(manifest(built_models={"HF_TOKEN": {"name": "a", "distributed": {"port": "canary"}}}))
    assert "canary" not in str(error)


@pytest.mark.parametrize("value", [{1, 2}, {1: 2}, object(), (1, 2)])
def test_a_value_that_is_not_json_is_a_violation(value: Any) -> None:
    with pytest.raises(ValidationError, match="allowed: "):
        validate_build_manifest(manifest(built_images=value))
