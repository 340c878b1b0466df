"""The last words of a command that ran or collected: the report, what could not be written, and the exit code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from madengine.cli import views
from madengine.cli.constants import ExitCode
from madengine.cli.outputs import write_document
from madengine.cli.run_view import report_document, show_report
from madengine.core.errors import MADEngineError
from madengine.orchestration.report import RunReport


def tell(
    report: RunReport,
    perf_csv: Path,
    exit_code: int,
    *,
    remarks: Sequence[str],
    problems: Sequence[str],
    summary_output: Path | None = None,
    as_json: bool,
    verbose: bool,
) -> int:
    """Show what is on record; returns the exit code, which is not 0 when a result could not be written."""
    if problems and exit_code == ExitCode.SUCCESS:
        exit_code = ExitCode.FAILURE
    document = report_document(report, perf_csv, exit_code)

    def show() -> None:
        if as_json:
            views.print_json(document)
        else:
            show_report(report, perf_csv, verbose=verbose)

    shown = views.show_done(exit_code, show)
    for remark in remarks:
        views.warn(remark)
    for problem in dict.fromkeys(problems):
        views.fail(problem)
    if summary_output and (problem := _unwritten(summary_output, document)):
        views.fail(problem)
        return shown or ExitCode.FAILURE
    return shown


def _unwritten(path: Path, document: Mapping[str, Any]) -> str:
    """Write the summary; what kept it from being written, since the runs have their own exit code by now."""
    try:
        write_document(path, document)
    except MADEngineError as error:
        return str(error)
    return ""
