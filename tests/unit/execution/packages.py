"""Small packages on disk, and the specs of runs in them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from madengine.catalog.card import ModelCard
from madengine.config.manifest import ImageRecord
from madengine.execution.spec import GpuGrant, RunSpec, ScriptPlan


class Watching:
    """An observer that keeps what it is told."""

    def __init__(self) -> None:
        self.phases: list[str] = []
        self.shown = b""
        self.notes: list[str] = []

    def phase(self, name: str) -> None:
        self.phases.append(name)

    def output(self, data: bytes) -> None:
        self.shown += data

    def note(self, text: str) -> None:
        self.notes.append(text)


def package(root: Path, script: str = "echo 'performance: 1 x/s'\n") -> Path:
    """A package with one model: ``scripts/m/run.sh``."""
    folder = root / "package" / "scripts" / "m"
    folder.mkdir(parents=True)
    (folder / "run.sh").write_text(script)
    return root / "package"


def spec(
    root: Path, *, args: str = "", run_id: str = "run-1", card: dict[str, Any] | None = None, **fields: Any
) -> RunSpec:
    """The run of that model; its run directory lies in the package, as it does for people who work there."""
    raw = {"name": "m/model", "scripts": "scripts/m/run.sh", **(card or {})}
    bare = RunSpec(
        run_id=run_id,
        key="k",
        card=ModelCard(raw),
        image=ImageRecord({"docker_image": "local/debian-py:1"}),
        package=root,
        run_dir=root / "runs" / run_id,
        engine="host",
        script=ScriptPlan(root / "scripts" / "m", "run.sh", args=args),
        gpus=GpuGrant(),
    )
    return replace(bare, **fields)
