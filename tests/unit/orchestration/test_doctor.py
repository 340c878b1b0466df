"""The doctor names what works, what does not, and the remedy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from madengine.execution.gpu import GpuInventory
from madengine.orchestration.doctor import examine


class Engine:
    def __init__(self, problem: str | None) -> None:
        self._problem = problem

    def problem(self) -> str | None:
        return self._problem


def findings(package: Path, *, problem: str | None = None, gpus: GpuInventory | None = None) -> dict[str, Any]:
    seen = examine(package, lambda _: Engine(problem), lambda: gpus or GpuInventory())  # type: ignore[arg-type, return-value]
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


def test_the_gpus_are_told(package: Path) -> None:
    seen = findings(package, gpus=GpuInventory("AMD", 8, "gfx942", "MI300X"))
    assert seen["gpus"].detail == "8 x AMD gfx942 MI300X"


def test_a_folder_without_cards_is_a_warning(tmp_path: Path) -> None:
    assert findings(tmp_path)["package"].state == "warning"


def test_a_package_with_a_broken_card_is_a_problem(package: Path) -> None:
    (package / "models.json").write_text('[{"name": "a"}, 3]')
    assert findings(package)["package"].state == "problem"
