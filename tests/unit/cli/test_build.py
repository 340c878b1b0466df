"""What ``madengine build`` refuses before anything is built."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from madengine.cli.main import main


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package on a machine without any container engine; it is the current directory."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "run.sh").write_text("echo performance: 1 x\n")
    card = {"name": "m", "scripts": "scripts/run.sh", "dockerfile": "docker/m", "n_gpus": "0"}
    (tmp_path / "models.json").write_text(json.dumps([card]))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("MODEL_DIR", "MAD_CONTAINER_ENGINE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_a_build_without_an_engine_is_no_success(nowhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", "--tags", "m"]) == 4
    assert "no engine works here (docker: not installed; podman: not installed)" in capsys.readouterr().err
    assert not (nowhere / "build_manifest.json").exists()


def test_the_host_pushes_nothing(
    nowhere: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.undo()
    monkeypatch.chdir(nowhere)
    assert main(["build", "--tags", "m", "--engine", "host", "--registry", "registry.example.com"]) == 4
    assert "the engine host builds no image" in capsys.readouterr().err
    assert not (nowhere / "build_manifest.json").exists()
