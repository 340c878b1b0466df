"""The typed view of a model card."""

from __future__ import annotations

from typing import Any

import pytest

from madengine.catalog.card import ModelCard


@pytest.mark.parametrize(
    ("value", "count"),
    [("-1", -1), ("8", 8), (8, 8), ("0", 0), (0, 0), ("", -1), (None, -1), (" 4 ", 4), ("\ufeff4", 4)],
)
def test_gpus_are_a_number_whatever_way_they_are_written(value: Any, count: int) -> None:
    assert ModelCard({"name": "x", "n_gpus": value}).n_gpus == count


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [({}, 7200.0), ({"timeout": None}, 7200.0), ({"timeout": 0}, None), ({"timeout": -1}, None), ({"timeout": 9}, 9.0)],
)
def test_the_timeout_is_seconds_or_none(fields: dict[str, Any], seconds: float | None) -> None:
    assert ModelCard({"name": "x", **fields}).timeout == seconds


@pytest.mark.parametrize(
    ("value", "tags"), [(["a", " b ", ""], ("a", "b")), ("a, b,,c", ("a", "b", "c")), (None, ()), ("", ())]
)
def test_tags_are_a_list_or_a_comma_separated_string(value: Any, tags: tuple[str, ...]) -> None:
    assert ModelCard({"name": "x", "tags": value}).tags == tags


def test_an_absent_card_field_reads_as_empty() -> None:
    card = ModelCard({"name": "vllm/x", "args": None, "slurm": None})
    assert (card.short_name, card.text("args"), card.text("url"), dict(card.block("slurm"))) == ("x", "", "", {})
    assert (card.n_gpus, card.skip_gpu_arch, dict(card.env_vars), card.deprecated) == (-1, (), {}, False)


def test_environment_values_are_text() -> None:
    card = ModelCard({"name": "x", "env_vars": {"A": 1, "B": True, "C": "${HOME}", "D": False, "E": 0.5}})
    assert dict(card.env_vars) == {"A": "1", "B": "true", "C": "${HOME}", "D": "false", "E": "0.5"}


def test_unknown_keys_stay_and_a_changed_copy_leaves_the_original_alone() -> None:
    card = ModelCard({"name": "x", "note": [1]})
    changed = card.with_fields(args="--a")
    assert changed.to_manifest() == {"name": "x", "note": [1], "args": "--a"}
    assert card.to_manifest() == {"name": "x", "note": [1]}
