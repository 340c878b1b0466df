"""Misspelt keys: which are found, which are left alone, and that real files raise no false alarm."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from madengine.schemas import validate_additional_context, validate_build_manifest, validate_model_cards
from madengine.schemas.loader import load_schema
from madengine.schemas.misspelt import CODE, Shape, closest, misspelt_keys, schema_shape, shape_of

REPOSITORY = Path(__file__).parents[3]
SCHEMAS = ("model_card", "additional_context", "build_manifest")


def found(name: str, document: Any) -> dict[str, str]:
    """Pointer -> the key that is meant."""
    problems = misspelt_keys(schema_shape(name), document)
    assert all(problem.severity == "warning" and problem.code == CODE for problem in problems)
    return {problem.pointer: (problem.hint or "").split('"')[1] for problem in problems}


MISSPELT: list[tuple[str, Any, str, str]] = [
    ("additional_context", {"gpu_vendro": "AMD"}, "/gpu_vendro", "gpu_vendor"),
    ("additional_context", {"docker_env_var": {}}, "/docker_env_var", "docker_env_vars"),
    ("additional_context", {"deployment-config": {}}, "/deployment-config", "deployment_config"),
    ("additional_context", {"Timeout": 1}, "/Timeout", "timeout"),
    ("additional_context", {"mad_container_image": "x"}, "/mad_container_image", "MAD_CONTAINER_IMAGE"),
    ("additional_context", {"deployment_config": {"slrum": {}}}, "/deployment_config/slrum", "slurm"),
    ("additional_context", {"distributed": {"nproc_per_nodes": 8}}, "/distributed/nproc_per_nodes", "nproc_per_node"),
    ("additional_context", {"tools": [{"name": "a"}, {"nmae": "x"}]}, "/tools/1/nmae", "name"),
    ("additional_context", {"pre_scripts": ["x", {"path": "y", "arg": 1}]}, "/pre_scripts/1/arg", "args"),
    ("additional_context", {"k8s": {"secrets": {"stratgy": "omit"}}}, "/k8s/secrets/stratgy", "strategy"),
    ("model_card", {"name": "x", "mutliple_results": "x.csv"}, "/mutliple_results", "multiple_results"),
    ("model_card", {"name": "x", "n_gpu": "1"}, "/n_gpu", "n_gpus"),
    ("model_card", {"name": "x", "docker_context": "."}, "/docker_context", "dockercontext"),
    ("model_card", {"slurm": {"nnodes": 2}}, "/slurm/nnodes", "nodes"),
    ("build_manifest", {"built_model": {}}, "/built_model", "built_models"),
    ("build_manifest", {"built_models": {"a/b": {"n_gpu": 1}}}, "/built_models/a~1b/n_gpu", "n_gpus"),
    ("build_manifest", {"built_images": {"a": {"dockerimage": 1}}}, "/built_images/a/dockerimage", "docker_image"),
    ("build_manifest", {"slurm": {"partion": "x"}}, "/slurm/partion", "partition"),
    (
        "build_manifest",
        {"deployment_config": {"distributed": {"primus": {"confg_path": "x"}}}},
        "/deployment_config/distributed/primus/confg_path",
        "config_path",
    ),
]


@pytest.mark.parametrize(("name", "document", "pointer", "meant"), MISSPELT)
def test_a_key_that_is_nearly_a_known_one_is_found_where_it_stands(
    name: str, document: Any, pointer: str, meant: str
) -> None:
    assert found(name, document) == {pointer: meant}


def test_the_warning_says_which_key_and_what_may_be_meant() -> None:
    (problem,) = misspelt_keys(schema_shape("additional_context"), {"gpu_vendro": "hf_canary"})
    assert problem.sentence("--additional-context") == (
        '--additional-context#/gpu_vendro: unknown key "gpu_vendro" (did you mean "gpu_vendor"?)'
    )


LEFT_ALONE: list[tuple[str, Any]] = [
    ("additional_context", {"docker_env_vars": {"gpu_vendro": "1", "docker_env_var": "2"}}),
    ("additional_context", {"docker_mounts": {"/timeouts": "/x"}, "docker_build_arg": {"targets": "1"}}),
    ("additional_context", {"tools": [{"name": "x", "env_vars": {"nmae": "1"}}]}),
    ("additional_context", {"k8s": {"node_selector": {"nodes": "x"}, "tolerations": [{"key": "x"}]}}),
    ("additional_context", {"vllm": {"slrum": 1}, "distributed": {"vllm_disagg": {"nnode": 1}}}),
    ("additional_context", {"_gpu_vendro": 1, "#target": 1, "//debug": 1, "$schemas": "x", "_comment": ["x"]}),
    ("model_card", {"env": {}, "monitor": 1, "benign_patterns": [], "dockercontext": ".", "gpu": 1, "results": 1}),
    ("model_card", {"env_vars": {"n_gpu": "1"}, "args_before": "x", "owner_team": "x"}),
    ("build_manifest", {"built_images": {"a": {"base_docker_sha": "x", "docker_image_name": "y"}}}),
    ("build_manifest", {"slurm": {}, "k8s": {}, "kubernetes": {}, "distributed": {}}),
    ("build_manifest", {"built_models": {"names": {"name": "x"}}, "built_images": {"models": {}}}),
    ("build_manifest", {"deployment_config": {"monitor": {}}, "summary": {"failed_builds": [{"modle": 1}]}}),
]


@pytest.mark.parametrize(("name", "document"), LEFT_ALONE)
def test_names_of_a_persons_own_comments_and_other_words_are_left_alone(name: str, document: Any) -> None:
    assert found(name, document) == {}


def every_object(schema: Any) -> list[list[str]]:
    """The known keys of each object that a schema describes."""
    if not isinstance(schema, dict):
        return []
    inner = [keys for value in schema.values() for keys in every_object(value)]
    own = schema.get("properties")
    return [list(own), *inner] if isinstance(own, dict) and own else inner


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_slip_in_any_known_key_leads_back_to_it(name: str) -> None:
    for known in every_object(load_schema(name)):
        for key in (key for key in known if len(key) > 4):
            middle = len(key) // 2
            slips = {
                "dropped": key[:middle] + key[middle + 1 :],
                "doubled": key[:middle] + key[middle] + key[middle:],
                "swapped": key[:middle] + key[middle + 1] + key[middle] + key[middle + 2 :],
                "case": key.swapcase(),
                "hyphens": key.replace("_", "-"),
                "joined": key.replace("_", ""),
            }
            for slip in set(slips.values()) - set(known):
                if not slip.startswith("$"):
                    assert closest(slip, known) == key, slip


def test_cards_have_the_same_keys_in_a_manifest() -> None:
    models = dict(schema_shape("build_manifest").members)["built_models"]
    assert models.others == schema_shape("model_card")


def test_a_schema_without_keys_has_no_shape() -> None:
    assert shape_of({"type": "object", "additionalProperties": {"type": "string"}}, {}) is None


def cards_below(folder: Path) -> list[Path]:
    return [folder / "models.json", *sorted(folder.glob("scripts/*/models.json"))]


def test_no_real_card_raises_a_false_alarm(real_mad: Path) -> None:
    count = 0
    for path in cards_below(real_mad):
        cards = json.loads(path.read_text())
        count += len(cards)
        assert validate_model_cards(cards, str(path)) == []
    assert count >= 191 + 126


def test_no_real_manifest_raises_a_false_alarm(real_mad: Path) -> None:
    files = sorted((real_mad / "manifests").glob("*.json"))
    assert len(files) == 11
    for path in files:
        assert found("build_manifest", json.loads(path.read_text())) == {}


def test_no_real_overlay_raises_a_false_alarm(real_mad: Path) -> None:
    files = sorted((real_mad / "configs").glob("*.overlay.json"))
    assert len(files) == 2
    for path in files:
        assert found("build_manifest", json.loads(path.read_text())) == {}


def test_no_real_context_raises_a_false_alarm(real_mad: Path) -> None:
    files = sorted((real_mad / "configs").glob("slurm-config*.json"))
    assert len(files) == 2
    for path in files:
        assert found("additional_context", json.loads(path.read_text())) == {}


def test_the_example_raises_no_false_alarm() -> None:
    for path in cards_below(REPOSITORY / "examples" / "quickstart"):
        if path.exists():
            assert validate_model_cards(json.loads(path.read_text())) == []


def test_a_manifest_is_warned_of_before_its_blocks_are_moved() -> None:
    document = {
        "built_images": {"a": {}},
        "built_models": {"a": {"name": "a", "n_gpu": "1"}},
        "context": {"docker_env_vars": {}, "docker_env_var": {"A": "1"}},
        "slurm": {"partion": "x"},
    }
    warnings = validate_build_manifest(document, source="m.json")
    assert [warning for warning in warnings if "did you mean" in warning] == [
        'm.json#/built_models/a/n_gpu: unknown key "n_gpu" (did you mean "n_gpus"?)',
        'm.json#/context/docker_env_var: unknown key "docker_env_var" (did you mean "docker_env_vars"?)',
        'm.json#/slurm/partion: unknown key "partion" (did you mean "partition"?)',
    ]


def test_cards_and_contexts_are_warned_of_besides_their_errors() -> None:
    cards = [{"name": "a"}, {"name": "b", "n_gpus": [], "arg": "x"}]
    assert [(p.severity, p.pointer) for p in validate_model_cards(cards)] == [
        ("error", "/1/n_gpus"),
        ("warning", "/1/arg"),
    ]
    context = {"target": "moon", "slurm": {"node": 1}}
    assert [(p.severity, p.pointer) for p in validate_additional_context(context)] == [
        ("error", "/target"),
        ("warning", "/slurm/node"),
    ]


def test_difflib_is_not_loaded_for_keys_that_resemble_nothing() -> None:
    code = (
        "import sys; from madengine.catalog.plain import obviously_fine as fine;"
        "assert fine([{'name': 'x', 'env': {}, 'monitor': 1, 'benign_patterns': 2}]);"
        "assert 'difflib' not in sys.modules; assert 'madengine.schemas.loader' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_flood_of_unknown_keys_costs_no_more_than_a_second() -> None:
    flood = {f"docker_env_vra{number}": 1 for number in range(50_000)} | {"x" * 1_000_000: 1, "": 1, "-_ ": 1}
    cards = [{"name": "x", f"tagz{number}": 1, "n_gpu": 1} for number in range(20_000)]
    started = time.perf_counter()
    assert len(misspelt_keys(schema_shape("additional_context"), flood)) <= 1000
    assert len(misspelt_keys(Shape(frozenset(), items=schema_shape("model_card")), cards)) == 1000
    assert time.perf_counter() - started < 3


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["built_models", "built_images", "context", "slurm", "tools", "deployment_config", "a", ""])
            | st.text(max_size=20),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=200)
@given(name=st.sampled_from(SCHEMAS), document=JSON_VALUES)
def test_any_document_can_be_walked(name: str, document: Any) -> None:
    for problem in misspelt_keys(schema_shape(name), document):
        assert problem.message.isprintable()
