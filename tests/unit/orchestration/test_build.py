"""The story of a build."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.recording_engine import RecordingEngine

from madengine.catalog.card import ModelCard
from madengine.config.context import settings_of
from madengine.core.errors import BuildError, DiscoveryError
from madengine.core.interruptions import Interruptions, counted_interruptions
from madengine.execution.engine import BuildRequest, ContainerEngine, Output
from madengine.orchestration.build import BuildResult, build_images
from madengine.orchestration.image_plan import BuildOptions
from madengine.schemas import validate_build_manifest

CANARY = "canary-secret-value"


class Watcher:
    """Keeps what a person would have seen."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.warned: list[str] = []
        self.steps: list[str] = []
        self.printed = bytearray()

    def say(self, text: str) -> None:
        self.said.append(text)

    def warn(self, text: str) -> None:
        self.warned.append(text)

    def started(self, number: int, total: int, image: str) -> None:
        self.steps.append(f"{number}/{total} {image}")

    def finished(self, number: int, total: int, image: str, seconds: float, error: str) -> None:
        self.steps.append(f"{number}/{total} {'failed' if error else 'built'}")

    def output(self, chunk: bytes) -> None:
        self.printed.extend(chunk)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    for folder in ("docker", "scripts"):
        (tmp_path / folder).mkdir()
    (tmp_path / "scripts" / "run.sh").write_text("echo\n")
    for name in "abc":
        (tmp_path / "docker" / f"{name}.Dockerfile").write_text("FROM base:1\nARG MAD_SECRETS_X\n")
    return tmp_path


def _card(name: str, **fields: Any) -> ModelCard:
    return ModelCard({"name": name, "dockerfile": f"docker/{name}", "scripts": "scripts/run.sh", **fields})


def _build(
    package: Path,
    *cards: ModelCard,
    engine: ContainerEngine | None = None,
    context: dict[str, Any] | None = None,
    watcher: Watcher | None = None,
    environ: dict[str, str] | None = None,
    interruptions: Interruptions | None = None,
    **options: Any,
) -> BuildResult:
    settings = settings_of(context or {"gpu_vendor": "AMD", "guest_os": "UBUNTU"}, environ or {})
    chosen = BuildOptions(package=package, logs=package / "logs", **options)
    engine, watcher = engine or RecordingEngine(), watcher or Watcher()
    return build_images(cards, settings, engine, chosen, watcher, interruptions=interruptions)


def _failing_for(name: str) -> RecordingEngine:
    def builder(request: BuildRequest, output: Output) -> None:
        if f"-{name}_" in request.tag:
            output(b"ERROR: no such package\n")
            raise BuildError("docker exited 1")

    return RecordingEngine(builder=builder)


def test_one_failed_build_does_not_stop_the_others(package: Path) -> None:
    watcher = Watcher()
    result = _build(package, _card("a"), _card("b"), _card("c"), engine=_failing_for("b"), watcher=watcher)
    assert list(result.manifest.images) == list(result.manifest.models) == ["ci-a_a", "ci-c_c"]
    summary = result.manifest.summary
    (failure,) = summary["failed_builds"]
    assert failure == {
        "model": "b",
        "image": "ci-b_b",
        "error": "docker exited 1: ERROR: no such package",
        "log_file": str(package / "logs" / "ci-b_b.build.live.log"),
    }
    assert [item["image"] for item in summary["successful_builds"]] == ["ci-a_a", "ci-c_c"]
    assert summary["total_build_time"] >= 0
    assert result.failed
    assert watcher.steps == ["1/3 ci-a_a", "1/3 built", "2/3 ci-b_b", "2/3 failed", "3/3 ci-c_c", "3/3 built"]
    assert watcher.printed.decode() == "done\ndone\n" or watcher.printed == b"ERROR: no such package\n"


def _interrupted_at(name: str) -> RecordingEngine:
    def builder(request: BuildRequest, output: Output) -> None:
        if f"-{name}_" in request.tag:
            signal.raise_signal(signal.SIGTERM)

    return RecordingEngine(builder=builder)


def test_an_interruption_ends_its_build_keeps_what_is_built_and_starts_no_other(package: Path) -> None:
    engine, watcher = _interrupted_at("b"), Watcher()
    with counted_interruptions() as interruptions:
        cards = _card("a"), _card("b"), _card("c")
        result = _build(package, *cards, engine=engine, watcher=watcher, interruptions=interruptions)
    assert result.interrupted
    assert list(result.manifest.images) == ["ci-a_a"]
    failed = [(item["model"], item["image"], item["error"]) for item in result.manifest.summary["failed_builds"]]
    assert failed == [("b", "ci-b_b", "interrupted"), ("c", "ci-c_c", "not started")]
    assert [Path(item.log_file).name for item in result.failures] == ["ci-b_b.build.live.log", ""]
    assert [request.tag for request in engine.builds] == ["ci-a_a", "ci-b_b"]
    assert watcher.steps == ["1/3 ci-a_a", "1/3 built", "2/3 ci-b_b", "2/3 failed"]
    assert validate_build_manifest(json.loads(json.dumps(result.manifest.to_dict()))) == []


def test_an_interruption_of_a_push_leaves_a_local_image(package: Path) -> None:
    class Pushing(RecordingEngine):
        def push(self, reference: str, *, output: Output) -> None:
            signal.raise_signal(signal.SIGTERM)

    with counted_interruptions() as interruptions:
        cards = _card("a"), _card("b")
        result = _build(package, *cards, engine=Pushing(), registry="h:5000", interruptions=interruptions)
    assert result.manifest.images["ci-a_a"].local_image
    assert [item.error for item in result.push_failures] == ["interrupted"]
    assert [item.error for item in result.failures] == ["not started"]


