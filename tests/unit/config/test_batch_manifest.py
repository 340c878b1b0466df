"""The batch manifest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from madengine.config.batch_manifest import BatchEntry, load_batch_manifest
from madengine.core.errors import ConfigurationError


def _write(folder: Path, document: Any) -> Path:
    path = folder / "batch.json"
    path.write_text(json.dumps(document))
    return path


def test_entries_with_their_defaults(tmp_path: Path) -> None:
    document = [
        {"model_name": "a", "build_new": True, "registry": None, "_comment": "x"},
        {"model_name": "b", "registry": "r", "registry_image": "r/b:1"},
    ]
    assert load_batch_manifest(_write(tmp_path, document)) == (
        BatchEntry("a", True),
        BatchEntry("b", False, "r", "r/b:1"),
    )


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({}, "is a list with at least one model"),
        ([], "is a list with at least one model"),
        (["a"], "#/0: an entry of a batch manifest is an object"),
        ([{"build_new": True}], "#/0/model_name: model_name is missing"),
        ([{"model_name": "  ", "build_new": True}], "#/0/model_name"),
        ([{"model_name": "a", "build_news": True}], "#/0: unknown key 'build_news' .known are model_name"),
        ([{"model_name": "a", "build_new": "yes"}], "#/0/build_new: build_new must be true or false"),
        ([{"model_name": 1}], "#/0/model_name: model_name must be text"),
        ([{"model_name": "a"}], "#/0/registry_image: a is not built"),
        ([{"model_name": "a", "build_new": True}, {"model_name": "a", "build_new": True}], "#/1/model_name: a is"),
    ],
)
def test_mistakes_are_named_with_their_pointer(tmp_path: Path, document: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        load_batch_manifest(_write(tmp_path, document))


def test_a_missing_file_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nothing\.json"):
        load_batch_manifest(tmp_path / "nothing.json")
