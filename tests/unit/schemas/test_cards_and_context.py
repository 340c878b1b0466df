"""Model cards and additional context against their schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from madengine.schemas import Problem, load_schema, unfilled_values, validate_additional_context, validate_model_cards
from madengine.schemas.lint import lint_manifest
from madengine.schemas.manifest import manifest_problems
from madengine.schemas.violations import KEYWORDS, is_valid, violations


def test_the_real_cards_have_no_problem(real_mad: Path) -> None:
    files = [real_mad / "models.json", *real_mad.glob("scripts/*/models.json")]
    assert len(files) > 15
    for path in files:
        assert validate_model_cards(json.loads(path.read_text()), str(path)) == []


def test_the_real_contexts_have_no_problem(real_mad: Path) -> None:
    files = sorted((real_mad / "configs").glob("slurm-config*.json"))
    assert files
    for path in files:
        assert validate_additional_context(json.loads(path.read_text()), str(path)) == []


@pytest.mark.parametrize("cards", [None, {}, "x", 5, {"name": "a"}])
def test_cards_that_are_no_list_are_one_problem(cards: Any) -> None:
    (problem,) = validate_model_cards(cards, "models.json")
    assert problem.pointer == ""
    assert "allowed: a list of model cards" in problem.message


def test_a_broken_card_is_placed_by_its_index_and_named() -> None:
    cards = [{"name": "a"}, {"name": "b", "tags": ["x", 5], "n_gpus": 1.5}, 7, {"n_gpus": "1"}]
    found = [(problem.pointer, problem.code, problem.hint) for problem in validate_model_cards(cards)]
    assert found == [
        ("/1/tags/1", "type", 'card "b"'),
        ("/1/n_gpus", "type", 'card "b"'),
        ("/2", "type", None),
        ("/3", "required", None),
    ]


@pytest.mark.parametrize("value", ["-1", "8", " 2 ", "", 0, -1, 4, None])
def test_the_number_of_gpus_is_a_string_or_an_integer(value: Any) -> None:
    assert validate_model_cards([{"name": "a", "n_gpus": value}]) == []


@pytest.mark.parametrize("value", ["all", "1,2", "--1", -2, 1.5, True, [], "9" * 50, 10**30])
def test_another_number_of_gpus_is_refused(value: Any) -> None:
    (problem,) = validate_model_cards([{"name": "a", "n_gpus": value}])
    assert problem.pointer == "/0/n_gpus"


@pytest.mark.parametrize("field", [{"tags": "a, b"}, {"tags": []}, {"timeout": -1}, {"timeout": 0.5}, {"timeout": None},
    {"skip_gpu_arch": "gfx942,gfx950"}, {"anything": {"else": [None]}}, {"env_vars": {"a.b": 1, "x": 1}}])  # fmt: skip
def test_what_real_and_private_cards_hold_is_fine(field: dict[str, Any]) -> None:
    assert validate_model_cards([{"name": "a", **field}]) == []


def test_nodes_of_a_card_that_disagree_are_a_problem() -> None:
    cards = [{"name": "a", "slurm": {"nodes": 1}, "distributed": {"nnodes": 2}}]
    assert [problem.code for problem in validate_model_cards(cards)] == ["nodes-mismatch"]


CONTEXTS: list[tuple[Any, str, str]] = [
    ([], "", "found a list, allowed: an object"),
    ({"slurm": {"nodes": "2"}}, "/slurm/nodes", 'found a string "2", allowed: an integer >= 1'),
    ({"env_vars": {"A": None}}, "/env_vars/A", "found null, allowed: a string, a number, true or false"),
    ({"log_error_pattern_scan": "off"}, "/log_error_pattern_scan", 'a string "off", allowed: true, false or null'),
    ({"docker_mounts": []}, "/docker_mounts", "found a list, allowed: an object or null"),
    ({"gpu_vendor": "intel"}, "/gpu_vendor", 'allowed: "AMD", "NVIDIA", "CPU" or null'),
    ({"guest_os": "SLES"}, "/guest_os", 'allowed: "UBUNTU", "CENTOS" or null'),
    ({"tools": {"rocprof": {}}}, "/tools", "found an object, allowed: a list of objects or null"),
    ({"timeout": "1h"}, "/timeout", "allowed: a number of seconds, 0 or negative for no limit"),
    ({"pre_scripts": [{"args": "x"}]}, "/pre_scripts/0", 'found an object without "path"'),
    ({"slurm": {"nodes": 1}, "distributed": {"nnodes": 2}}, "/slurm/nodes", "would disagree on the world size"),
    ({"deployment_config": {"target": "x"}}, "/deployment_config/target", 'found a string "x", allowed: "local"'),
]


@pytest.mark.parametrize(("document", "pointer", "message"), CONTEXTS, ids=[f"{p}: {m}" for _, p, m in CONTEXTS])
def test_a_violation_of_the_context_names_its_place(document: Any, pointer: str, message: str) -> None:
    problem = validate_additional_context(document, "context.json")[0]
    assert problem.pointer == pointer
    assert message in problem.message


@pytest.mark.parametrize("document", [{}, {"gpu_vendor": "amd", "guest_os": "ubuntu"}, {"k8s": {"gpu_count": 0}},
    {"tools": [{"name": "x"}], "docker_gpus": "0,2-4", "log_error_pattern_scan": False}, {"whatever": [1]},
    {"pre_scripts": ["scripts/a.sh", {"path": "b.sh", "args": "x"}]}])  # fmt: skip
def test_a_context_in_order_has_no_problem(document: Any) -> None:
    assert validate_additional_context(document) == []


def _known_keys(name: str) -> list[str]:
    schema = load_schema(name)
    blocks = [schema, *schema["$defs"].values()]
    return sorted({key for block in blocks for key in block.get("properties", {})})


KEYS = st.sampled_from(_known_keys("build_manifest")) | st.sampled_from(["a", "_comment", "", "0", "<FILL_X>", "~/"])
SCALARS = (
    st.none() | st.booleans() | st.integers(-5, 70_000) | st.floats() | st.text(max_size=8)
    | st.sampled_from(["", "<FILL_X y>", "node[1-", "a[1-3],b", "slurm", "${A}", "1", "amd\n", "1\n", "AMD", "UBUNTU"])
    | st.sampled_from([2.0, 1e300, 10**6, 70_000, -1])
)  # fmt: skip
DOCUMENTS = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=25
)


def _are_problems(problems: list[Problem]) -> bool:
    return all(problem.message and "\n" not in problem.message and problem.pointer[:1] in "/" for problem in problems)


def _keywords(schema: Any) -> set[str]:
    found = set(schema)
    for name, inside in schema.items():
        if name in {"properties", "$defs"}:
            found |= {keyword for each in inside.values() for keyword in _keywords(each)}
        elif isinstance(inside, dict):
            found |= _keywords(inside)
    return found


def test_the_walk_knows_every_keyword_of_the_schemas() -> None:
    remarks = {"$schema", "$id", "$defs", "title", "description", "deprecated", "x-allowed", "x-manifest-source"}
    for name in ("build_manifest", "model_card", "additional_context"):
        assert _keywords(load_schema(name)) - remarks <= KEYWORDS


@given(DOCUMENTS, st.sampled_from(["build_manifest", "model_card", "additional_context"]))
def test_the_walk_finds_violations_exactly_when_the_validator_does(document: Any, name: str) -> None:
    for candidate in (document, {"built_images": {}, "built_models": {"a": document}, "context": {}}):
        assert any(violations(name, candidate)) is not is_valid(name, candidate)


@given(DOCUMENTS | st.fixed_dictionaries({"built_images": DOCUMENTS, "built_models": DOCUMENTS, "context": DOCUMENTS,
    "deployment_config": DOCUMENTS}))  # fmt: skip
def test_any_json_is_judged_without_a_traceback(document: Any) -> None:
    assert _are_problems(validate_additional_context(document))
    assert _are_problems(validate_model_cards(document))
    assert _are_problems(validate_model_cards([document]))
    assert all(value for _, value in unfilled_values(document))
    assert _are_problems(lint_manifest(document, ["secret-value"]))
    assert _are_problems(manifest_problems(document))
