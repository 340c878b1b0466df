"""The end of a run as a person reads it: one table, then what is worth a warning, then what to do next."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from madengine.cli import elsewhere_view, github, views
from madengine.orchestration.report import FinishedRun, RunReport
from madengine.reporting.run_record import FILE_NAME as RUN_FILE
from madengine.verdict.evidence import Outcome

HEADERS = ("model", "status", "performance", "metric", "duration", "log")
STYLES = ("bold", "", "green", "", "", "dim")
MAX_ROWS_PER_RUN = 20  # a results CSV may hold hundreds; perf.csv has them all
MAX_REMARKS_PER_RUN = 20


def show_report(report: RunReport, perf_csv: Path, *, verbose: bool) -> None:
    """Print the summary: the table on standard output, everything said about it on standard error."""
    if report.runs or not report.left:
        views.table(HEADERS, table_rows(report), styles=STYLES, whole=True)
    if report.left:
        elsewhere_view.show_left(report.left)
    for run in report.runs:
        _tell(run, verbose)
    for line in next_steps(report, perf_csv):
        views.say(line)


def tell_github(report: RunReport, environ: Mapping[str, str]) -> None:
    """An annotation for each run that failed and each warning of an incomplete one, and the table in the summary."""
    github.annotate((each for run in report.runs for each in _annotations(run)), environ)
    github.append_summary("madengine run", HEADERS, table_rows(report), environ)


def _annotations(run: FinishedRun) -> Iterator[github.Annotation]:
    name, verdict = run.spec.card.name, run.verdict
    title = f"{verdict.outcome.value} {name}"
    if verdict.outcome in (Outcome.FAILURE, Outcome.NO_METRIC):
        yield "error", title, verdict.reason
    elif verdict.outcome is Outcome.INCOMPLETE:
        yield from (("warning", title, warning) for warning in _first(verdict.warnings, run))


def table_rows(report: RunReport) -> list[list[str]]:
    """The summary's cells, under ``HEADERS``."""
    return [row for run in report.runs for row in _table_rows(run)]


def _table_rows(run: FinishedRun) -> Iterator[list[str]]:
    found = elsewhere_view.log_of(run)
    log = shown_path(found) if found else "-"
    outcome = run.verdict.outcome.value
    shown = run.rows[:MAX_ROWS_PER_RUN]
    for row in shown:
        status = outcome if row["status"] == "SUCCESS" else row["status"]
        yield [row["model"], status, row["performance"] or "-", row["metric"] or "-", seconds(run.duration), log]
    if len(run.rows) > len(shown):
        yield [f"... and {len(run.rows) - len(shown)} more rows in perf.csv", "", "", "", "", ""]


def _tell(run: FinishedRun, verbose: bool) -> None:
    """What one run's reader must know beside the table."""
    name, verdict = run.spec.card.name, run.verdict
    if verdict.outcome in (Outcome.FAILURE, Outcome.NO_METRIC, Outcome.SKIPPED):
        views.verdict(verdict.outcome.value, f"{name}: {verdict.reason}")
    for warning in _first(verdict.warnings, run):
        views.warn(f"{name}: {warning}")
    for line in _first(verdict.explanation, run):
        if line not in verdict.reason:  # a single problem's own sentence has just been said
            views.say(f"  {line}")
    if verbose or verdict.outcome is not Outcome.SUCCESS:
        for note in _first(verdict.notes, run):
            views.say(f"note: {name}: {note}")


def _first(remarks: Sequence[str], run: FinishedRun) -> Iterator[str]:
    """As many as a person reads: there may be one for each row of a results file."""
    yield from remarks[:MAX_REMARKS_PER_RUN]
    if len(remarks) > MAX_REMARKS_PER_RUN:
        yield f"... and {len(remarks) - MAX_REMARKS_PER_RUN} more in {shown_path(run.spec.run_dir / RUN_FILE)}"


def next_steps(report: RunReport, perf_csv: Path) -> Iterator[str]:
    """Where everything is, and what a reader of this outcome does next."""
    if report.not_started:
        yield f"interrupted: not started: {', '.join(report.not_started)}"
    yield from elsewhere_view.left_steps(report.left)
    if not report.runs:
        return
    count = sum(len(run.rows) for run in report.runs if run.saved)
    before = [run.spec.run_id for run in report.runs if run.before]
    if before:
        yield f"recorded before, so that nothing was added for: {', '.join(before)}"
    if count or not before:
        yield f"{count} row{'s' if count != 1 else ''} appended to {shown_path(perf_csv)}"
    failed = [run for run in report.runs if run.verdict.outcome in (Outcome.FAILURE, Outcome.NO_METRIC)]
    for run in failed:
        yield f"  {run.spec.card.name}: everything about this run is in {shown_path(run.spec.run_dir)}"
    if not failed or report.runs[0].spec.place.elsewhere:
        yield f"run directories: {shown_path(report.runs[0].spec.run_dir.parent)}"
    yield from elsewhere_view.places(report.runs)
    alive = [run.spec for run in report.runs if run.spec.keep_alive and run.evidence.nodes]
    if alive and alive[0].engine != "host":
        listing = f"{alive[0].engine or 'docker'} ps --filter label=madengine.run"
        where = " on their nodes" if alive[0].place.elsewhere else ""
        yield f"--keep-alive: containers were left running{where}; `{listing}` lists them"


def report_document(report: RunReport, perf_csv: Path, exit_code: int) -> dict[str, object]:
    """The summary for machines (``--json``); keys are only ever added."""
    left = [elsewhere_view.left_document(run) for run in report.left]
    return {
        "exit_code": exit_code,
        "interrupted": report.interrupted,
        "not_started": list(report.not_started),
        "perf_csv": str(perf_csv),
        "runs": [_run_document(run) for run in report.runs],
        **({"left": left} if left else {}),
    }


def _run_document(run: FinishedRun) -> dict[str, object]:
    verdict = run.verdict
    return {
        "model": run.spec.card.name,
        "run_id": run.spec.run_id,
        "run_directory": str(run.spec.run_dir),
        "log": str(run.spec.log),
        "outcome": verdict.outcome.value,
        "reason": verdict.reason,
        "warnings": list(verdict.warnings),
        "notes": list(verdict.notes),
        "explanation": list(verdict.explanation),
        "duration": round(run.duration, 3),
        "rows": [dict(row) for row in run.rows],
        **(elsewhere_view.finished_document(run) if run.spec.place.elsewhere else {}),
    }


def shown_path(path: Path) -> str:
    """A path as short as it can be typed from here."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def seconds(duration: float) -> str:
    """A duration as people read it: ``1.2 s``, ``3 min 05 s``, ``2 h 07 min``."""
    if duration < 60:
        return f"{duration:.1f} s"
    minutes, rest = divmod(round(duration), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"
