"""Fixtures that all tests share."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.services import cluster
from tests.services.cluster import Cluster

# Whoever starts the tests in the background or under nohup has these ignored, and every process that a test starts
# inherits that; the tests of Ctrl-C and of a closed terminal need them as a terminal gives them.
for _number, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def not_on_github(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that run on GitHub Actions write into no summary of theirs."""
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def real_mad() -> Path:
    """The public MAD package's own cards, manifests and results, where they lie beside the checkout."""
    folder = Path(os.environ.get("MAD_REAL_INPUTS", REPOSITORY.parent / "shared" / "real" / "mad"))
    if not (folder / "models.json").is_file():
        pytest.skip(f"the real MAD inputs are not at {folder}; set MAD_REAL_INPUTS to their folder")
    return folder


@pytest.fixture(scope="session")
def docker_engine() -> Iterator[Mapping[str, str]]:
    """A real Docker engine with the images ``local/busybox:1`` (no bash) and ``local/debian-py:1`` (bash, python3).

    It is the engine that the environment already leads to, else the one that ``tests/services/docker_engine.sh
    start`` left running. Its variables (DOCKER_HOST, DOCKER_CONFIG, PATH) are set for the session and handed back.
    """
    variables = {} if _has_base_images({}) else _service_variables()
    if not _has_base_images(variables):
        reason = "no Docker engine with the base images; start one: tests/services/docker_engine.sh start"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        yield variables


def _has_base_images(variables: Mapping[str, str]) -> bool:
    words = ["docker", "image", "inspect", "local/busybox:1", "local/debian-py:1"]
    environment = {**os.environ, **variables}
    try:
        return subprocess.run(words, check=False, env=environment, capture_output=True, timeout=30).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _service_variables() -> dict[str, str]:
    script = REPOSITORY / "tests" / "services" / "docker_engine.sh"
    shown = subprocess.run([str(script), "env"], check=False, capture_output=True, text=True, timeout=30).stdout
    variables = dict(re.findall(r"^export (DOCKER_\w+)=(.*)$", shown, re.M))
    for folder in re.findall(r'^export PATH=(.*):"\$PATH"$', shown, re.M):
        variables["PATH"] = f"{folder}{os.pathsep}{os.environ.get('PATH', '')}"
    return variables


@pytest.fixture(scope="session")
def slurm_cluster() -> Iterator[Cluster]:
    """A real Slurm of many nodes on this machine, which ``tests/services/slurm_cluster.sh start`` left running."""
    found = cluster.running()
    if found is None:
        reason = "no Slurm cluster answers; start one: tests/services/slurm_cluster.sh start"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in found.variables.items():
            patch.setenv(name, value)
        yield found


@pytest.fixture(scope="module")
def private_slurm_cluster(slurm_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of two nodes whose daemons a test may stop: nobody else uses it."""
    with tempfile.TemporaryDirectory(prefix="slurm-", dir="/tmp") as folder:  # sockets have short paths
        worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
        found = cluster.started(folder, NODES="2", PORTBASE=str(18000 + 400 * worker))
        try:
            yield found
        finally:
            cluster.stop(folder)
