"""Reading and writing manifests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from madengine.catalog.card import ModelCard
from madengine.config.manifest import BuildManifest, ImageRecord
from madengine.config.manifest_io import read_manifest, write_manifest
from madengine.core.errors import ConfigurationError, ValidationError

DOCUMENT: dict[str, Any] = {
    "built_images": {"k": {"docker_image": "x:1", "local_image": True, "extra": [1]}},
    "built_models": {"k": {"name": "m", "scripts": "s/run.sh", "unknown": {"kept": True}}},
    "context": {"docker_env_vars": {"A": "1"}},
}


def _write(folder: Path, document: Any) -> Path:
    path = folder / "manifest.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def test_a_manifest_is_read_with_every_key(tmp_path: Path) -> None:
    path = _write(tmp_path, DOCUMENT)
    manifest, warnings = read_manifest(path)
    assert warnings == []
    assert manifest.images["k"].raw["extra"] == [1]
    assert manifest.models["k"].raw["unknown"] == {"kept": True}
    assert manifest.context == {"docker_env_vars": {"A": "1"}}
    assert (manifest.deployment_config, manifest.summary, manifest.credentials_required) == ({}, {}, ())
    assert manifest.source == path


def test_blocks_at_the_top_move_with_a_warning_and_the_file_stays(tmp_path: Path) -> None:
    path = _write(tmp_path, {**DOCUMENT, "slurm": {"nodes": 1}})
    before = path.read_bytes()
    manifest, warnings = read_manifest(path)
    assert manifest.deployment_config["slurm"] == {"nodes": 1}
    assert any("slurm" in text for text in warnings)
    assert path.read_bytes() == before


def test_template_values_are_refused_with_their_number_and_the_first_ones(tmp_path: Path) -> None:
    variables = {f"V{n}": f"<FILL_V{n} some text>" for n in range(7)}
    with pytest.raises(ValidationError, match="7 template values are not filled in") as error:
        read_manifest(_write(tmp_path, {**DOCUMENT, "context": {"docker_env_vars": variables}}))
    text = str(error.value)
    assert "/context/docker_env_vars/V0" in text
    assert "V5" not in text
    assert "and 2 more" in text


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({}, "built_images"),
        ([], "manifest"),
        ("", "manifest"),
        ("{", "manifest"),
        ({**DOCUMENT, "built_models": {"other": {"name": "m"}}}, "other"),
        ({**DOCUMENT, "built_models": {"k": {}}}, "name"),
        ({**DOCUMENT, "built_images": {"k": None}}, "/built_images/k"),
    ],
)
def test_what_is_no_manifest_is_a_sentence_with_its_place(tmp_path: Path, document: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        read_manifest(_write(tmp_path, document))


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir()])
def test_a_missing_file_or_a_folder_is_a_sentence(tmp_path: Path, make: Any) -> None:
    make(tmp_path / "x.json")
    with pytest.raises(ConfigurationError, match=r"x\.json"):
        read_manifest(tmp_path / "x.json")


def test_all_real_manifests_are_refused_only_for_what_nobody_filled_in(real_mad: Path) -> None:
    paths = sorted((real_mad / "manifests").glob("*.json"))
    assert paths
    for path in paths:
        with pytest.raises(ValidationError, match="template value"):
            read_manifest(path)


def _manifest(**context: Any) -> BuildManifest:
    return BuildManifest({"k": ImageRecord({"docker_image": "x:1"})}, {"k": ModelCard({"name": "m"})}, context)


def test_what_is_written_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "manifest.json"
    write_manifest(_manifest(docker_env_vars={"A": "ä"}), path)
    manifest, warnings = read_manifest(path)
    assert warnings == []
    assert manifest.context == {"docker_env_vars": {"A": "ä"}}


def test_what_breaks_the_contract_is_not_written(tmp_path: Path) -> None:
    path = _write(tmp_path, DOCUMENT)
    before = path.read_bytes()
    with pytest.raises(ValidationError):
        write_manifest(_manifest(docker_env_vars={"A": None}), path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["manifest.json"]


def test_a_place_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="folder cannot be made"):
        write_manifest(_manifest(), tmp_path / "file" / "sub" / "manifest.json")


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
BLOCKS = st.sampled_from(["built_images", "built_models", "context", "deployment_config", "summary", "slurm"])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.dictionaries(BLOCKS, JSON_VALUES | st.dictionaries(st.just("k"), JSON_VALUES), max_size=4))
def test_no_document_gives_a_traceback(tmp_path: Path, changes: dict[str, Any]) -> None:
    try:
        read_manifest(_write(tmp_path, {**DOCUMENT, **changes}))
    except ConfigurationError as error:
        assert "\n" not in str(error)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=200))
def test_no_bytes_give_a_traceback(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "manifest.json"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError):
        read_manifest(path)
