"""Template values that nobody has filled in, in the five dialects of real templates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from madengine.schemas import unfilled_values
from madengine.schemas.unfilled import templates_in


@pytest.mark.parametrize(
    ("text", "templates"),
    [
        ("<FILL_PARTITION>", ["<FILL_PARTITION>"]),
        ("<FILL_GID  RoCEv2 index, see a:b = c>", ["<FILL_GID RoCEv2 index, see a:b = c>"]),
        ("a:v1-<FILL_TAG e.g. x-<sha7>>", ["<FILL_TAG e.g. x-<sha7>>"]),
        ("x:<FILL_A>-<FILL_B  c>-gfx950", ["<FILL_A>", "<FILL_B c>"]),
        ("<FILL_DATA_ROOT>/model", ["<FILL_DATA_ROOT>"]),
        ("<FILL_NEVER_CLOSED and more", ["<FILL_NEVER_CLOSED and more"]),
        ("<OPTIONAL  pin to nodes, e.g. a,b>", ["<OPTIONAL pin to nodes, e.g. a,b>"]),
        ("SITE-PARTITION", ["SITE-PARTITION"]),
        ("/shared/SITE-DATA/x", ["SITE-DATA"]),
        ("CHANGE-ME", ["CHANGE-ME"]),
        ("/data/CHANGE-ME/x", ["CHANGE-ME"]),
        ("<supply-your-image>", ["<supply-your-image>"]),
    ],
)
def test_every_dialect_is_found_alone_and_inside_longer_values(text: str, templates: list[str]) -> None:
    assert templates_in(text) == templates


@pytest.mark.parametrize(
    "text",
    ["", "website-x", "SITE-x", "ON-SITE-A", "OFFSITE-A", "site-partition", "EXCHANGE-MESSAGES", "CHANGE",
     "UNCHANGE-ME2", "<b>bold</b>", "a < b > c", "1<2", "${HF_HOME}", "<FILLED>", "<OPTIONALLY>", "Prefill_x"],
)  # fmt: skip
def test_ordinary_text_is_none(text: str) -> None:
    assert templates_in(text) == []


def test_places_come_in_document_order_with_keys_and_lists() -> None:
    document = {
        "b": ["x", "<FILL_A>", {"c": "CHANGE-ME"}],
        "mounts": {"<FILL_K  a/b>": "<FILL_V>", "/ok": "SITE-X"},
        "a": "SITE-A",
        "key only": {"<OPTIONAL x>": 5},
    }
    assert unfilled_values(document) == [
        ("/b/1", "<FILL_A>"),
        ("/b/2/c", "CHANGE-ME"),
        ("/mounts/<FILL_K  a~1b>", "<FILL_K a/b>"),
        ("/mounts/<FILL_K  a~1b>", "<FILL_V>"),
        ("/mounts/~1ok", "SITE-X"),
        ("/a", "SITE-A"),
        ("/key only/<OPTIONAL x>", "<OPTIONAL x>"),
    ]


def test_comments_are_not_searched() -> None:
    document = {"_comment": "<FILL_A>", "_note_x": ["CHANGE-ME"], "_usage": "SITE-A", "_x": "<FILL_B>"}
    assert unfilled_values(document) == [("/_x", "<FILL_B>")]


@pytest.mark.parametrize("document", [None, 5, "SITE-A", [], ["a"], {"a": None}])
def test_any_document_can_be_searched(document: Any) -> None:
    assert unfilled_values(document) == ([("", "SITE-A")] if document == "SITE-A" else [])


def test_long_template_values_are_cut_and_stay_on_one_line() -> None:
    ((_, value),) = unfilled_values({"a": "<FILL_X\n" + "y" * 10_000})
    assert len(value) < 100
    assert value.isprintable()


def test_the_real_manifests_are_all_templates(real_mad: Path) -> None:
    for path in (real_mad / "manifests").glob("*.json"):
        text = path.read_text()
        found = unfilled_values(json.loads(text))
        assert len(found) >= 8, path.name
        assert any(pointer == "/deployment_config/slurm/partition" for pointer, _ in found), path.name


def test_mount_keys_of_a_real_manifest_are_found(real_mad: Path) -> None:
    document = json.loads((real_mad / "manifests" / "sglang_disagg_deepseek-r1.template.json").read_text())
    mounts = [value for pointer, value in unfilled_values(document) if pointer.startswith("/context/docker_mounts/")]
    assert mounts[0].startswith("<FILL_MODEL_CONTAINER_DIR")
    assert mounts[1].startswith("<FILL_MODEL_HOST_DIR")
