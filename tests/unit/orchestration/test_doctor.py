"""The doctor names what works, what does not, and the remedy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from madengine.core.errors import ExecutionError
from madengine.deployment.carrier import Carrier
from madengine.execution.gpu import GpuInventory
from madengine.orchestration.doctor import examine

NOTHING: Mapping[str, Path] = {}


class Engine:
    name = "docker"

    def __init__(self, problem: str | None, containers: Mapping[str, Path] | None = None) -> None:
        self._problem = problem
        self._containers = containers

    def containers(self) -> Mapping[str, Path]:
        if self._containers is None:
            raise ExecutionError("docker cannot list containers: no answer in time")
        return self._containers

    def problem(self) -> str | None:
        return self._problem


def findings(
    package: Path,
    *,
    problem: str | None = None,
    gpus: GpuInventory | None = None,
    containers: Mapping[str, Path] | None = NOTHING,
) -> dict[str, Any]:
    engine = Engine(problem, containers)
    seen = examine(package, lambda _: engine, lambda: gpus or GpuInventory())  # type: ignore[arg-type, return-value]
    return {finding.subject: finding for finding in seen}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "models.json").write_text(json.dumps([{"name": "a", "scripts": "a.sh", "dockerfile": "docker/a"}]))
    return tmp_path


def test_a_healthy_machine_has_nothing_to_mend(package: Path) -> None:
    seen = findings(package)
    assert {finding.state for name, finding in seen.items() if name != "directory"} == {"ok"}
    assert seen["package"].detail.endswith("1 model cards")


def test_an_engine_that_does_not_work_is_a_warning_with_a_way_out(package: Path) -> None:
    docker = findings(package, problem="no daemon answers")["docker"]
    assert (docker.state, docker.detail) == ("warning", "no daemon answers")
    assert "--engine host" in docker.remedy


def test_containers_of_runs_that_have_ended_are_named_with_the_remedy(package: Path, tmp_path: Path) -> None:
    folders = {name: tmp_path / name for name in ("running", "killed", "removed")}
    for name in ("running", "killed"):
        folders[name].mkdir()
    Carrier.this_process().write(folders["running"])
    replace(Carrier.this_process(), started=1).write(folders["killed"])
    left = findings(package, containers=folders)["docker containers"]
    assert (left.state, left.detail) == ("warning", "left over from runs that have ended: killed, removed")
    assert left.remedy.endswith("docker rm -f killed removed")


def test_an_engine_that_cannot_list_containers_is_a_warning(package: Path) -> None:
    left = findings(package, containers=None)["docker containers"]
    assert (left.state, left.detail) == ("warning", "docker cannot list containers: no answer in time")


def test_the_gpus_are_told(package: Path) -> None:
    seen = findings(package, gpus=GpuInventory("AMD", 8, "gfx942", "MI300X"))
    assert seen["gpus"].detail == "8 x AMD gfx942 MI300X"


def test_a_folder_without_cards_is_a_warning(tmp_path: Path) -> None:
    assert findings(tmp_path)["package"].state == "warning"


def test_a_package_with_a_broken_card_is_a_problem(package: Path) -> None:
    (package / "models.json").write_text('[{"name": "a"}, 3]')
    assert findings(package)["package"].state == "problem"
