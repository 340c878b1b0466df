"""What a reader needs to know of runs on other machines: which log matters, where everything lies, what goes on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from madengine.cli import views
from madengine.orchestration.report import FinishedRun, LeftRun

LEFT_HEADERS = ("model", "run", "job", "state")
LEFT_STYLES = ("bold", "", "", "")
NODE_LOGS = ("logs/run.log", "stderr", "stdout", "image.log")
JOB_LOG = Path("logs", "job.out")
PARTS = (("job.sh", "the job script"), (str(JOB_LOG), "what it printed"), ("run.json", "the record of the run"))


def log_of(run: FinishedRun) -> Path | None:
    """The log to open first, None when there is none.

    On other machines it is the one of the rank that measured, else of the first that failed and left any (a rank's
    own output, else what madengine said there), else what the job itself printed.
    """
    if run.spec.place.elsewhere:
        return next((path for path in _node_logs(run) if _says_something(path)), None)
    return run.spec.log if run.spec.log.exists() else None


def _node_logs(run: FinishedRun) -> Iterator[Path]:
    for rank in _telling_ranks(run):
        yield from (run.spec.run_dir / f"node_{rank}" / name for name in NODE_LOGS)
    yield run.spec.run_dir / JOB_LOG


def _telling_ranks(run: FinishedRun) -> list[int]:
    measured = sorted({measurement.rank for measurement in run.evidence.measurements})
    if measured:
        return measured[:1]
    return sorted(node.rank for node in run.evidence.nodes if not node.clean) or [0]


def _says_something(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def places(runs: Sequence[FinishedRun]) -> Iterator[str]:
    """What lies where in the directories of runs on other machines; nothing when there are none."""
    there = [run.spec.run_dir for run in runs if run.spec.place.elsewhere]
    parts = [f"{name} ({what})" for name, what in PARTS if any((folder / name).exists() for folder in there)]
    if any((folder / "node_0").exists() for folder in there):
        parts.append("node_<rank>/ (each node's logs, results and record)")
    if parts:
        yield f"in {'each' if len(there) > 1 else 'it'}: {', '.join(parts)}"


def show_left(left: Sequence[LeftRun]) -> None:
    """The runs that go on, as a table on standard output."""
    rows = [[run.spec.card.name, run.spec.run_id, run.progress.job or "-", run.progress.state or "-"] for run in left]
    views.table(LEFT_HEADERS, rows, styles=LEFT_STYLES, whole=True)


def left_steps(left: Sequence[LeftRun]) -> Iterator[str]:
    """How to go on with them."""
    if left:
        one = len(left) == 1
        yield (
            f"{len(left)} run{'' if one else 's'} not waited for: `madengine collect` waits for "
            f"{'it' if one else 'them'} and writes the rows, `madengine cancel RUN...` ends "
            f"{'it' if one else 'them'}"
        )


def left_document(run: LeftRun) -> dict[str, Any]:
    """A run that goes on, for machines."""
    return {
        "model": run.spec.card.name,
        "run_id": run.spec.run_id,
        "run_directory": str(run.spec.run_dir),
        "job": run.progress.job,
    }


def finished_document(run: FinishedRun) -> dict[str, Any]:
    """What is added to the summary of a finished run on other machines."""
    log = log_of(run)
    nodes = [{"rank": node.rank, "host": node.host, "exit_code": node.exit_code} for node in run.evidence.nodes]
    return {"log": str(log) if log else "", "job": run.job, "nodes": nodes}
