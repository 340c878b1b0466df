"""A user's folder beside a real cluster: a package, a manifest, and the command line as a process of its own."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.services.cluster import Cluster

COMMAND = [str(Path(sys.executable).with_name("madengine"))]
PATIENCE = 150.0  # seconds for anything that a cluster does
FAR_FROM_FAULTS = "node[9-16]"  # where nodes are made to fail: other runs keep away


@dataclass(frozen=True)
class Seen:
    """What a command came to: exit code, the document of --summary-output, everything it said, the rows of perf.csv."""

    code: int
    said: str
    document: dict[str, Any]
    rows: list[dict[str, str]]

    @property
    def outcomes(self) -> list[str]:
        """The outcomes of its runs."""
        return [run["outcome"] for run in self.document.get("runs", [])]

    @property
    def numbers(self) -> list[tuple[str, str]]:
        """Status and performance of each row."""
        return [(row["status"], row["performance"]) for row in self.rows]


@dataclass
class Desk:
    """The folder of one user. ``environment`` is added to the commands' own."""

    folder: Path
    cluster: Cluster
    environment: dict[str, str] = field(default_factory=dict)
    command: list[str] = field(default_factory=lambda: list(COMMAND))

    @property
    def package(self) -> Path:
        """The model package."""
        return self.folder / "package"

    @property
    def run_dirs(self) -> list[Path]:
        """The run directories, oldest first."""
        found = (path.parent for path in (self.folder / "slurm_results").glob("*/job.json"))
        return sorted(found, key=lambda path: path.name)

    def furnish(self, script: str, *, slurm: dict[str, Any], card: dict[str, Any], **blocks: Any) -> None:
        """Make a package of one model and its manifest ``m.json``."""
        model = {"name": "m", "scripts": "scripts/m/run.sh", "n_gpus": "0", **card}
        path = self.package / str(model["scripts"])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(script)
        self.write_manifest("m.json", [model], slurm=slurm, **blocks)

    def write_manifest(self, name: str, models: list[dict[str, Any]], *, slurm: dict[str, Any], **blocks: Any) -> None:
        """Write a manifest of these models."""
        deployment = {"target": "slurm", "slurm": {"time": "5", "exclusive": False, **slurm}, **blocks}
        document = {
            "built_images": {f"k{number}": {"docker_image": ""} for number, _ in enumerate(models)},
            "built_models": {f"k{number}": model for number, model in enumerate(models)},
            "context": {},
            "deployment_config": deployment,
        }
        (self.folder / name).write_text(json.dumps(document))

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Begin a command."""
        environment = {**self.cluster.environment, "NO_COLOR": "1", **self.environment}
        return subprocess.Popen(
            [*self.command, *words],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def start_run(self, *words: str, manifest: str = "m.json", summary: str = "summary.json") -> subprocess.Popen[str]:
        """Begin ``madengine run``."""
        return self.start(
            "run", "-m", manifest, "--model-dir", str(self.package), "--engine", "host", "-s", summary, *words
        )

    def ended(self, process: subprocess.Popen[str], summary: str = "summary.json") -> Seen:
        """Wait for a command and read what it left."""
        try:
            said, _ = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            said = process.communicate()[0] + "\n[the test lost its patience]"
        return Seen(process.returncode, said, self._document(summary), self.rows())

    def told(self, *words: str) -> Seen:
        """Give a command and wait for it."""
        return self.ended(self.start(*words), "")

    def rows(self) -> list[dict[str, str]]:
        """The rows of perf.csv."""
        path = self.folder / "perf.csv"
        if not path.exists():
            return []
        with path.open(newline="") as file:
            return list(csv.DictReader(file))

    def run_dir(self) -> Path:
        """The one run directory, once it is there."""
        return self.wait(lambda: next(iter(self.run_dirs), None))

    def job_id(self) -> str:
        """The job of the one run, once Slurm has one."""
        return str(json.loads(self.file("submitted.json").read_text())["job_id"])

    def file(self, name: str) -> Path:
        """A file of the run directory, once it is there."""
        path = self.run_dir() / name
        return self.wait(lambda: path if path.exists() else None)

    def wait(self, look: Callable[[], Any]) -> Any:
        """What ``look`` finds, as soon as that is anything."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            found = look()
            if found:
                return found
            time.sleep(0.05)
        raise AssertionError("what was waited for did not come")

    def _document(self, name: str) -> dict[str, Any]:
        path = self.folder / name
        return json.loads(path.read_text()) if name and path.is_file() else {}


def running_nodes(desk: Desk, ranks: Iterator[int] | range) -> None:
    """Wait until the scripts of these ranks have begun."""
    for rank in ranks:
        desk.file(f"node_{rank}/logs/run.log")


def wrapper(desk: Desk, name: str, text: str) -> None:
    """Put a program before the real ones on the PATH of the user's commands."""
    folder = desk.folder / "bin"
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    desk.environment["PATH"] = f"{folder}:{os.environ['PATH']}"
