"""How long the command line takes before it does anything."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Result, command, interleaved, program


def measure(folder: Path) -> Iterator[Result]:
    """``--version`` and ``--help`` against an interpreter that does nothing."""
    bare, version, help_ = interleaved(
        command([sys.executable, "-c", "pass"], cwd=folder),
        command([program(), "--version"], cwd=folder),
        command([program(), "--help"], cwd=folder),
        repetitions=21,
    )
    yield Result("madengine --version", "python -c pass", version, bare, "s", 3 * bare, "<= 3x")
    yield Result("madengine --help", "python -c pass", help_, bare, "s", 8 * bare, "<= 8x")
