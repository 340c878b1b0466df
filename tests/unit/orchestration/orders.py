"""Run directories as a target leaves them for its nodes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import madengine
from madengine.deployment.order import JobOrder, write_order

RUN_ID = "20260101T000000Z-m-abc123"


def order(package: Path, /, **fields: Any) -> JobOrder:
    """The order of a run of two nodes, on the host engine."""
    bare = JobOrder(
        RUN_ID,
        "k",
        "m",
        "slurm",
        madengine.__version__,
        str(package),
        engine="host",
        nnodes=2,
        reporters=2,
        directory=str(package.parent),
    )
    return replace(bare, **fields)


def run_directory(
    root: Path,
    script: str = "echo performance: 1 x\n",
    *,
    card: Mapping[str, Any] | None = None,
    deployment: Mapping[str, Any] | None = None,
    context: Mapping[str, Any] | None = None,
    image: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Path:
    """A package with one script below ``root``, and the run directory of a run of it; ``fields`` are the order's."""
    folder = root / "package" / "scripts" / "m"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.sh").write_text(script)
    run_dir = root / "results" / RUN_ID
    run_dir.mkdir(parents=True)
    write_order(run_dir, order(root / "package", **fields))
    document = {
        "built_images": {"k": {"docker_image": "img:1", **(image or {})}},
        "built_models": {"k": {"name": "m", "scripts": "scripts/m/run.sh", "n_gpus": "0", **(card or {})}},
        "context": context or {},
        "deployment_config": deployment or {},
    }
    (run_dir / "manifest.json").write_text(json.dumps(document))
    return run_dir
