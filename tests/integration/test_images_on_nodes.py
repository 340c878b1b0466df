"""Nodes that get their image, on a real Docker engine: one builds and keeps an archive, the others load it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.packages import MADENGINE
from tests.unit.orchestration.orders import run_directory

from madengine.execution.ensure_image import archive_name

pytestmark = [pytest.mark.docker, pytest.mark.usefixtures("docker_engine")]

LIMIT = 120  # seconds


@pytest.fixture
def image() -> Iterator[str]:
    """The name of an image that nobody else makes, which is gone afterwards."""
    name = f"local/test-{uuid.uuid4().hex[:10]}:1"
    yield name
    remove(name)


def remove(image: str) -> None:
    subprocess.run(["docker", "image", "rm", "--force", image], check=False, capture_output=True)


def is_there(image: str) -> bool:
    return subprocess.run(["docker", "image", "inspect", image], check=False, capture_output=True).returncode == 0


def a_run(tmp_path: Path, image: str, script: str = "echo performance: 1 x\n", **fields: Any) -> Path:
    """A run of two nodes in an image that is built from the package's Dockerfile; each build leaves a line."""
    run_dir = run_directory(
        tmp_path,
        script,
        engine="docker",
        image={"docker_image": image, "local_image": True, "dockerfile": "docker/m.Dockerfile"},
        **fields,
    )
    (tmp_path / "package" / "docker").mkdir()
    (tmp_path / "package" / "docker" / "m.Dockerfile").write_text(
        f"FROM local/debian-py:1\nRUN sleep 1; echo {uuid.uuid4().hex} >/made\n"
    )
    return run_dir


def start(run_dir: Path, rank: int, *words: str) -> subprocess.Popen[str]:
    environ = {
        **os.environ,
        "MADENGINE_HOSTS": "n0,n1",
        "MAD_DOCKER_BUILDS": str(run_dir.parent / "builds"),
    }
    command = [*MADENGINE, "node", str(run_dir), "--rank", str(rank), *words]
    return subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True)


def outcome(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, told = process.communicate(timeout=LIMIT)
    return process.returncode, told


def archive(run_dir: Path, image: str) -> Path:
    return run_dir.parent / "builds" / archive_name(image)


def test_one_builds_and_keeps_the_archive_and_another_loads_it(tmp_path: Path, image: str) -> None:
    run_dir = a_run(tmp_path, image)
    code, told = outcome(start(run_dir, 0, "--images-only"))
    assert (code, told.splitlines()[-1]) == (0, f"image {image}: built")
    assert "/made" in (run_dir / "node_0" / "image.log").read_text()
    remove(image)
    code, told = outcome(start(run_dir, 1, "--images-only"))
    assert (code, told.splitlines()[-1]) == (0, f"image {image}: loaded")
    assert [path.name for path in archive(run_dir, image).parent.iterdir()] == [archive_name(image)]


def test_two_ranks_on_one_machine_get_it_once_and_run_in_containers_of_their_own(tmp_path: Path, image: str) -> None:
    script = 'cat /made; [ "$RANK" = 0 ] && echo performance: 1 x || true\n'
    run_dir = a_run(tmp_path, image, script, deployment={"distributed": {"launcher": "torchrun", "nnodes": 2}})
    outcomes = [outcome(process) for process in [start(run_dir, rank) for rank in (0, 1)]]
    assert [code for code, _ in outcomes] == [0, 5]
    assert sum(f"image {image}: built" in told for _, told in outcomes) == 1
    logs = [(run_dir / f"node_{rank}" / "logs" / "run.log").read_text().splitlines()[0] for rank in (0, 1)]
    assert logs[0] == logs[1] != ""
    digests = [json.loads((run_dir / f"node_{n}" / "run.json").read_text())["image"]["digest"] for n in (0, 1)]
    assert digests[0] == digests[1] != ""


def test_an_archive_of_which_only_half_is_there_is_built_over(tmp_path: Path, image: str) -> None:
    run_dir = a_run(tmp_path, image)
    archive(run_dir, image).parent.mkdir()
    archive(run_dir, image).write_bytes(b"\0" * 10_000)
    code, told = outcome(start(run_dir, 0, "--images-only"))
    assert (code, told.splitlines()[-1]) == (0, f"image {image}: built")
    remove(image)
    assert outcome(start(run_dir, 1, "--images-only"))[0] == 0
    assert is_there(image)


def test_a_builder_that_is_killed_keeps_nobody_waiting(tmp_path: Path, image: str) -> None:
    run_dir = a_run(tmp_path, image)
    dockerfile = tmp_path / "package" / "docker" / "m.Dockerfile"
    well = dockerfile.read_text()
    dockerfile.write_text("FROM local/debian-py:1\nRUN echo it builds; sleep 300\n")
    killed = start(run_dir, 0, "--images-only")
    try:
        _waited_for(run_dir / "node_0" / "image.log", "it builds")
        holders = list(archive(run_dir, image).parent.glob(".*.holder"))
    finally:
        _kill_with_children(killed)
    assert len(holders) == 1
    dockerfile.write_text(well)
    code, told = outcome(start(run_dir, 1, "--images-only"))
    assert (code, told.splitlines()[-1]) == (0, f"image {image}: built")


def test_an_image_that_cannot_be_had_is_125_and_says_what_was_tried(tmp_path: Path, image: str) -> None:
    run_dir = a_run(tmp_path, image)
    (tmp_path / "package" / "docker" / "m.Dockerfile").write_text("FROM local/debian-py:1\nRUN exit 9\n")
    code, told = outcome(start(run_dir, 0))
    assert code == 125
    seen = json.loads((run_dir / "node_0" / "evidence.json").read_text())
    for words in (image, "building: ", "pulling: "):
        assert words in seen["interruption"]["detail"]
    assert "exit code: 9" in (run_dir / "node_0" / "image.log").read_text()
    assert image in told


def _waited_for(log: Path, text: str) -> None:
    deadline = time.monotonic() + LIMIT
    while not log.exists() or text not in log.read_text():
        assert time.monotonic() < deadline, f"{log} never says {text!r}"
        time.sleep(0.05)


def _kill_with_children(process: subprocess.Popen[str]) -> None:
    """As Slurm does: the process, and what its threads have started in sessions of their own."""
    threads = Path(f"/proc/{process.pid}/task").glob("*/children")
    children = [int(child) for path in threads for child in path.read_text().split()]
    process.kill()
    process.communicate()
    for child in children:
        os.kill(child, signal.SIGKILL)