def test_an_interruption_before_the_first_build_leaves_nothing_to_tell_of(package: Path) -> None:
    engine = RecordingEngine()
    with counted_interruptions() as interruptions:
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            _build(package, _card("a"), engine=engine, interruptions=interruptions)
    assert engine.builds == []


def test_what_is_built_makes_a_valid_manifest(package: Path) -> None:
    result = _build(package, _card("a", cred="site", tags=["x"]), context={"slurm": {"nodes": 2}, "gpu_vendor": "AMD"})
    document = json.loads(json.dumps(result.manifest.to_dict()))
    assert validate_build_manifest(document) == []
    assert document["credentials_required"] == ["site"]
    assert document["built_models"]["ci-a_a"]["tags"] == ["x"]
    assert document["deployment_config"]["target"] == "slurm"
    assert not result.failed


def test_without_cards_there_is_nothing_to_build(package: Path) -> None:
    with pytest.raises(DiscoveryError, match="no model was selected"):
        _build(package)


def test_when_nothing_was_built_the_build_failed(package: Path) -> None:
    result = _build(package, _card("a"), engine=_failing_for("a"))
    assert result.manifest.images == {}
    assert result.failed


def test_defaults_are_said_aloud_and_given_ones_are_not(package: Path) -> None:
    loud, silent = Watcher(), Watcher()
    _build(package, _card("a"), context={"docker_gpus": "0"}, watcher=loud)
    assert [text.split(":")[0] for text in loud.said] == ["gpu_vendor is not given", "guest_os is not given"]
    _build(package, _card("a"), context={"gpu_vendor": "AMD", "guest_os": "UBUNTU"}, watcher=silent)
    assert silent.said == []


def test_no_secret_reaches_manifest_log_or_screen(package: Path) -> None:
    def builder(request: BuildRequest, output: Output) -> None:
        assert request.secrets == {"MAD_SECRETS_X": CANARY}
        output(f"{CANARY}\n".encode())
        if "-b_" in request.tag:
            raise BuildError(f"failed with {CANARY}")

    watcher = Watcher()
    result = _build(
        package,
        _card("a", args=f"--token {CANARY}", env_vars={"T": CANARY}),
        _card("b"),
        engine=RecordingEngine(builder=builder),
        context={"docker_env_vars": {"MAD_SECRETS_X": CANARY, "HF_TOKEN": "another-canary"}},
        environ={"MAD_SECRETS_X": CANARY},
        watcher=watcher,
    )
    seen = json.dumps(result.manifest.to_dict()) + watcher.printed.decode() + " ".join(watcher.warned + watcher.steps)
    seen += "".join(path.read_text() for path in (package / "logs").iterdir())
    assert CANARY not in seen
    assert "another-canary" not in seen
    assert any("the args of a hold a secret" in text for text in watcher.warned)
    assert result.manifest.models["ci-a_a"].env_vars == {"T": "${MAD_SECRETS_X}"}
    assert result.manifest.summary["secrets_from_environment"] == ["HF_TOKEN", "MAD_SECRETS_X"]


def test_the_same_image_is_built_once(package: Path) -> None:
    engine = RecordingEngine()
    result = _build(package, _card("a", args="1"), _card("a", args="2"), engine=engine)
    assert len(engine.builds) == 1
    assert [card.text("args") for card in result.manifest.models.values()] == ["1", "2"]


def test_what_was_built_is_pushed_under_its_name(package: Path) -> None:
    engine, watcher = RecordingEngine(), Watcher()
    result = _build(package, _card("a"), engine=engine, watcher=watcher, registry="h:5000")
    image = result.manifest.images["ci-a_a"]
    assert engine.pushes == ["h:5000/ci-a_a"]
    assert (image.text("registry"), image.text("registry_image")) == ("h:5000", "h:5000/ci-a_a")
    assert not image.local_image
    assert result.manifest.summary["successful_pushes"] == ["h:5000/ci-a_a"]
    assert "pushing with what docker has" in watcher.said[0]


def test_a_failed_push_leaves_a_local_image_and_fails_the_command(package: Path) -> None:
    engine = RecordingEngine()
    engine.refuse_push = True
    result = _build(package, _card("a"), engine=engine, registry="h:5000")
    assert result.manifest.images["ci-a_a"].local_image
    assert result.manifest.summary["failed_pushes"][0]["error"].endswith("denied")
    assert result.failed


def test_an_engine_without_images_builds_nothing_and_is_no_failure(package: Path) -> None:
    watcher = Watcher()
    engine = RecordingEngine(needs_image=False)
    result = _build(package, _card("a"), engine=engine, context={"docker_gpus": ""}, watcher=watcher)
    assert engine.builds == []
    assert list(result.manifest.images) == ["a"]
    assert watcher.said == []
    assert validate_build_manifest(json.loads(json.dumps(result.manifest.to_dict()))) == []
    assert not result.failed


def test_a_named_image_needs_no_engine(package: Path) -> None:
    settings = settings_of({}, {})
    options = BuildOptions(package=package, logs=package / "logs", use_image="rocm/x:1")
    result = build_images([_card("a")], settings, None, options, Watcher())
    assert result.manifest.images["a"].docker_image == "rocm/x:1"
    assert not (package / "logs").exists()


def test_what_has_to_be_built_without_an_engine_is_a_failure(package: Path) -> None:
    options = BuildOptions(package=package, logs=package / "logs")
    result = build_images([_card("a")], settings_of({}, {}), None, options, Watcher())
    assert "no container engine was chosen" in result.failures[0].error
    assert result.failed
