"""What a run in a container costs beyond the bare ``docker run`` of the same script.

The engine is the one that ``docker`` on the path leads to (DOCKER_HOST, contexts). The image needs bash;
MADENGINE_BENCH_IMAGE names another one than that of the tests.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Outcome, Result, Skipped, command, interleaved, program, require
from benchmarks.package import SCRIPT, write_package

NAME = "run of a trivial script in a container"
IMAGE = os.environ.get("MADENGINE_BENCH_IMAGE", "local/debian-py:1")
BEYOND = 0.150  # seconds


def measure(folder: Path) -> Iterator[Outcome]:
    """A run in an image that is there, against ``docker run --rm`` of it with the package mounted."""
    missing = _missing()
    if missing:
        yield Skipped(NAME, missing)
        return
    write_package(folder)
    words = ["docker", "run", "--rm", "--volume", f"{folder}:/package", "--workdir", "/package", IMAGE, "bash", SCRIPT]
    words_of_ours = ["run", "--tags", "trivial", "--engine", "docker", "--use-image", IMAGE]
    bare, ran = interleaved(command(words), command([program(), *words_of_ours], cwd=folder))
    rows = (folder / "perf.csv").read_text().splitlines()[1:]
    require(len(rows) == 10 and all("SUCCESS" in row for row in rows), "runs that measured and were recorded")
    yield Result(NAME, "the bare docker run", ran, bare, "s", 2 * bare + BEYOND, "<= 2x + 150 ms")


def _missing() -> str:
    """Why this machine cannot run the benchmark, empty when it can."""
    words = ["docker", "image", "inspect", IMAGE]
    try:
        asked = subprocess.run(words, capture_output=True, check=False, text=True, timeout=30)
    except FileNotFoundError:
        return "there is no docker on the path"
    except subprocess.TimeoutExpired:
        return "docker does not answer"
    said = asked.stderr.strip().splitlines()
    return "" if asked.returncode == 0 else (said or ["docker image inspect failed"])[-1]
