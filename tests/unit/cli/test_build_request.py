"""From the options of a build to its cards and frozen options."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from pathlib import Path

import pytest

from madengine.cli.build_request import (
    BuildWords,
    build_folder,
    builds_nothing,
    read_build_request,
    target_architectures,
)
from madengine.cli.outputs import refuse_unwritable
from madengine.config.batch_manifest import BatchEntry
from madengine.config.settings import Settings
from madengine.core.errors import ConfigurationError
from madengine.orchestration.image_plan import BuildOptions


@pytest.fixture
def package(tmp_path: Path) -> Path:
    common = {"scripts": "scripts/run.sh", "dockerfile": "docker/x", "n_gpus": "0"}
    cards = [{"name": name, "tags": ["both"], **common} for name in ("a", "b")]
    (tmp_path / "models.json").write_text(json.dumps(cards))
    return tmp_path


def test_words_become_cards_and_options(package: Path) -> None:
    words = BuildWords(tags=["both"], registry="h:5000", clean_docker_cache=True, target_archs=["gfx942, gfx950"])
    cards, options = read_build_request(package, words, {"MAD_DOCKERHUB_REPO": "r"})
    assert [card.name for card in cards] == ["a", "b"]
    assert (options.registry, options.no_cache, options.target_archs) == ("h:5000", True, ("gfx942", "gfx950"))
    assert options.credentials == {"dockerhub": {"repository": "r"}}
    assert options.logs.parts[0] == "runs"
    assert options.logs.parts[-1] == "logs"


def test_a_batch_manifest_selects_by_name(package: Path) -> None:
    batch = package / "batch.json"
    batch.write_text(json.dumps([{"model_name": "b", "build_new": True}]))
    cards, options = read_build_request(package, BuildWords(batch_manifest=batch), {})
    assert [card.name for card in cards] == ["b"]
    assert options.batch == {"b": BatchEntry("b", build_new=True)}


def test_a_tag_is_no_name_in_a_batch_manifest(package: Path) -> None:
    batch = package / "batch.json"
    batch.write_text(json.dumps([{"model_name": "both", "build_new": True}]))
    with pytest.raises(ConfigurationError, match="#/0/model_name: 'both' is not the name of one model"):
        read_build_request(package, BuildWords(batch_manifest=batch), {})


@pytest.mark.parametrize(
    "words",
    [
        BuildWords(tags=["a"], batch_manifest=Path("x")),
        BuildWords(use_image="x", batch_manifest=Path("x")),
        BuildWords(tags=["a"], use_image="x", registry="h"),
        BuildWords(tags=["a"], target_archs=["gfx942;touch x"]),
        BuildWords(tags=["nothing-has-this-tag"]),
        BuildWords(),
    ],
)
def test_contradictions_and_mistakes_are_refused(package: Path, words: BuildWords) -> None:
    with pytest.raises(ConfigurationError):
        read_build_request(package, words, {})


def test_architectures_are_separated_by_commas_and_come_once() -> None:
    assert target_architectures(["gfx942,gfx950", "gfx942", " ,"]) == ("gfx942", "gfx950")


@pytest.mark.parametrize(
    ("options", "context", "nothing"),
    [
        ({}, {}, False),
        ({"use_image": "x"}, {}, True),
        ({}, {"MAD_CONTAINER_IMAGE": "x"}, True),
        ({"batch": {"a": BatchEntry("a", registry_image="x")}}, {}, True),
        ({"batch": {"a": BatchEntry("a", build_new=True)}}, {}, False),
    ],
)
def test_an_engine_is_needed_only_where_something_is_built(options: dict, context: dict, nothing: bool) -> None:
    chosen = BuildOptions(package=Path(), logs=Path(), **options)
    assert builds_nothing(chosen, Settings(context=context)) is nothing


def test_the_folder_of_a_build_is_named_by_time_and_token() -> None:
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    assert build_folder(Path("runs"), now, "abc") == Path("runs/build-20260102T030405Z-abc")


@pytest.mark.parametrize("name", ["", "file/x/manifest.json", "x" * 300])
def test_an_output_that_cannot_be_written_is_found_out_first(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot be written"):
        refuse_unwritable(tmp_path / name)


@pytest.mark.parametrize("name", ["m.json", "new/folder/m.json", "file"])
def test_an_output_that_can_be_written_is_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("kept")
    refuse_unwritable(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
