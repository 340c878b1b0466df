"""Model packages, manifests and the command line for tests that go the whole way."""

from __future__ import annotations

import csv
import json
import os
import shutil
import stat
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from madengine.cli.main import main

MEASURES = "echo performance: 1 x\n"
MADENGINE = [sys.executable, "-m", "madengine"]


@dataclass(frozen=True)
class Outcome:
    """What one command came to."""

    code: int
    out: str
    err: str

    @property
    def errors(self) -> list[str]:
        """The lines on standard error that say what is wrong."""
        return [line for line in self.err.splitlines() if line.startswith("error:")]


@dataclass(frozen=True)
class Place:
    """A folder with a package in ``package`` and the current directory in ``work``."""

    package: Path
    work: Path
    capsys: pytest.CaptureFixture[str]

    def madengine(self, *words: object) -> Outcome:
        """Run one command in this process."""
        self.capsys.readouterr()
        code = main([str(word) for word in words])
        shown = self.capsys.readouterr()
        return Outcome(code, shown.out, shown.err)

    def run_dirs(self) -> list[Path]:
        """The run directories, the oldest first."""
        return sorted(path for path in (self.work / "runs").glob("*") if path.is_dir())

    def rows(self) -> list[dict[str, str]]:
        """The rows of perf.csv."""
        return read_csv(self.work / "perf.csv")


def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    """A fresh package with one model ``m``, and a fresh current directory beside it."""
    here = Place(tmp_path / "package", tmp_path / "work", capsys)
    make_package(here.package)
    here.work.mkdir()
    monkeypatch.chdir(here.work)
    monkeypatch.setenv("MODEL_DIR", str(here.package))
    for name in ("MAD_CONTAINER_ENGINE", "MAD_DEBUG", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return here


def card(name: str = "m", **fields: Any) -> dict[str, Any]:
    """A card of a CPU model."""
    return {
        "name": name,
        "dockerfile": "docker/m",
        "scripts": "scripts/m/run.sh",
        "n_gpus": "0",
        "tags": ["t"],
    } | fields


def make_package(root: Path, cards: Iterable[Mapping[str, Any]] | None = None, script: str = MEASURES) -> None:
    """A package with cards (default: one named ``m``), a script ``scripts/m/run.sh`` and a Dockerfile."""
    for folder in ("scripts/m", "docker"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "models.json").write_text(json.dumps([card()] if cards is None else list(cards)))
    (root / "scripts/m/run.sh").write_text(script)
    (root / "docker/m.Dockerfile").write_text("FROM local/debian-py:1\n")


def manifest(cards: Iterable[Mapping[str, Any]] | None = None, *, image: str = "", **blocks: Any) -> dict[str, Any]:
    """A manifest of these cards; without ``image`` it is one for the host engine."""
    models = {f"k{index}": dict(item) for index, item in enumerate([card()] if cards is None else cards)}
    images = {key: {"model": item["name"], "docker_image": image or None} for key, item in models.items()}
    return {"built_images": images, "built_models": models, "context": {}} | blocks


def write_json(path: Path, document: Any) -> Path:
    """Write a document as JSON."""
    path.write_text(json.dumps(document))
    return path


def read_csv(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file, none when there is no file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def snapshot(*roots: Path) -> dict[str, tuple[int, bytes]]:
    """Every path below the roots: its kind, and what it holds (of a large file the first bytes and the size)."""
    found = {}
    for root in roots:
        for folder, folders, files in os.walk(root):
            for name in (*folders, *files):
                path = Path(folder, name)
                found[str(path)] = _facts(path)
    return found


def _facts(path: Path) -> tuple[int, bytes]:
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return status.st_mode, os.fsencode(path.readlink())
    if not stat.S_ISREG(status.st_mode):
        return status.st_mode, b""
    if not os.access(path, os.R_OK):
        return status.st_mode, b"%d" % status.st_size
    with path.open("rb") as file:
        return status.st_mode, b"%d " % status.st_size + file.read(1 << 20)


def remove(path: Path) -> None:
    """Remove whatever lies there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
