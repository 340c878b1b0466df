"""Runs on a real Slurm: what madengine adds to a job, and many markers at once.

Uses the cluster that ``SLURM_CONF`` leads to, else starts the one of the tests (``tests/services/slurm_cluster.sh``).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.measure import Outcome, Result, Skipped, command, interleaved, program, require

SERVICE = Path(__file__).parent.parent / "tests" / "services" / "slurm_cluster.sh"
PORTBASE = "19000"
SECONDS = 8  # of the script; a job of a real model takes hours
REPETITIONS = 7
LOOK = 0.05
NODES, RUNS = 64, 20
LATEST = 5.0  # seconds between the end of a step and the verdict


def measure(folder: Path) -> Iterator[Outcome]:
    """A two-node job against the bare ``sbatch`` of a script that takes as long, and 20 runs on 64 nodes."""
    if os.geteuid() != 0 or shutil.which("slurmctld") is None:
        yield Skipped("runs on Slurm", "no Slurm here that could be started; see tests/services/slurm_cluster.sh")
        return
    with _cluster(folder / "cluster") as variables:
        yield _two_nodes(folder / "two", variables)
        yield from _many_nodes(folder / "many", variables)


@contextmanager
def _cluster(folder: Path) -> Iterator[Mapping[str, str]]:
    settings = {**os.environ, "NODES": str(NODES), "PORTBASE": PORTBASE}
    argv = [str(SERVICE), "start", str(folder)]
    done = subprocess.run(argv, check=True, capture_output=True, text=True, env=settings)
    try:
        yield dict(re.findall(r"^export (SLURM_\w+)=(.*)$", done.stdout, re.M))
    finally:
        subprocess.run([str(SERVICE), "stop", str(folder)], check=False, capture_output=True)


def _two_nodes(folder: Path, variables: Mapping[str, str]) -> Result:
    _package(folder, f"sleep {SECONDS}\necho performance: 1 x\n", nodes=2, models=1)
    bare = folder / "bare.sh"
    script = folder / "package" / "scripts" / "m" / "run.sh"
    bare.write_text(f"#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=1 --output=/dev/null\nsrun bash {script}\n")

    def submitted() -> None:
        job = command(["sbatch", "--parsable", bare], cwd=folder, env=variables)().decode().strip()
        asked = command(["squeue", "-h", "-t", "all", "-j", job, "-o", "%T"], env=variables)
        while asked().decode().strip() != "COMPLETED":
            time.sleep(LOOK)

    argv = [program(), "run", "-m", "m.json", "--model-dir", "package", "--engine", "host", "--skip-preflight"]
    sbatch, ran = interleaved(submitted, command(argv, cwd=folder, env=variables), repetitions=REPETITIONS)
    require(len((folder / "perf.csv").read_text().splitlines()) == REPETITIONS + 2, "each run has its row")
    name = f"submit to verdict, 2 nodes, {SECONDS} s"
    return Result(name, "bare sbatch, polled every 50 ms", ran, sbatch, "s", sbatch * 1.2, "1.2x")


def _many_nodes(folder: Path, variables: Mapping[str, str]) -> Iterator[Result]:
    _package(folder, "echo performance: 1 x\n", nodes=NODES, models=RUNS)
    argv = [program(), "run", "-m", "m.json", "--model-dir", "package", "--engine", "host", "--skip-preflight"]
    command([*argv, "--max-jobs", "2", "-s", "summary.json"], cwd=folder, env=variables)()
    runs = json.loads((folder / "summary.json").read_text())["runs"]
    markers = sum(len(run["nodes"]) for run in runs if all(node["exit_code"] == 0 for node in run["nodes"]))
    yield Result("64 nodes x 20 runs: markers", "-", markers, NODES * RUNS, "", NODES * RUNS, "all", at_least=True)
    late = max(_lateness(run, variables) for run in runs)
    yield Result("64 nodes x 20 runs: from the end of a step to the row", "-", late, late, "s", LATEST, "5 s")


def _lateness(run: Mapping[str, Any], variables: Mapping[str, str]) -> float:
    """Seconds between the end of the step, in whole seconds as Slurm tells it, and the record of the run."""
    asked = command(["sacct", "-n", "-P", "-j", f"{run['job']}.0", "-o", "end"], env=variables)
    ended = time.mktime(time.strptime(asked().decode().split()[0], "%Y-%m-%dT%H:%M:%S"))
    return (Path(run["run_directory"]) / "recorded.json").stat().st_mtime - ended


def _package(folder: Path, script: str, *, nodes: int, models: int) -> None:
    path = folder / "package" / "scripts" / "m" / "run.sh"
    path.parent.mkdir(parents=True)
    path.write_text(script)
    card: dict[str, Any] = {"name": "m", "scripts": "scripts/m/run.sh", "n_gpus": "0"}
    document = {
        "built_images": {f"k{number}": {"docker_image": ""} for number in range(models)},
        "built_models": {f"k{number}": {**card, "name": f"m{number}"} for number in range(models)},
        "context": {},
        "deployment_config": {
            "target": "slurm",
            "slurm": {"nodes": nodes, "exclusive": False, "time": "30", "mem": "100"},
        },
    }
    (folder / "m.json").write_text(json.dumps(document))
