"""``madengine validate``: every problem of the files people write, with its line."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from madengine.cli import views
from madengine.cli.constants import ExitCode

if TYPE_CHECKING:
    from madengine.cli.validate_files import FileReport
    from madengine.schemas.problems import Problem


_WIDTH = 1000  # characters of one text that are shown; a pointer holds keys of any length


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--strict", is_flag=True, help="Warnings count as errors.")
@click.option("--json", "as_json", is_flag=True, help='Print {"files": [{"file", "kind", "problems": [...]}]}.')
def validate(files: Sequence[str], strict: bool, as_json: bool) -> int:
    """Check the files that people write: build and batch manifests, model cards, additional context, env files,
    data.json, tools.json, credential.json, results CSVs; and those that madengine writes: perf.csv, perf_entry.json,
    perf_super.json, run.json, evidence.json.

    What a file is, its content says. All problems are listed; exit code 4 when there is an error.
    """
    from madengine.cli.validate_files import check_file

    reports = [check_file(file, os.environ) for file in files]
    if as_json:
        views.print_json({"files": [report.to_dict() for report in reports]})
    else:
        for report in reports:
            _show(report)
        click.echo(_summary(reports))
    _tell_github(reports, to_stderr=as_json)
    failed = any(report.count("error") or (strict and report.problems) for report in reports)
    return ExitCode.INVALID_ARGS if failed else ExitCode.SUCCESS


def _show(report: FileReport) -> None:
    from madengine.cli.validate_kinds import NAMES
    from madengine.core.documents import printable

    name = printable(report.file, _WIDTH)
    if not report.problems:
        click.echo(f"{name}: {NAMES[report.kind]}, no problems")
    told: set[str] = set()  # a template has dozens of values to fill in; the same advice is given once
    for problem in report.problems:
        click.echo(_line(name, problem))
        if problem.pointer:
            click.echo(f"    at {printable(problem.pointer, _WIDTH)}")
        if problem.hint and problem.hint not in told:
            click.echo(f"    {printable(problem.hint, _WIDTH)}")
            told.add(problem.hint)


def _line(name: str, problem: Problem) -> str:
    from madengine.core.documents import printable

    severity: str = problem.severity
    if views.wants_colour(sys.stdout):
        severity = f"\x1b[{31 if problem.is_error else 33}m{severity}\x1b[0m"
    place = f"{name}:{problem.line}" if problem.line else name
    return f"{place}: {severity}: {printable(problem.message, _WIDTH)} [{problem.code}]"


def _summary(reports: Sequence[FileReport]) -> str:
    errors = sum(report.count("error") for report in reports)
    warnings = sum(report.count("warning") for report in reports)
    return f"{_many(len(reports), 'file')}: {_many(errors, 'error')}, {_many(warnings, 'warning')}"


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _tell_github(reports: Sequence[FileReport], *, to_stderr: bool) -> None:
    """Annotations, which show a problem beside its line, and one row for each file in the step's summary."""
    from madengine.cli import github
    from madengine.cli.validate_kinds import NAMES

    for report in reports if os.environ.get(github.ACTIONS) else ():
        for problem in report.problems:
            text = f"{problem.message} ({problem.pointer})" if problem.pointer else problem.message
            line = github.command(problem.severity, text, file=report.file, line=problem.line or 1, title=problem.code)
            click.echo(line, err=to_stderr)
    rows = ([r.file, NAMES[r.kind], str(r.count("error")), str(r.count("warning"))] for r in reports)
    github.append_summary("madengine validate", ["file", "kind", "errors", "warnings"], rows, os.environ)
