"""Every engine that works here, one after the other, for one suite that all of them pass."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.conformance.heard import Heard

from madengine.core.errors import MADEngineError
from madengine.execution import docker_words
from madengine.execution.docker import CommandEngine
from madengine.execution.engine import Container, ContainerEngine, ContainerRequest
from madengine.execution.host import HostEngine

IMAGE = "local/debian-py:1"
GRACE = 0.5  # seconds between TERM and KILL: no test waits ten

Starter = Callable[..., Container]


@pytest.fixture(
    params=[
        pytest.param("host"),
        pytest.param("docker", marks=pytest.mark.docker),
        pytest.param("podman", marks=pytest.mark.docker),
    ]
)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> ContainerEngine:
    """The engine under test. Podman is skipped where it cannot run a command in a container, saying why."""
    if request.param == "host":
        return HostEngine(grace=GRACE)
    if request.param == "docker":
        request.getfixturevalue("docker_engine")
        return CommandEngine(docker_words.DOCKER, grace=GRACE)
    podman = CommandEngine(docker_words.PODMAN, grace=GRACE)
    reason = _unusable(podman, tmp_path)
    if reason:
        pytest.skip(f"podman: {reason}")
    return podman


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A run's private workspace."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def start(engine: ContainerEngine, workspace: Path) -> Iterator[Starter]:
    """Starts containers that are gone after the test."""
    started: list[Container] = []

    def begin(**fields: object) -> Container:
        defaults = {
            "name": f"madengine-test-{uuid.uuid4().hex[:12]}",
            "image": IMAGE if engine.needs_image else "",
            "workspace": workspace,
            "user": f"{os.getuid()}:{os.getgid()}",
        }
        container = engine.start(ContainerRequest(**{**defaults, **fields}))  # type: ignore[arg-type]
        started.append(container)
        return container

    yield begin
    for container in started:
        container.stop()


def _unusable(engine: CommandEngine, folder: Path) -> str | None:
    problem = engine.problem()
    if problem:
        return problem
    try:
        if engine.image_facts(IMAGE) is None:
            return f"it has no image {IMAGE}"
        container = engine.start(ContainerRequest(f"madengine-probe-{uuid.uuid4().hex[:8]}", IMAGE, folder))
    except MADEngineError as error:
        return str(error)
    try:
        said = Heard(container)
        return None if said("true").exit_code == 0 else f"exec fails here: {said.text}"
    finally:
        container.stop()
