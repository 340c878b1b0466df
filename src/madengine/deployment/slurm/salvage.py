"""What a node measured that did not live to report it: read from its log and its workspace.

A node whose madengine was killed leaves no evidence, but the model's output was written as it came. Nothing of another
run can be found this way: the folder is this run's, and of results files only those count that were not there before
the model began.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from madengine.core.documents import load_json
from madengine.core.errors import MADEngineError
from madengine.deployment.order import BEFORE, JobOrder
from madengine.execution.spec import LogScanRules
from madengine.reporting.freshness import Snapshot, is_bare_name
from madengine.reporting.log_scan import scan_log
from madengine.reporting.results import read_results
from madengine.verdict.evidence import Evidence

LOG = "logs/run.log"


def salvaged(folder: Path, order: JobOrder, rank: int) -> tuple[Evidence | None, tuple[str, ...]]:
    """The evidence that a node's folder still holds, None when the model left no log, and notes about it."""
    log = folder / LOG
    if not log.is_file():
        return None, ()
    reading = scan_log(log, rules=LogScanRules(), rank=rank)
    results, notes = _results(folder, order, rank)
    stated = (reading.measurement,) if reading.measurement is not None else ()
    evidence = Evidence(
        order.run_id,
        measurements=results.measurements or stated,
        empty_rows=results.empty_rows,
        log_findings=reading.findings,
    )
    if evidence.measurements:
        notes = (*notes, f"salvaged from {evidence.measurements[0].source}: its madengine did not live to report it")
    return evidence, notes


def _results(folder: Path, order: JobOrder, rank: int) -> tuple[Any, tuple[str, ...]]:
    """The declared results file, when it was made by this run."""
    from madengine.reporting.results import ResultsReading

    before = _before(folder, order)
    if not order.results_file or not is_bare_name(order.results_file) or before is None:
        return ResultsReading(), ()
    workspace = folder / "workspace"
    found = [path for path in _places(workspace, order.results_file) if path.is_file()]
    old = [path for path in found if str(path.relative_to(workspace)) in before]
    notes = tuple(f"{path} was there before the run, so that what is new in it cannot be told" for path in old)
    fresh = [path.parent for path in found if path not in old]
    if not fresh:
        return ResultsReading(), notes
    return read_results(order.results_file, fresh, Snapshot(0.0), card_name=order.model, rank=rank), notes


def _before(folder: Path, order: JobOrder) -> dict[str, Any] | None:
    """What lay there when the model began, by path in the workspace; None when nobody wrote it down."""
    try:
        document = load_json(folder / BEFORE, what="note of what was there before")
    except MADEngineError:
        return None
    if not isinstance(document, dict) or document.get("run_id") != order.run_id:
        return None
    files = document.get("files")
    return files if isinstance(files, dict) else None


def _places(workspace: Path, name: str) -> Iterator[Path]:
    yield workspace / name
    try:
        folders = sorted(entry for entry in workspace.iterdir() if entry.is_dir() and not entry.is_symlink())
    except OSError:
        return
    yield from (folder / name for folder in folders)
