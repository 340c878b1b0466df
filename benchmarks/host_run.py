"""What a run on the host engine costs beyond the script itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Result, command, interleaved, program, require
from benchmarks.package import SCRIPT, write_package

BEYOND = 0.150  # seconds


def measure(folder: Path) -> Iterator[Result]:
    """A run of a package that has been run before, against ``bash`` with the same script."""
    write_package(folder)
    script = command(["bash", SCRIPT], cwd=folder)
    run = command([program(), "run", "--tags", "trivial", "--engine", "host"], cwd=folder)
    bare, ran = interleaved(script, run)
    rows = (folder / "perf.csv").read_text().splitlines()[1:]
    require(len(rows) == 10 and all("SUCCESS" in row for row in rows), "runs that measured and were recorded")
    yield Result(
        "second run of a package on the host engine", "the script itself", ran, bare, "s", bare + BEYOND, "+ <= 150 ms"
    )
