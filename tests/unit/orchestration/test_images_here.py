"""Making a run's image available just before it is needed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.recording_engine import RecordingEngine
from tests.unit.execution.packages import Watching
from tests.unit.orchestration.worlds import package, planned

from madengine.config.context import settings_of
from madengine.config.manifest import ImageRecord
from madengine.core.errors import ExecutionError
from madengine.execution.spec import RunSpec
from madengine.orchestration.images_here import ImageKeeper
from madengine.orchestration.plan import RunOptions
from madengine.orchestration.prepare import RunRequest

BUILT = "sha256:" + "b" * 64


def keeper(tmp_path: Path, engine: RecordingEngine, context: Any = None, **environ: str) -> ImageKeeper:
    root = package(tmp_path)
    (root / "docker").mkdir(exist_ok=True)
    (root / "docker" / "m.Dockerfile").write_text("FROM x\n")
    request = RunRequest(root, settings_of({"docker_build_arg": {"A": "user"}}, {}), RunOptions(), environ=environ)
    return ImageKeeper(request, engine, context or {})


def spec(tmp_path: Path, **image: Any) -> RunSpec:
    return replace(planned(tmp_path), image=ImageRecord({"docker_image": "img:1", **image}))


def wants_token(tmp_path: Path) -> None:
    (tmp_path / "package" / "docker" / "m.Dockerfile").write_text("FROM x\nRUN --mount=type=secret,id=API_TOKEN true\n")


def test_an_image_that_is_there_is_only_remembered(tmp_path: Path) -> None:
    engine, watching = RecordingEngine(local={"img:1": "sha256:1"}), Watching()
    keep = keeper(tmp_path, engine)
    keep(spec(tmp_path), watching)
    assert (keep.digest_of("img:1"), keep.digest_of("other")) == ("sha256:1", "")
    assert (watching.phases, watching.notes, engine.builds) == ([], [], [])


def test_an_image_of_a_registry_is_pulled_and_it_is_said(tmp_path: Path) -> None:
    engine, watching = RecordingEngine(), Watching()
    engine.remote.add("img:1")
    keep = keeper(tmp_path, engine)
    keep(spec(tmp_path), watching)
    assert keep.digest_of("img:1") == "sha256:" + "c" * 64
    assert (watching.phases, watching.notes) == (["image img:1"], ["image img:1: pulled"])


def test_a_local_image_is_built_again_with_the_manifests_arguments_and_a_log(tmp_path: Path) -> None:
    engine, watching = RecordingEngine(), Watching()
    keep = keeper(tmp_path, engine, {"docker_build_arg": {"A": "manifest", "B": 1}})
    run = spec(tmp_path, local_image=True, dockerfile="docker/m.Dockerfile")
    keep(run, watching)
    (build,) = engine.builds
    assert build.tag == "img:1"
    assert {name: build.build_args[name] for name in ("A", "B")} == {"A": "manifest", "B": "1"}
    assert b"done" in (run.run_dir / "logs" / "build.log").read_bytes()
    assert (keep.digest_of("img:1"), watching.notes) == (BUILT, ["image img:1: built"])


def test_an_archive_in_the_folder_that_the_environment_names_is_loaded(tmp_path: Path) -> None:
    engine, watching = RecordingEngine(), Watching()
    (tmp_path / "archives").mkdir()
    (tmp_path / "archives" / "img_1.tar").write_text("img:1")
    keeper(tmp_path, engine, MAD_DOCKER_BUILDS=str(tmp_path / "archives"))(spec(tmp_path, local_image=True), watching)
    assert watching.notes == ["image img:1: loaded"]


def test_an_image_that_cannot_be_had_says_what_was_tried(tmp_path: Path) -> None:
    with pytest.raises(ExecutionError, match="img:1 is not on this machine and cannot be had: pulling"):
        keeper(tmp_path, RecordingEngine())(spec(tmp_path), Watching())


def test_an_archive_does_for_an_image_whose_dockerfile_is_not_there_any_more(tmp_path: Path) -> None:
    engine, watching = RecordingEngine(), Watching()
    (tmp_path / "img_1.tar").write_text("img:1")
    run = spec(tmp_path, local_image=True, dockerfile="docker/gone.Dockerfile")
    keeper(tmp_path, engine, MAD_DOCKER_BUILDS=str(tmp_path))(run, watching)
    assert watching.notes == ["image img:1: loaded"]


def test_a_secret_build_argument_that_the_manifest_refers_to_comes_from_the_environment(tmp_path: Path) -> None:
    engine = RecordingEngine()
    run = spec(tmp_path, local_image=True, dockerfile="docker/m.Dockerfile")
    keep = keeper(tmp_path, engine, {"docker_build_arg": {"API_TOKEN": "${API_TOKEN}"}}, API_TOKEN="s3cret-x")
    wants_token(tmp_path)
    keep(run, Watching())
    assert engine.builds[0].secrets["API_TOKEN"] == "s3cret-x"


def test_a_secret_build_argument_that_is_not_set_here_is_named(tmp_path: Path) -> None:
    run = spec(tmp_path, local_image=True, dockerfile="docker/m.Dockerfile")
    keep = keeper(tmp_path, RecordingEngine(), {"docker_build_arg": {"API_TOKEN": "${API_TOKEN}"}})
    wants_token(tmp_path)
    with pytest.raises(ExecutionError, match="building: the build argument API_TOKEN is a secret, and it is not set"):
        keep(run, Watching())
