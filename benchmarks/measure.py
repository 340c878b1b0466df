"""Measuring: medians of interleaved repetitions, and one result as a line and as JSON."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
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


@dataclass(frozen=True)
class Skipped:
    """A benchmark that this machine cannot run, and why. It counts neither as met nor as missed."""

    name: str
    reason: str

    def to_json(self) -> dict[str, object]:
        """The name with the reason."""
        return {"name": self.name, "skipped": self.reason}

    def line(self) -> str:
        """The gap for a person."""
        return f"SKIPPED {self.name}: {self.reason}"


Outcome = Result | Skipped


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
    argv: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    ok: Sequence[int] = (0,),
) -> Callable[[], bytes]:
    """A job that runs a command to its end and returns its output; an exit code outside ``ok`` ends the benchmark.

    ``env`` is added to the environment. Python programs find their modules compiled, as an installed program does:
    the first, uncounted repetition compiles what is not, which PYTHONDONTWRITEBYTECODE would forbid.
    """
    environment = {**os.environ, **(env or {})}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def job() -> bytes:
        done = subprocess.run(
            argv, cwd=cwd, env=environment, capture_output=True, check=False, stdin=subprocess.DEVNULL
        )
        if done.returncode not in ok:
            raise RuntimeError(f"{argv} exited {done.returncode}: {done.stderr.decode(errors='replace')[-500:]}")
        return done.stdout

    return job


def program() -> str:
    """The installed ``madengine`` beside this interpreter."""
    return str(Path(sys.executable).with_name("madengine"))


def require(condition: bool, what: str) -> None:
    """End the benchmark when what it measures is not what it should measure."""
    if not condition:
        raise RuntimeError(f"the benchmark does not measure what it should: {what}")
