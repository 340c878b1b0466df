"""A card with a ``url``: the repository is cloned, the script runs in the clone, and its commit is on record."""

from __future__ import annotations

import csv
import json
import subprocess
from pathlib import Path

import pytest

from madengine.cli.main import main


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit and a file that the model's script reads."""
    folder = tmp_path / "their-code"
    folder.mkdir()
    (folder / "speed.txt").write_text("12.5\n")
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], [*identity, "commit", "-q", "-m", "first"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


@pytest.fixture
def package(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "package"
    (folder / "scripts").mkdir(parents=True)
    (folder / "scripts" / "run.sh").write_text('echo "in $(basename "$PWD")"; echo performance: $(cat speed.txt) x/s\n')
    card = {"name": "theirs", "scripts": "scripts/run.sh", "dockerfile": "", "tags": ["t"], "url": str(repository)}
    (folder / "models.json").write_text(json.dumps([{**card, "n_gpus": "0"}]))
    monkeypatch.setenv("MODEL_DIR", str(folder))
    monkeypatch.chdir(tmp_path)
    return folder


def test_the_script_runs_in_the_clone_and_its_commit_is_in_perf_csv(package: Path, repository: Path) -> None:
    assert main(["run", "--tags", "t", "--engine", "host"]) == 0
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=repository, check=True, capture_output=True, text=True)
    with Path("perf.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["performance"], row["git_commit"]) == ("12.5", head.stdout.strip())
    (log,) = Path().glob("runs/*/logs/run.log")
    assert log.read_text().startswith("in their-code\n")


def test_a_dry_run_names_the_clones_folder(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--tags", "t", "--engine", "host", "--dry-run"]) == 0
    assert "cd their-code && bash run.sh" in capsys.readouterr().out


def test_a_repository_that_is_not_there_is_a_failure_with_gits_words(
    package: Path, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.rename(repository.with_name("gone"))
    assert main(["run", "--tags", "t", "--engine", "host"]) == 3
    assert "does not exist" in capsys.readouterr().err
    with Path("perf.csv").open(newline="") as file:
        assert [row["status"] for row in csv.DictReader(file)] == ["FAILURE"]
