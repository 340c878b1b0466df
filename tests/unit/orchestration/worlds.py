"""A small package, a manifest of its cards, and what a planner is told of the world."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from madengine.catalog.card import ModelCard
from madengine.config.manifest import BuildManifest, ImageRecord
from madengine.execution.gpu import GpuInventory
from madengine.execution.spec import RunSpec
from madengine.orchestration.plan import Plan, RunOptions, Surroundings, plan_runs

EIGHT = GpuInventory("AMD", 8, "gfx942", "MI300X", "6.3", tuple(f"/dev/dri/renderD{n}" for n in range(128, 136)))


def package(root: Path) -> Path:
    """A package with one script, ``scripts/m/run.sh``."""
    folder = root / "package" / "scripts" / "m"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.sh").write_text("echo performance: 1 x\n")
    return root / "package"


def manifest(*cards: Mapping[str, Any], context: Any = None, deployment: Any = None) -> BuildManifest:
    """A manifest of these cards; a card needs to say only what a test is about."""
    raws = [{"name": "m", "scripts": "scripts/m/run.sh", **card} for card in cards or ({},)]
    return BuildManifest(
        images={f"k{n}": ImageRecord({"docker_image": "img:1"}) for n in range(len(raws))},
        models={f"k{n}": ModelCard(raw) for n, raw in enumerate(raws)},
        context=context or {},
        deployment_config=deployment or {},
    )


def world(root: Path, **fields: Any) -> Surroundings:
    """A machine without a GPU, and the package."""
    bare = Surroundings(package(root), root / "runs", "docker", GpuInventory(), {}, stamp="20260101T000000Z")
    return replace(bare, **fields)


def plan(
    root: Path,
    card: Mapping[str, Any] | None = None,
    *,
    options: RunOptions | None = None,
    context: Any = None,
    deployment: Any = None,
    **fields: Any,
) -> Plan:
    """The plan for one card."""
    one = manifest(card or {}, context=context, deployment=deployment)
    return plan_runs(one, options or RunOptions(), world(root, **fields))


def planned(root: Path, card: Mapping[str, Any] | None = None, **rest: Any) -> RunSpec:
    """The spec of one card."""
    (spec,) = plan(root, card, **rest).specs
    return spec
