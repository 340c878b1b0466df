"""What one build needs, and the build itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.recording_engine import RecordingEngine

from madengine.catalog.card import ModelCard
from madengine.config.settings import Settings
from madengine.core.errors import BuildError
from madengine.execution.dockerfile import Dockerfile, parse_header
from madengine.execution.engine import BuildRequest, Output
from madengine.execution.images import (
    ImageJob,
    build_image,
    context_folder,
    given_image,
    last_words,
    no_image,
    plan_image,
    registry_record,
)

CANARY = "canary-secret-value"
AMD = "# CONTEXT {'gpu_vendor': 'AMD'}\n"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "docker").mkdir()
    return tmp_path


def _dockerfile(package: Path, text: str) -> Dockerfile:
    path = package / "docker" / "x.ubuntu.amd.Dockerfile"
    path.write_text(text)
    return Dockerfile(path, "docker/x.ubuntu.amd.Dockerfile", text, parse_header(text))


def _plan(package: Path, text: str, settings: Settings | None = None, **options: Any) -> ImageJob:
    card = ModelCard({"name": "dir/Model", **options.pop("card", {})})
    return plan_image(
        card, _dockerfile(package, text), settings or Settings(), package, **{"gpu_vendor": "AMD", **options}
    )


def test_the_request_of_an_ordinary_card(package: Path) -> None:
    (package / "docker" / "common").mkdir()
    job = _plan(package, "FROM base:1\n", Settings(docker_build_arg={"A": "1"}), no_cache=True)
    assert job.request == BuildRequest(
        tag="ci-dir_model_x.ubuntu.amd",
        dockerfile=package / "docker" / "x.ubuntu.amd.Dockerfile",
        context=package / "docker",
        build_args={"A": "1"},
        contexts={"tools": package / "docker" / "common"},
        no_cache=True,
    )


def test_the_context_beats_the_cards_build_arguments(package: Path) -> None:
    card = {"docker_build_arg": {"A": "card", "B": 2}}
    job = _plan(package, "FROM base:1\n", Settings(docker_build_arg={"A": "context"}), card=card)
    assert job.request.build_args == {"A": "context", "B": "2"}


@pytest.mark.parametrize(
    ("settings", "architecture", "expected"),
    [
        (Settings(), "gfx942", "gfx942"),
        (Settings(context={"MAD_SYSTEM_GPU_ARCHITECTURE": "gfx950"}), "", "gfx950"),
        (Settings(docker_env_vars={"MAD_SYSTEM_GPU_ARCHITECTURE": "gfx90a"}), "gfx942", "gfx942"),
        (Settings(docker_build_arg={"MAD_SYSTEM_GPU_ARCHITECTURE": "gfx1100"}), "", "gfx1100"),
    ],
)
def test_the_architecture_is_passed_to_a_dockerfile_that_asks(
    package: Path, settings: Settings, architecture: str, expected: str
) -> None:
    job = _plan(package, "FROM b:1\nARG MAD_SYSTEM_GPU_ARCHITECTURE\n", settings, architecture=architecture)
    assert job.request.build_args["MAD_SYSTEM_GPU_ARCHITECTURE"] == expected
    assert job.architecture == expected
    assert job.warnings == ()


def test_an_architecture_that_nobody_knows_is_warned_about(package: Path) -> None:
    job = _plan(package, "FROM b:1\nARG MAD_SYSTEM_GPU_ARCHITECTURE\n")
    assert "--target-archs" in job.warnings[0]
    assert _plan(package, "FROM b:1\nARG MAD_SYSTEM_GPU_ARCHITECTURE=gfx942\n").warnings == ()


def test_a_dockerfile_that_does_not_ask_gets_no_architecture(package: Path) -> None:
    assert _plan(package, "FROM b:1\n", architecture="gfx942").request.build_args == {}


def test_only_secrets_that_the_dockerfile_mentions_are_given(package: Path) -> None:
    settings = Settings(
        secrets={"MAD_SECRETS_A": CANARY, "MAD_SECRETS_B": "other"}, docker_build_arg={"MAD_SECRETS_C": "third"}
    )
    job = _plan(package, "FROM b:1\nRUN --mount=type=secret,id=MAD_SECRETS_A true\nENV C=$MAD_SECRETS_C\n", settings)
    assert job.request.secrets == {"MAD_SECRETS_A": CANARY, "MAD_SECRETS_C": "third"}
    assert job.request.build_args == {}
    assert CANARY not in repr(job)


def test_a_secret_that_stays_in_the_image_is_warned_about(package: Path) -> None:
    settings = Settings(secrets={"MAD_SECRETS_A": CANARY})
    (warning,) = _plan(package, "FROM b:1\nARG MAD_SECRETS_A\n", settings).warnings
    assert "RUN --mount=type=secret,id=MAD_SECRETS_A" in warning


def test_the_cards_credential_reaches_the_build(package: Path) -> None:
    job = _plan(
        package,
        "FROM b:1\nARG site_USERNAME\nARG site_PASSWORD\n",
        card={"cred": "site"},
        credentials={"site": {"username": "u", "password": "p"}},
    )
    assert job.request.secrets == {"site_USERNAME": "u", "site_PASSWORD": "p"}


def test_a_credential_that_is_needed_and_missing_is_a_failure(package: Path) -> None:
    with pytest.raises(BuildError, match="needs the credential 'site'"):
        _plan(package, "FROM b:1\nARG site_USERNAME\n", card={"cred": "site"})


def test_a_base_without_a_value_names_the_line(package: Path) -> None:
    with pytest.raises(BuildError, match=r"x\.ubuntu\.amd\.Dockerfile:2: FROM \$BASE_DOCKER has no value"):
        _plan(package, "ARG BASE_DOCKER\nFROM $BASE_DOCKER\n")


@pytest.mark.parametrize(("written", "folder"), [("", "docker"), (".", "."), ("./docker", "docker"), ("sub", "sub")])
def test_the_folder_that_is_sent_to_the_builder(package: Path, written: str, folder: str) -> None:
    (package / "sub").mkdir()
    card = ModelCard({"name": "m", "dockercontext": written})
    found = context_folder(card, _dockerfile(package, ""), package)
    assert found.resolve() == (package / folder).resolve()


def test_without_a_docker_folder_it_is_the_dockerfiles_own(tmp_path: Path) -> None:
    dockerfile = Dockerfile(tmp_path / "images" / "x.Dockerfile", "images/x.Dockerfile", "")
    assert context_folder(ModelCard({"name": "m"}), dockerfile, tmp_path) == tmp_path / "images"


@pytest.mark.parametrize("written", ["..", "../x", "/etc", "a\0", "docker/../.."])
def test_a_context_outside_the_package_is_refused(package: Path, written: str) -> None:
    with pytest.raises(BuildError, match="leads out of the package"):
        context_folder(ModelCard({"name": "m", "dockercontext": written}), _dockerfile(package, ""), package)


def test_a_context_that_is_missing_is_refused(package: Path) -> None:
    with pytest.raises(BuildError, match="no folder of the package"):
        context_folder(ModelCard({"name": "m", "dockercontext": "nothing"}), _dockerfile(package, ""), package)


@pytest.mark.parametrize(
    ("text", "local", "pull"),
    [
        ("FROM base:1\n", {}, True),
        ("FROM base:1\n", {"base:1": "sha256:1"}, False),
        # One local base is enough: it may exist nowhere else, and --pull would ask a registry for it.
        ("FROM base:1 AS a\nFROM other:1\n", {"base:1": "sha256:1"}, False),
        ("FROM scratch\n", {}, False),
    ],
)
def test_the_newest_base_is_asked_for_only_when_none_is_local(
    package: Path, text: str, local: Mapping[str, str], pull: bool
) -> None:
    engine = RecordingEngine(local=local)
    build_image(_plan(package, text), engine, log=package / "x.log", output=lambda chunk: None)
    assert engine.builds[0].pull is pull


def test_a_built_image_has_the_record_of_the_contract(package: Path) -> None:
    engine = RecordingEngine(local={"base:1": "sha256:abc"})
    settings = Settings(docker_build_arg={"A": "value-of-a"})
    log = package / "logs" / "x.log"
    job = _plan(package, AMD + "FROM base:1\n", settings, gpu_vendor="NVIDIA")
    raw = dict(build_image(job, engine, log=log, output=lambda chunk: None).record().raw)
    assert raw.pop("build_duration") >= 0
    command = raw.pop("build_command")
    assert raw == {
        "model": "dir/Model",
        "docker_image": "ci-dir_model_x.ubuntu.amd",
        "dockerfile": "docker/x.ubuntu.amd.Dockerfile",
        "base_docker": "base:1",
        "docker_sha": "sha256:abc",
        "local_image": True,
        "registry": None,
        "registry_image": None,
        "gpu_vendor": "AMD",
        "gpu_architecture": None,
        "log_file": str(log),
    }
    assert "--build-arg A" in command
    assert "value-of-a" not in command
    assert log.read_bytes() == f"$ {command}\ndone\n".encode()


def test_neither_log_nor_live_output_nor_error_shows_a_secret(package: Path) -> None:
    def leak(request: BuildRequest, output: Output) -> None:
        output(f"token {CANARY[:7]}".encode())
        output(f"{CANARY[7:]}\nERROR: {CANARY} refused".encode())
        raise BuildError(f"exited 1 with {CANARY}")

    seen = bytearray()
    job = _plan(package, "FROM b:1\nARG MAD_SECRETS_A\n", Settings(secrets={"MAD_SECRETS_A": CANARY}))
    with pytest.raises(BuildError, match=r"exited 1.*ERROR") as error:
        build_image(job, RecordingEngine(builder=leak), log=package / "x.log", output=seen.extend)
    for text in (str(error.value), seen.decode(), (package / "x.log").read_text()):
        assert CANARY not in text
        assert "refused" in text


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("a\nERROR: failed to solve: exit code: 1\nnotes\n", "ERROR: failed to solve: exit code: 1"),
        ("a\nb\n\n", "b"),
        ("", ""),
    ],
)
def test_the_reason_of_a_failure_is_the_builders_last_error(output: str, words: str) -> None:
    assert last_words(output) == words


def test_records_of_images_that_were_not_built() -> None:
    assert given_image("m", "i:1", "AMD", digest="sha256:1").raw["dockerfile"] == "N/A (local image mode)"
    assert given_image("m", "i:1", "AMD").local_image
    assert registry_record("m", "r/i:1", "r", "AMD").raw["registry_image"] == "r/i:1"
    assert not registry_record("m", "r/i:1", "r", "AMD").local_image
    assert no_image("m", "").docker_image == ""
