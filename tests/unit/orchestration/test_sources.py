"""Where the manifest of a run comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.recording_engine import RecordingEngine
from tests.unit.orchestration.worlds import manifest, package

from madengine.catalog.card import ModelCard
from madengine.config.context import settings_of
from madengine.config.manifest import BuildManifest
from madengine.core.errors import BuildError
from madengine.execution.engine import BuildRequest, Output
from madengine.orchestration.image_plan import BuildFailure, BuildOptions, Fate
from madengine.orchestration.sources import broken_off, built_source, planned_source, with_failures
from madengine.verdict.evidence import Interruption, InterruptionKind


class Silent:
    """A view of a build that nobody looks at."""

    def say(self, text: str) -> None: ...

    def warn(self, text: str) -> None: ...

    def started(self, number: int, total: int, image: str) -> None: ...

    def finished(self, number: int, total: int, image: str, seconds: float, error: str) -> None: ...

    def output(self, chunk: bytes) -> None: ...


def card(name: str, **fields: Any) -> ModelCard:
    return ModelCard({"name": name, "scripts": "scripts/m/run.sh", "dockerfile": "docker/m", **fields})


def options(tmp_path: Path) -> BuildOptions:
    root = package(tmp_path)
    (root / "docker").mkdir(exist_ok=True)
    (root / "docker" / "m.Dockerfile").write_text("# CONTEXT {'gpu_vendor': 'AMD'}\nFROM x\n")
    (root / "docker" / "two.a.Dockerfile").write_text("FROM x\n")
    (root / "docker" / "two.b.Dockerfile").write_text("FROM x\n")
    return BuildOptions(root, tmp_path / "logs")


AMD = settings_of({"gpu_vendor": "AMD"}, {})


def test_a_look_ahead_names_the_images_and_builds_nothing(tmp_path: Path) -> None:
    engine = RecordingEngine()
    source = planned_source([card("a"), card("b")], AMD, engine, options(tmp_path))
    assert [image.docker_image for image in source.manifest.images.values()] == ["ci-a_m", "ci-b_m"]
    assert [model.name for model in source.manifest.models.values()] == ["a", "b"]
    assert (source.refusals, source.build_failed, engine.builds) == ({}, False, [])


def test_a_look_ahead_on_the_host_engine_has_no_images(tmp_path: Path) -> None:
    source = planned_source([card("a")], AMD, RecordingEngine(needs_image=False), options(tmp_path))
    assert [image.docker_image for image in source.manifest.images.values()] == [""]


def test_what_cannot_be_planned_is_refused_and_the_others_stay(tmp_path: Path) -> None:
    cards = [card("a"), card("b", dockerfile="docker/missing")]
    source = planned_source(cards, AMD, RecordingEngine(), options(tmp_path))
    (key,) = source.refusals
    assert source.manifest.models[key].name == "b"
    assert "docker/missing" in source.refusals[key]
    assert source.build_failed


def test_a_machine_without_a_gpu_says_which_dockerfiles_there_are_and_what_to_do(tmp_path: Path) -> None:
    cpu = settings_of({"gpu_vendor": "CPU"}, {})
    source = planned_source([card("a")], cpu, RecordingEngine(), options(tmp_path))
    (sentence,) = source.refusals.values()
    assert "docker/m.Dockerfile is for gpu_vendor=AMD" in sentence
    assert "--engine host" in sentence


def test_what_was_built_is_what_is_run_and_what_was_not_says_where_its_log_is(tmp_path: Path) -> None:
    def build(request: BuildRequest, output: Output) -> None:
        if request.tag.startswith("ci-bad"):
            raise BuildError("exit code 7")

    source = built_source([card("good"), card("bad")], AMD, RecordingEngine(builder=build), options(tmp_path), Silent())
    assert [model.name for model in source.manifest.models.values()] == ["good", "bad"]
    (sentence,) = source.refusals.values()
    assert sentence.startswith("there is no image for it (log: ")
    assert sentence.endswith("exit code 7")
    assert source.build_failed


def test_when_all_is_built_nothing_is_refused(tmp_path: Path) -> None:
    source = built_source([card("good")], AMD, RecordingEngine(), options(tmp_path), Silent())
    assert (source.refusals, source.build_failed) == ({}, False)


def test_each_missing_image_of_a_card_is_a_row_of_its_own(tmp_path: Path) -> None:
    def build(request: BuildRequest, output: Output) -> None:
        raise BuildError(f"no {request.tag}")

    cards = [card("c", dockerfile="docker/two")]
    source = built_source(cards, AMD, RecordingEngine(builder=build), options(tmp_path), Silent())
    assert len(source.manifest.models) == len(source.refusals) == 2
    assert {sentence.rpartition(" ")[2] for sentence in source.refusals.values()} == {"ci-c_two.a", "ci-c_two.b"}


@pytest.mark.parametrize("image", ["", "i"])
def test_no_failure_hides_another_one(image: str) -> None:
    failures = [BuildFailure("m", str(number), image) for number in range(4)]
    source = with_failures(manifest(), failures, [card("m")])
    assert len(source.refusals) == 4
    assert len(source.manifest.images) == len(source.manifest.models) == 5


def test_the_manifest_that_is_kept_holds_only_what_was_built(tmp_path: Path) -> None:
    cards = [card("a"), card("b", dockerfile="docker/missing")]
    source = built_source(cards, AMD, RecordingEngine(), options(tmp_path), Silent())
    assert source.built is not None
    assert [model.name for model in source.built.models.values()] == ["a"]
    assert [model.name for model in source.manifest.models.values()] == ["a", "b"]


def test_of_builds_that_were_broken_off_only_those_that_had_begun_came_to_an_end(tmp_path: Path) -> None:
    failures = [
        BuildFailure("a", "no such package", log_file="a.log"),
        BuildFailure("b", "interrupted", log_file="b.log", fate=Fate.INTERRUPTED),
        BuildFailure("c", "not started", fate=Fate.NOT_STARTED),
    ]
    source = with_failures(BuildManifest({}, {}), failures, [card("a"), card("b"), card("c")])
    assert len(source.manifest.models) == 3
    fates = {source.manifest.models[key].name: fate for key, fate in broken_off(source).items()}
    assert fates == {
        "a": Interruption(InterruptionKind.REFUSED, "there is no image for it (log: a.log): no such package"),
        "b": Interruption(InterruptionKind.CANCELLED, "there is no image for it (log: b.log): interrupted"),
    }
