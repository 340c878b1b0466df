"""Data sources: who provides a model's input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from madengine.config.data import DataSource, load_data_config, resolve_data
from madengine.core.errors import ConfigurationError


def test_a_name_without_a_provider_passes_without_a_mount(real_mad: Path) -> None:
    sources = load_data_config(real_mad / "data.json")
    assert resolve_data("huggingface", sources) == (DataSource("huggingface"),)


def test_a_local_folder_is_mounted_at_its_home(tmp_path: Path) -> None:
    sources = {"a": {"local": {"path": str(tmp_path)}}, "b": {"local": {"path": str(tmp_path), "home": "/b"}}}
    first, second = resolve_data("a, b", sources)
    assert (first.path, first.home, first.provider) == (tmp_path, "/data_dlm_0", "local")
    assert second.home == "/b"


def test_data_sources_may_lie_one_level_deeper(tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    path.write_text(json.dumps({"data_sources": {"x": {}}}))
    assert load_data_config(path) == {"x": {}}


@pytest.mark.parametrize(
    ("sources", "words"),
    [
        ({}, "no data named 'x'"),
        ({"x": {"local": {"path": "/not/there"}}}, "not there"),
        ({"x": {"local": {}}}, "not there"),
        ({"x": {"minio": {"path": "bucket"}}}, "minio"),
        ({"x": [1]}, "must be an object"),
    ],
)
def test_data_that_cannot_be_had_is_refused_in_a_sentence(sources: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        resolve_data("x", sources)


@pytest.mark.parametrize("document", [[], 3, {"data_sources": []}])
def test_a_data_file_of_another_shape_is_refused(tmp_path: Path, document: object) -> None:
    path = tmp_path / "data.json"
    path.write_text(json.dumps(document))
    with pytest.raises(ConfigurationError, match=r"data\.json"):
        load_data_config(path)
