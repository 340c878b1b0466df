"""Which image each selected card is to get."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.hostile import HOSTILE, canaries
from tests.recording_engine import RecordingEngine

from madengine.catalog.card import ModelCard
from madengine.config.batch_manifest import BatchEntry
from madengine.config.settings import Settings
from madengine.core.errors import ConfigurationError
from madengine.execution.engine import ContainerEngine
from madengine.orchestration.image_plan import BuildOptions, ImagePlan, plan_images

AMD = "# CONTEXT {'gpu_vendor': 'AMD'}\n"
NVIDIA = "# CONTEXT {'gpu_vendor': 'NVIDIA'}\n"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    for folder in ("docker", "scripts/a"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "scripts" / "a" / "run.sh").write_text("echo\n")
    (tmp_path / "docker" / "a.Dockerfile").write_text("FROM base:1\n")
    (tmp_path / "docker" / "both.ubuntu.amd.Dockerfile").write_text(AMD + "FROM base:1\n")
    (tmp_path / "docker" / "both.ubuntu.nvidia.Dockerfile").write_text(NVIDIA + "FROM base:1\n")
    return tmp_path


def card(name: str = "a", **fields: Any) -> ModelCard:
    return ModelCard({"name": name, "dockerfile": "docker/a", "scripts": "scripts/a/run.sh", **fields})


def _plan(
    package: Path,
    *cards: ModelCard,
    settings: Settings | None = None,
    engine: ContainerEngine | None = None,
    **options: Any,
) -> ImagePlan:
    chosen = BuildOptions(package=package, logs=package / "logs", **options)
    return plan_images(cards, settings or Settings(), engine or RecordingEngine(), chosen, "AMD")


def test_a_card_gets_one_image_per_dockerfile_that_fits(package: Path) -> None:
    (package / "docker" / "both.Dockerfile").write_text("FROM base:1\n")
    plan = _plan(package, card(dockerfile="docker/both"))
    assert [image.key for image in plan.images] == ["ci-a_both", "ci-a_both.ubuntu.amd"]
    assert plan.builds == 2


def test_a_card_gets_one_image_per_architecture(package: Path) -> None:
    plan = _plan(package, card(), target_archs=("gfx942", "gfx950"))
    assert [image.key for image in plan.images] == ["ci-a_a_gfx942", "ci-a_a_gfx950"]


def test_one_broken_card_leaves_the_others(package: Path) -> None:
    (package / "docker" / "broken.Dockerfile").write_text("# CONTEXT {\nFROM x\n")
    (package / "docker" / "empty.Dockerfile").write_text("ARG B\nFROM $B\n")
    plan = _plan(
        package,
        card("no-dockerfile", dockerfile="docker/b"),
        card("no-script", scripts="scripts/a/rum.sh"),
        card("broken", dockerfile="docker/broken"),
        card("empty", dockerfile="docker/empty"),
        card("nvidia", dockerfile="docker/both.ubuntu.nvidia"),
        card("good"),
    )
    assert [image.card.name for image in plan.images] == ["good"]
    errors = {failure.model: failure.error for failure in plan.failures}
    assert "has neither docker/b.Dockerfile" in errors["no-dockerfile"]
    assert "run.sh" in errors["no-script"]
    assert "docker/broken.Dockerfile:1" in errors["broken"]
    assert "docker/empty.Dockerfile:2" in errors["empty"]
    assert "is for gpu_vendor=NVIDIA" in errors["nvidia"]


def test_a_card_that_comes_twice_with_other_args_has_two_entries_and_one_image(package: Path) -> None:
    plan = _plan(package, card(args="--x"), card(args="--y"))
    assert [image.key for image in plan.images] == ["ci-a_a", "ci-a_a-2"]
    assert plan.builds == 1


def test_models_whose_names_differ_only_in_case_or_slash_do_not_share_an_image(package: Path) -> None:
    plan = _plan(package, card("m/x"), card("m_x"), card("M_X"))
    tags = [image.job.request.tag for image in plan.images if image.job]
    assert tags[0] == "ci-m_x_a"
    assert len(set(tags)) == 3


def test_a_named_image_is_taken_without_a_build(package: Path) -> None:
    engine = RecordingEngine(local={"rocm/x:1": "sha256:1"})
    (image,) = _plan(package, card(dockerfile=""), engine=engine, use_image="rocm/x:1").images
    assert image.record is not None
    assert (image.key, image.record.docker_image, image.record.text("docker_sha")) == ("a", "rocm/x:1", "sha256:1")


def test_a_named_image_that_is_not_here_is_warned_about(package: Path) -> None:
    assert "not on this machine" in _plan(package, card(), use_image="rocm/x:1").warnings[0]


def test_many_models_in_one_named_image_ask_for_it_once(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    engine = RecordingEngine()
    monkeypatch.setattr(engine, "image_facts", asked.append)
    plan = _plan(package, card("a"), card("b"), card("c"), engine=engine, use_image="rocm/x:1")
    assert (len(plan.images), len(plan.warnings), asked) == (3, 1, ["rocm/x:1"])


def test_the_contexts_image_counts_as_named(package: Path) -> None:
    settings = Settings(context={"MAD_CONTAINER_IMAGE": "mine:1"})
    (image,) = _plan(package, card(), settings=settings).images
    assert image.record is not None
    assert image.record.docker_image == "mine:1"


def test_auto_takes_each_cards_own_image(package: Path) -> None:
    own = [card(name, env_vars={"DOCKER_IMAGE_NAME": f"rocm/{name}:1"}) for name in ("a", "b")]
    plan = _plan(package, *own, use_image="auto")
    assert [image.record.docker_image for image in plan.images if image.record] == ["rocm/a:1", "rocm/b:1"]


def test_auto_refuses_placeholders_naming_every_card(package: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"a says '<supply-your-image>'; b has none .name the image"):
        _plan(
            package,
            card("a", env_vars={"DOCKER_IMAGE_NAME": "<supply-your-image>"}),
            card("b"),
            card("c", env_vars={"DOCKER_IMAGE_NAME": "rocm/c:1"}),
            use_image="auto",
        )


@pytest.mark.parametrize(
    ("written", "given"), [("<supply-your-image>", "my/image:1"), ("their/image:2", "their/image:2")]
)
def test_a_template_value_for_the_image_gives_way_to_the_image_that_was_named(
    package: Path, written: str, given: str
) -> None:
    one = card("a", env_vars={"DOCKER_IMAGE_NAME": written, "X": "1"})
    (image,) = _plan(package, one, use_image="my/image:1").images
    assert image.card.env_vars == {"DOCKER_IMAGE_NAME": given, "X": "1"}


@pytest.mark.parametrize("image", ["<supply-your-image>", "-v=/:/x", "a b", "$(touch x)"])
def test_an_image_that_is_none_is_refused(package: Path, image: str) -> None:
    with pytest.raises(ConfigurationError, match="is no name of an image"):
        _plan(package, card(), use_image=image)


def test_an_engine_without_images_needs_no_dockerfile(package: Path) -> None:
    (image,) = _plan(package, card(dockerfile=""), engine=RecordingEngine(needs_image=False)).images
    assert image.record is not None
    assert image.record.docker_image == ""
    assert (image.key, image.record.raw["docker_image"]) == ("a", None)


def test_a_batch_builds_some_and_takes_others_from_their_registry(package: Path) -> None:
    batch = {
        "a": BatchEntry("a", build_new=True, registry="h:5000"),
        "b": BatchEntry("b", registry="h:5000", registry_image="h:5000/b:1"),
        "c": BatchEntry("c", build_new=True, registry="h:5000", registry_image="h:5000/my/c:2"),
        "d": BatchEntry("d", build_new=True),
    }
    plan = _plan(package, *(card(name) for name in batch), batch=batch)
    pushes = [(image.push_to, image.push_name) for image in plan.images]
    assert pushes == [("h:5000", "h:5000/ci-a_a"), ("", ""), ("h:5000", "h:5000/my/c:2"), ("", "")]
    assert [image.record.docker_image for image in plan.images if image.record] == ["h:5000/b:1"]


def test_a_registry_that_can_be_none_is_refused_before_anything_is_built(package: Path) -> None:
    with pytest.raises(ConfigurationError, match="https"):
        _plan(package, card(), registry="https://h")


def test_hostile_names_give_valid_images_and_touch_nothing(package: Path) -> None:
    plan = _plan(package, *(card(name) for name in HOSTILE))
    assert len({image.key for image in plan.images}) == len(HOSTILE)
    assert plan.builds == len(set(HOSTILE))
    assert canaries(package) == []


def test_hostile_dockerfiles_and_contexts_are_failures(package: Path) -> None:
    cards = [
        card(f"{n}-{key}", **{key: text})
        for n, text in enumerate([*HOSTILE, "x" * 5000, "\ud800", "a\0"])
        for key in ("dockerfile", "dockercontext")
    ]
    plan = _plan(package, *cards)
    assert len(plan.failures) + len(plan.images) >= len(cards)
    assert canaries(package) == []
