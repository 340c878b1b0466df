"""The quick yes for usual cards never contradicts the schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.catalog.packages import card

from madengine.catalog.plain import OTHERS, TESTS, TEXTS, obviously_fine
from madengine.schemas import load_schema, validate_model_cards

PROPERTIES: dict[str, Any] = load_schema("model_card.schema.json")["properties"]

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 200),
    st.integers(),
    st.floats(allow_nan=False),
    st.sampled_from(["", "8", "-1", "0", "-2", "00", " 8", "1000000", "fp8"]),
    st.dictionaries(
        st.sampled_from(["launcher", "nnodes", "nproc_per_node", "port", "primus"]),
        st.one_of(st.none(), st.booleans(), st.integers(-1, 2000), st.sampled_from(["torchrun", ""])),
        max_size=3,
    ),
    st.lists(st.one_of(st.text(max_size=3), st.none()), max_size=3),
    st.dictionaries(st.text(max_size=3), st.one_of(st.text(max_size=3), st.none()), max_size=3),
    st.dictionaries(st.sampled_from(["A", "xP", "a b", "a=b", "", "1", "ä"]), st.text(max_size=3), max_size=3),
)  # fmt: skip


def test_every_key_of_the_schema_is_known() -> None:
    assert set(PROPERTIES) == TEXTS | set(TESTS) | OTHERS


@pytest.mark.parametrize("key", sorted(TEXTS - {"name"}))
def test_a_text_key_may_hold_any_text(key: str) -> None:
    rules = set(PROPERTIES[key]) - {"type", "description", "items", "examples", "$comment"}
    assert not rules
    assert "string" in PROPERTIES[key]["type"]


@given(st.lists(st.dictionaries(st.sampled_from([*PROPERTIES, "unknown"]), VALUES, max_size=4), max_size=2))
@settings(max_examples=400)
def test_what_passes_here_passes_the_schema(cards: list[dict[str, Any]]) -> None:
    named = [{"name": "x", **fields} for fields in cards]
    if obviously_fine(named):
        assert validate_model_cards(named, "models.json") == []


@given(st.sampled_from(sorted(PROPERTIES)), VALUES)
@settings(max_examples=400)
def test_each_value_that_passes_here_passes_the_schema(key: str, value: Any) -> None:
    if obviously_fine([{"name": "x", key: value}]):
        assert validate_model_cards([{"name": "x", key: value}], "models.json") == []


@pytest.mark.parametrize("document", [None, [], "x", 1, {}, {"name": ""}, {"name": 1}, card("x", slurm={"nodes": 1})])
def test_what_is_not_obvious_is_left_to_the_schema(document: Any) -> None:
    assert not obviously_fine([card("fine"), document])


def test_usual_cards_need_no_schema(real_mad: Path) -> None:
    assert obviously_fine(json.loads((real_mad / "models.json").read_text()))
    assert obviously_fine([card("x", distributed={"launcher": "torchrun", "nnodes": 2, "nproc_per_node": 8})])
    assert obviously_fine([card("x", timeout=-1, env_vars={"xP": "1"}, deprecated=False, unknown=[{}])])


def test_a_misspelt_key_wants_a_closer_look_and_another_unknown_one_does_not() -> None:
    assert obviously_fine([card("a", monitor=1), card("b", env={}, benign_patterns=[])])
    assert not obviously_fine([card("a"), card("b", mutliple_results="x.csv")])
    assert not obviously_fine([card("a", distributed={"nproc_per_nodes": 8})])
