"""Images that were built here, for nodes elsewhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.recording_engine import RecordingEngine
from tests.unit.orchestration.worlds import manifest

from madengine.config.manifest import BuildManifest, ImageRecord
from madengine.core.errors import BuildError
from madengine.orchestration.keep_images import keep_for_nodes


def built() -> BuildManifest:
    records = {
        "k0": ImageRecord({"docker_image": "ci-a"}),
        "k1": ImageRecord({"docker_image": "ci-b", "registry_image": "h/ci-b"}),
        "k2": ImageRecord({"docker_image": "ci-a"}),
        "k3": ImageRecord({"docker_image": None}),
    }
    return replace(manifest({}, {}, {}, {}), images=records)


def test_images_that_are_in_no_registry_are_kept_each_once(tmp_path: Path) -> None:
    said: list[str] = []
    keep_for_nodes(built(), RecordingEngine(), {"MAD_DOCKER_BUILDS": str(tmp_path / "b")}, said.append)
    assert [path.name for path in (tmp_path / "b").iterdir()] == ["ci-a.tar"]
    assert said == ["image ci-a: kept for the nodes under $MAD_DOCKER_BUILDS"]


def test_without_a_folder_for_them_nothing_is_kept() -> None:
    said: list[str] = []
    keep_for_nodes(built(), RecordingEngine(), {}, said.append)
    assert said == []


def test_an_image_that_cannot_be_kept_is_said(tmp_path: Path) -> None:
    class Full(RecordingEngine):
        def save(self, reference: str, archive: Path) -> None:
            raise BuildError(f"docker cannot save {reference}: no space left on device")

    said: list[str] = []
    keep_for_nodes(built(), Full(), {"MAD_DOCKER_BUILDS": str(tmp_path)}, said.append)
    assert said == ["image ci-a was not kept for the nodes: docker cannot save ci-a: no space left on device"]
