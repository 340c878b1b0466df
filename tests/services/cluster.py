"""A real Slurm cluster, started by ``slurm_cluster.sh``, as tests see it."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

SCRIPT = Path(__file__).with_name("slurm_cluster.sh")


@dataclass(frozen=True)
class Cluster:
    """A cluster that answers. ``folder`` is its state, empty for the one that everybody shares."""

    variables: dict[str, str]
    folder: str = ""

    @property
    def environment(self) -> dict[str, str]:
        """An environment whose Slurm commands lead to it."""
        return {**os.environ, **self.variables}

    def fault(self, *words: str) -> None:
        """Do something to it, see the head of the script."""
        argv = [str(SCRIPT), *words, *([self.folder] if self.folder else [])]
        done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=120, env=self.environment)
        assert done.returncode == 0, done.stderr

    def ask(self, *argv: str) -> str:
        """What one of Slurm's commands prints."""
        done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=60, env=self.environment)
        return done.stdout


def running(folder: str = "") -> Cluster | None:
    """The cluster that answers, if one does."""
    return _cluster("env", folder, {})


def started(folder: str, **settings: str) -> Cluster:
    """A cluster that was started now."""
    found = _cluster("start", folder, settings)
    assert found is not None
    return found


def stop(folder: str = "") -> None:
    """End a cluster and all that it keeps."""
    subprocess.run([str(SCRIPT), "stop", folder], check=False, capture_output=True, timeout=120)


def _cluster(task: str, folder: str, settings: dict[str, str]) -> Cluster | None:
    environment = {**os.environ, **settings}
    done = subprocess.run(
        [str(SCRIPT), task, folder], check=False, capture_output=True, text=True, timeout=300, env=environment
    )
    found = dict(re.findall(r"^export (SLURM_\w+)=(.*)$", done.stdout, re.M))
    assert task != "start" or done.returncode == 0, done.stderr
    return Cluster(found, folder) if found else None
