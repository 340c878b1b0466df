"""Measuring: medians of interleaved repetitions, and one result as a line and as JSON."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

REPETITIONS = 9  # at least 7, odd so that the median is a measured value


@dataclass(frozen=True)
class Result:
    """One line of the report.

    ``measured`` and ``baseline`` are medians in ``unit``; ``limit`` is the largest ``measured`` that still meets
    the target (for throughputs, ``at_least`` turns that around). ``target`` says the limit in words.
    """

    name: str
    against: str
    measured: float
    baseline: float
    unit: str
    limit: float
    target: str
    at_least: bool = False

    @property
    def ratio(self) -> float:
        """Measured over baseline."""
        return self.measured / self.baseline if self.baseline else float("inf")

    @property
    def met(self) -> bool:
        """Whether the target was met."""
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit

    def to_json(self) -> dict[str, object]:
        """All fields with the derived ones."""
        return {**asdict(self), "ratio": self.ratio, "met": self.met}

    def line(self) -> str:
        """The result for a person."""
        return (
            f"{'met   ' if self.met else 'MISSED'}  {self.name}: {self.measured:.4g} {self.unit} against "
            f"{self.baseline:.4g} {self.unit} ({self.against}), ratio {self.ratio:.2f}, target {self.target}"
        )


def interleaved(*jobs: Callable[[], object], repetitions: int = REPETITIONS) -> list[float]:
    """Median seconds of each job. The jobs take turns, so that a slow moment of the machine hits all of them."""
    times: list[list[float]] = [[] for _ in jobs]
    for job in jobs:
        job()
    for _ in range(repetitions):
        for job, seen in zip(jobs, times, strict=True):
            start = time.perf_counter()
            job()
            seen.append(time.perf_counter() - start)
    return [statistics.median(seen) for seen in times]


def command(
    argv: Sequence[str | Path], *, cwd: Path | None = None, env: dict[str, str] | None = None, ok: Sequence[int] = (0,)
) -> Callable[[], object]:
    """A job that runs a command to its end; an exit code outside ``ok`` ends the benchmark."""

    def job() -> None:
        done = subprocess.run(argv, cwd=cwd, env=env, capture_output=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode not in ok:
            raise RuntimeError(f"{argv} exited {done.returncode}: {done.stderr.decode(errors='replace')[-500:]}")

    return job


def program() -> str:
    """The installed ``madengine`` beside this interpreter."""
    return str(Path(sys.executable).with_name("madengine"))
