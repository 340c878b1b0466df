"""Which commit a folder is at."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from madengine.reporting.git_state import git_state


def git(folder: Path, *words: str) -> str:
    settings = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", "-C", str(folder), *settings, *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    (folder / "package").mkdir(parents=True)
    (folder / "package" / "card.json").write_text("[]")
    (folder / "other.txt").write_text("x")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "one")
    return folder


def test_a_clean_folder_has_its_commit(repository: Path) -> None:
    state = git_state(repository / "package")
    assert state is not None
    assert (state.commit, state.dirty) == (git(repository, "rev-parse", "HEAD"), False)
    assert git_state(repository) == state


def test_a_changed_file_makes_only_its_own_folder_dirty(repository: Path) -> None:
    (repository / "other.txt").write_text("changed")
    inside, whole = git_state(repository / "package"), git_state(repository)
    assert inside is not None
    assert whole is not None
    assert (inside.dirty, whole.dirty) == (False, True)


def test_what_a_run_leaves_behind_does_not_make_a_folder_dirty(repository: Path) -> None:
    (repository / "perf.csv").write_text("model\n")
    state = git_state(repository)
    assert state is not None
    assert state.dirty is False


def test_a_folder_that_only_lies_in_a_repository_has_no_commit(repository: Path) -> None:
    (repository / "venv" / "madengine").mkdir(parents=True)
    assert git_state(repository / "venv" / "madengine") is None


def test_no_repository_no_folder_and_no_commit_are_none(tmp_path: Path) -> None:
    assert git_state(tmp_path) is None
    assert git_state(tmp_path / "none") is None
    git(tmp_path, "init", "-q")
    assert git_state(tmp_path) is None


def test_without_git_there_is_no_state(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert git_state(repository) is None


def test_variables_that_name_another_repository_are_not_heard(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "none"))
    assert git_state(repository) is not None


def test_a_program_that_the_repository_names_is_not_started(repository: Path) -> None:
    script = repository / "watch.sh"
    script.write_text("#!/bin/sh\ntouch canary\n")
    script.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(script))
    (repository / "canary").unlink(missing_ok=True)
    assert git_state(repository) is not None
    assert not (repository / "canary").exists()
