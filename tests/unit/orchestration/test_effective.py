"""The manifest that a run really uses, and what of it is written down."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.orchestration.worlds import manifest

from madengine.config.context import settings_of
from madengine.orchestration.effective import effective_manifest, for_record

CANARY = "canary-7f3a9e"


@pytest.mark.parametrize(
    ("below", "given", "expected"),
    [
        ({"a": 1}, {}, {"a": 1}),
        ({"a": 1}, {"a": 2}, {"a": 2}),
        ({"docker_env_vars": {"A": "1", "B": "1"}}, {"docker_env_vars": {"B": "2"}},
         {"docker_env_vars": {"A": "1", "B": "2"}}),
        ({"tools": [{"name": "a"}]}, {"tools": [{"name": "b"}]}, {"tools": [{"name": "b"}]}),
        ({}, {"timeout": 5}, {"timeout": 5}),
    ],
)  # fmt: skip
def test_the_users_context_lies_on_top_of_the_manifests(
    below: dict[str, Any], given: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert effective_manifest(manifest(context=below), settings_of(given, {})).context == expected


@pytest.mark.parametrize(
    "given",
    [
        {"distributed": {"nnodes": 1}, "env_vars": {"A": "2"}},
        {"deployment_config": {"distributed": {"nnodes": 1}, "env_vars": {"A": "2"}}},
        {"deployment_config": {"distributed": {"nnodes": 3}, "env_vars": {"A": "2"}}, "distributed": {"nnodes": 1}},
    ],
)
def test_what_concerns_the_deployment_goes_there_however_it_was_written(given: dict[str, Any]) -> None:
    below = {"distributed": {"nnodes": 2, "launcher": "torchrun"}, "env_vars": {"A": "1", "B": "1"}}
    found = effective_manifest(manifest(deployment=below), settings_of(given, {}))
    assert found.deployment_config == {
        "distributed": {"nnodes": 1, "launcher": "torchrun"},
        "env_vars": {"A": "2", "B": "1"},
    }
    assert found.context == {}


def test_neither_side_is_changed() -> None:
    one, settings = manifest(context={"docker_env_vars": {"A": "1"}}), settings_of({"docker_env_vars": {"A": "2"}}, {})
    effective_manifest(one, settings)
    assert (one.context, settings.context) == ({"docker_env_vars": {"A": "1"}}, {"docker_env_vars": {"A": "2"}})


def test_a_record_holds_the_one_run_and_no_secret() -> None:
    whole = manifest(
        {"name": "a", "env_vars": {"X": f"in {CANARY} the middle"}},
        {"name": "b"},
        context={"docker_env_vars": {"HF_TOKEN": CANARY, "PLAIN": "x", "OTHER_TOKEN": "$HF_TOKEN"}},
        deployment={"k8s": {"list": [{"password": "second-canary"}]}},
    )
    record = for_record(whole, "k0", {"MAD_SECRETS_X": CANARY})
    assert [card["name"] for card in record["built_models"].values()] == ["a"]
    assert record["built_models"]["k0"]["env_vars"] == {"X": "in ${MAD_SECRETS_X} the middle"}
    assert record["context"]["docker_env_vars"] == {
        "HF_TOKEN": "${MAD_SECRETS_X}", "PLAIN": "x", "OTHER_TOKEN": "$HF_TOKEN",
    }  # fmt: skip
    assert record["deployment_config"]["k8s"] == {"list": [{"password": "${password}"}]}
    assert "canary" not in json.dumps(record)


@pytest.mark.parametrize("value", [CANARY, f"{CANARY}$x", 12345])
def test_a_record_hides_what_has_the_name_of_a_secret(value: Any) -> None:
    record = for_record(manifest(context={"docker_build_arg": {"GH_TOKEN": value}}), "k0", {})
    assert record["context"]["docker_build_arg"] == {"GH_TOKEN": "${GH_TOKEN}"}
