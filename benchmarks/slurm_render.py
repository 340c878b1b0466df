"""Rendering job scripts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks.measure import Result, interleaved, require
from madengine.catalog.card import ModelCard
from madengine.config.manifest import ImageRecord
from madengine.deployment.slurm.options import slurm_options
from madengine.deployment.slurm.script import render
from madengine.execution.spec import GpuGrant, Place, RunSpec, ScriptPlan

SCRIPTS = 1_000
MOST = 2.0  # seconds


def measure(folder: Path) -> Iterator[Result]:
    """Both scripts of 1,000 runs with their options merged anew, as a command with 1,000 models does."""
    card = ModelCard({"name": "m", "scripts": "scripts/m/run.sh"})
    deployment = {"slurm": {"partition": "gpu", "nodes": 16, "modules": ["rocm/6.3"]}}
    bare = RunSpec(
        "run",
        "k",
        card,
        ImageRecord({"docker_image": "i"}),
        folder,
        folder / "run",
        "",
        ScriptPlan(folder, "run.sh"),
        GpuGrant(),
        environment={"NPROC_PER_NODE": "8", "MASTER_PORT": "29500"},
        place=Place("slurm", 16, elsewhere=True),
    )

    def rendered() -> None:
        for number in range(SCRIPTS):
            spec = replace(bare, run_id=f"run-{number}", run_dir=folder / f"run-{number}")
            made = render(spec, slurm_options(card, deployment, environ={}), madengine="/opt/madengine")
            require(f"run_id=run-{number}\n" in made.files["job.sh"], "the script is that of its run")

    (seconds,) = interleaved(rendered)
    yield Result("render 1,000 job scripts", "-", seconds, seconds, "s", MOST, "2 s")
