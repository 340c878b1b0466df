"""The smallest package that measures something."""

from __future__ import annotations

import json
from pathlib import Path

SCRIPT = "scripts/trivial/run.sh"
CARD = {
    "name": "trivial",
    "scripts": SCRIPT,
    "dockerfile": "docker/trivial",
    "n_gpus": "0",
    "owner": "nobody@example.com",
    "training_precision": "",
    "tags": ["trivial"],
    "args": "",
}


def write_package(folder: Path) -> None:
    """A card with a script that prints a metric line and nothing else."""
    script = folder / SCRIPT
    script.parent.mkdir(parents=True)
    script.write_text("echo 'performance: 42 things/s'\n")
    (folder / "models.json").write_text(json.dumps([CARD]))
