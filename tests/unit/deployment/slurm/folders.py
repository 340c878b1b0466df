"""Run directories as nodes leave them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from madengine.deployment.order import JobOrder
from madengine.verdict.evidence import Evidence, Measurement, NodeReport
from madengine.verdict.evidence_json import to_json

RUN = "20261201T000000Z-m-abc123"


def order(**fields: Any) -> JobOrder:
    """An order of two nodes."""
    bare = {"run_id": RUN, "key": "k0", "model": "m", "target": "slurm", "madengine": "1", "package": "/p"}
    return JobOrder(**{**bare, "nnodes": 2, "reporters": 2, **fields})


def marker(run_dir: Path, rank: int, code: object = 0, **facts: object) -> Path:
    """A node's marker."""
    folder = run_dir / f"node_{rank}"
    folder.mkdir(parents=True, exist_ok=True)
    lines = {"run": RUN, "job": 7, "attempt": 0, "node": rank, "host": f"h{rank}", "exit_code": code, **facts}
    text = "".join(f"{name}={value}\n" for name, value in lines.items())
    (folder / "node.status").write_text(text + "timestamp=2026-12-01T00:00:00Z\n")
    return folder / "node.status"


def evidence(run_dir: Path, rank: int, **facts: Any) -> Evidence:
    """A node's evidence, also on the disk."""
    folder = run_dir / f"node_{rank}"
    folder.mkdir(parents=True, exist_ok=True)
    told = Evidence(**{"run_id": RUN, "nodes": (NodeReport(0, f"h{rank}", 0, script=True),), **facts})
    (folder / "evidence.json").write_text(json.dumps(to_json(told)))
    return told


def number(value: float, metric: str = "samples/s", source: str = "run.log:3", **facts: Any) -> Measurement:
    """One measurement."""
    return Measurement(value, metric, source=source, text=str(value), **facts)


def log(run_dir: Path, rank: int, text: str) -> None:
    """A model's output on a node."""
    folder = run_dir / f"node_{rank}" / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.log").write_text(text)
