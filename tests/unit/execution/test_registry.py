"""Logging in and pushing."""

from __future__ import annotations

from typing import Any

import pytest
from tests.recording_engine import RecordingEngine

from madengine.core.errors import BuildError, ConfigurationError
from madengine.core.process import Completed
from madengine.execution.registry import credential_of, login, push, push_name

SITE = {"registry.site": {"username": "me", "password": "pass-word", "repository": "team/mad"}}


class _Runner:
    def __init__(self, exit_code: int = 0, stderr: str = "") -> None:
        self.calls: list[tuple[list[str], dict[str, Any]]] = []
        self._result = Completed(("docker",), exit_code, "", stderr, 0.1, False)

    def __call__(self, argv: list[str], **options: Any) -> Completed:
        self.calls.append((argv, options))
        return self._result


@pytest.mark.parametrize(
    ("registry", "host"),
    [("registry.site", "registry.site"), ("dockerhub", "docker.io"), ("docker.io", "docker.io"), ("h:5000/", "h:5000")],
)
def test_the_password_travels_on_standard_input_only(registry: str, host: str) -> None:
    runner = _Runner()
    assert login("docker", registry, SITE["registry.site"], run=runner)
    ((argv, options),) = runner.calls
    assert argv == ["docker", "login", "--username=me", "--password-stdin", host]
    assert options["input"] == "pass-word"


@pytest.mark.parametrize("credential", [{}, {"username": "me"}, {"password": "p"}, {"repository": "r"}])
def test_without_user_and_password_nobody_logs_in(credential: dict[str, str]) -> None:
    runner = _Runner()
    assert not login("docker", "h:5000", credential, run=runner)
    assert runner.calls == []


def test_a_refused_login_says_why_and_not_the_password() -> None:
    runner = _Runner(1, "WARNING! x\nunauthorized: pass-word is wrong\n")
    with pytest.raises(BuildError, match=r"could not log in to registry\.site: unauthorized") as error:
        login("docker", "registry.site", SITE["registry.site"], run=runner)
    assert "pass-word" not in str(error.value)


def test_a_login_that_fails_without_a_word_tells_its_exit_code() -> None:
    with pytest.raises(BuildError, match="exit code 7"):
        login("docker", "registry.site", SITE["registry.site"], run=_Runner(7))


@pytest.mark.parametrize(
    ("registry", "name"),
    [
        ("registry.site", "registry.site/team/mad:ci-x"),
        ("h:5000", "h:5000/ci-x"),
        ("docker.io", "hub/mad:ci-x"),
        ("DockerHub", "hub/mad:ci-x"),
    ],
)
def test_the_name_in_a_registry_follows_its_credential(registry: str, name: str) -> None:
    credentials = {**SITE, "dockerhub": {"repository": "hub/mad"}}
    assert push_name("ci-x", registry, credentials) == name


@pytest.mark.parametrize("registry", ["https://h", "a b", "$(x)", "-x", "h:port"])
def test_a_registry_that_can_be_none_is_refused(registry: str) -> None:
    with pytest.raises(ConfigurationError, match="without https"):
        push_name("ci-x", registry, {})


def test_docker_hub_without_a_repository_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="needs a repository"):
        push_name("ci-x", "docker.io", {})


def test_credentials_are_found_by_the_registrys_name() -> None:
    credentials = {**SITE, "dockerhub": {"username": "hub"}}
    assert credential_of("docker.io", credentials) == {"username": "hub"}
    assert credential_of("registry.site/", credentials) == SITE["registry.site"]
    assert credential_of("other", credentials) == {}


def test_an_image_is_tagged_and_then_pushed() -> None:
    engine = RecordingEngine()
    push(engine, "ci-x", "h/ci-x", output=lambda chunk: None)
    assert (engine.tags, engine.pushes) == ([("ci-x", "h/ci-x")], ["h/ci-x"])
