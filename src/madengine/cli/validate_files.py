"""Every problem of one file, each with its line: what ``madengine validate`` knows about files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from madengine.cli.validate_kinds import NAMES, Kind, kind_of_columns, kind_of_document, kind_of_text
from madengine.cli.validate_outputs import OUTPUT_CHECKS
from madengine.cli.validate_package import PACKAGE_CHECKS
from madengine.core.documents import BYTE_ORDER_MARK, DocumentError, parse_json, printable, read_text
from madengine.core.json_positions import lines_of
from madengine.schemas.problems import PROBLEM_LIMIT, Problem, Severity
from madengine.schemas.unfilled import each_unfilled_value

_FILL_IN = "fill it in, or remove the key if it is optional"
_READY_IMAGE = "DOCKER_IMAGE_NAME"


@dataclass(frozen=True)
class FileReport:
    """A file, what it was taken for, and what is wrong with it, in the order of its lines."""

    file: str
    kind: Kind
    problems: tuple[Problem, ...]

    def count(self, severity: str) -> int:
        """How many problems are errors (or warnings)."""
        return sum(problem.severity == severity for problem in self.problems)

    def to_dict(self) -> dict[str, Any]:
        """The report as ``--json`` prints it."""
        return {"file": self.file, "kind": self.kind, "problems": [problem.to_dict() for problem in self.problems]}


def check_file(file: str, environment: Mapping[str, str]) -> FileReport:
    """Recognise a file and list its problems. ``environment`` may name the package (``MODEL_DIR``)."""
    if Path(file).suffix.lower() == ".csv":
        return _check_csv(file)
    try:
        whole = read_text(file, what="file", keep_mark=True)
    except DocumentError as error:
        return FileReport(file, kind_of_text("", file), (_unreadable(error),))
    text = whole.removeprefix(BYTE_ORDER_MARK)
    if text.lstrip()[:1] in {"{", "["} or file.endswith(".json"):
        return _check_json(file, text, environment)
    kind = kind_of_text(text, file)
    if kind in {"results_csv", "perf_csv"}:
        return _check_csv(file)
    if kind == "env_file":
        from madengine.cli.validate_env import env_file_problems

        return FileReport(file, kind, _limited(env_file_problems(whole)))
    return FileReport(file, kind, (_unrecognised(text),))


def _unreadable(error: DocumentError) -> Problem:
    return Problem("error", "unreadable", "", error.line, error.message, error.hint)


def _unquoted(error: DocumentError) -> Problem:
    """What is wrong with credentials, without the words of the error: a quotation could be a password."""
    return Problem("error", "unreadable", "", error.line, "the credentials are not usable JSON")


def _unrecognised(text: str) -> Problem:
    if not text.strip():
        return Problem("error", "empty", "", None, "the file is empty")
    hint = (
        "known are build manifests, model cards, additional context, env files, results CSVs, perf.csv and "
        "its JSON kin, batch manifests, data.json, tools.json, credential.json, run.json and evidence.json"
    )
    return Problem("error", "unknown-kind", "", None, "madengine validate does not know this sort of file", hint)


def _limited(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """The first problems, and a word about it when there are more."""
    found = list(islice(problems, PROBLEM_LIMIT + 1))
    if len(found) > PROBLEM_LIMIT:
        severity: Severity = "error" if found[-1].is_error else "warning"
        found[-1] = Problem(severity, "more", "", None, f"there are more than these {PROBLEM_LIMIT} problems")
    return tuple(found)


# JSON


def _check_json(file: str, text: str, environment: Mapping[str, str]) -> FileReport:
    kind = kind_of_text(text, file)
    try:
        document = parse_json(text, source=file, what=NAMES[kind])
    except DocumentError as error:
        return FileReport(file, kind, (_unquoted(error) if kind == "credentials" else _unreadable(error),))
    from madengine.schemas.loader import shared_schema

    kind = kind_of_document(document, file, shared_schema("additional_context")["properties"])
    problems = _DOCUMENT_CHECKS[kind](document, file, environment)
    return FileReport(file, kind, _limited(_with_lines(text, problems)))


def _with_lines(text: str, problems: list[Problem]) -> list[Problem]:
    """The problems in the order of the text; places are looked up only when there are some."""
    if not problems:
        return []
    lines = lines_of(text, [problem.pointer for problem in problems])
    placed = [replace(problem, line=lines[problem.pointer]) for problem in problems]
    return sorted(placed, key=lambda problem: problem.line or 0)


def _manifest(document: Any, file: str, environment: Mapping[str, str]) -> list[Problem]:
    from madengine.schemas.manifest import manifest_problems

    unfilled = _unfilled(document)
    problems = _without(manifest_problems(document), unfilled)
    return problems + unfilled + _remarks(document, file, environment)


def _overlay(document: Any, file: str, environment: Mapping[str, str]) -> list[Problem]:
    """A partial manifest, which people merge into a whole one: it lacks images and models."""
    whole = {"built_images": {}, "built_models": {}, "context": {}, **document}
    doubts = {"slurm-without-block"}
    return [problem for problem in _manifest(whole, file, environment) if problem.code not in doubts]


def _remarks(document: Any, file: str, environment: Mapping[str, str]) -> list[Problem]:
    from madengine.core.redact import secret_values
    from madengine.schemas.lint import lint_manifest
    from madengine.schemas.package_files import is_package, missing_files

    remarks = lint_manifest(document, secret_values(environment))
    named = environment.get("MODEL_DIR")
    folders = [Path(named)] if named else [Path(), Path(file).parent]
    package = next((folder for folder in folders if is_package(folder)), None)
    return remarks + (missing_files(document, package) if package else [])


def _cards(document: Any, file: str, _: Mapping[str, str]) -> list[Problem]:
    from madengine.schemas.cards import each_card_problem, misspelt_in_cards

    unfilled = [_as_card(problem) for problem in _unfilled(document)]
    problems = list(islice(each_card_problem(document), PROBLEM_LIMIT + 1))
    if isinstance(document, list) and len(problems) <= PROBLEM_LIMIT:
        problems += _beyond_the_schema(document, file, problems)
    return _without(problems, unfilled) + unfilled + misspelt_in_cards(document)


def _as_card(problem: Problem) -> Problem:
    """A card may leave the image to whoever runs it; then it is only worth a warning."""
    if not problem.pointer.endswith(f"/env_vars/{_READY_IMAGE}"):
        return problem
    hint = "give the image with --use-image when you build or run this model"
    return replace(problem, severity="warning", hint=hint)


def _beyond_the_schema(cards: list[Any], file: str, known: list[Problem]) -> list[Problem]:
    """What the catalog refuses besides: paths that leave the package, names that two cards have."""
    from madengine.catalog.reading import CardFile, hide_duplicates, read_cards

    path = Path(file)
    scope = path.parent.name if path.parent.parent.name == "scripts" else ""
    copies = [dict(card) if isinstance(card, dict) else card for card in cards]
    good, problems = read_cards(copies, CardFile(path, scope))
    seen = {problem.pointer for problem in known}
    new = [problem for problem in problems if problem.is_error and problem.pointer not in seen]
    found = [Problem("error", "card", p.pointer, None, p.message, p.hint) for p in new]
    _, twice = hide_duplicates(good)
    return found + [Problem("error", "duplicate-name", p.pointer, None, p.message, p.hint) for p in twice]


def _context(document: Any, file: str, _: Mapping[str, str]) -> list[Problem]:
    from madengine.schemas.context import validate_additional_context

    unfilled = _unfilled(document)
    return _without(validate_additional_context(document, file), unfilled) + unfilled


def _unknown(_: Any, __: str, ___: Mapping[str, str]) -> list[Problem]:
    return [_unrecognised("{}")]


_DOCUMENT_CHECKS: dict[Kind, Callable[[Any, str, Mapping[str, str]], list[Problem]]] = {
    "manifest": _manifest,
    "overlay": _overlay,
    "cards": _cards,
    "context": _context,
}
_DOCUMENT_CHECKS.update({**PACKAGE_CHECKS, **OUTPUT_CHECKS})
for _kind in NAMES:
    _DOCUMENT_CHECKS.setdefault(_kind, _unknown)


def _unfilled(document: Any) -> list[Problem]:
    found = islice(each_unfilled_value(document), PROBLEM_LIMIT + 1)
    return [_template(pointer, value) for pointer, value in found]


def _template(pointer: str, value: str) -> Problem:
    return Problem(
        "error", "unfilled-template", pointer, None, f"the template value {value} is not filled in", _FILL_IN
    )


def _without(problems: list[Problem], unfilled: list[Problem]) -> list[Problem]:
    """Problems without the wrong types of values that are templates still: one remark about them is enough."""
    places = {problem.pointer for problem in unfilled}
    return [problem for problem in problems if problem.pointer not in places]


# CSV


def _check_csv(file: str) -> FileReport:
    from madengine.reporting.csv_rows import read_header
    from madengine.reporting.plain_file import NotReadableError

    try:
        header = read_header(Path(file))
        columns = header.names if header else ()
        kind = kind_of_columns(columns)
        rows = _perf_rows(file, columns) if kind == "perf_csv" else _result_rows(file)
        return FileReport(file, kind, _limited(rows))
    except NotReadableError as error:
        line = re.match(r"line (\d+)", str(error))
        problem = Problem("error", "unreadable", "", int(line.group(1)) if line else None, printable(error))
        return FileReport(file, kind_of_text("", file), (problem,))


def _perf_rows(file: str, columns: tuple[str, ...]) -> Iterator[Problem]:
    """The header of a perf.csv against its schema, and rows that do not fit the header."""
    from madengine.reporting.csv_rows import read_rows
    from madengine.schemas import perf_csv_columns, unknown_perf_columns
    from madengine.schemas.loader import shared_schema
    from madengine.schemas.misspelt import closest

    missing = [name for name in perf_csv_columns() if name not in columns]
    if missing:
        yield Problem("error", "missing-column", "", 1, f"perf.csv lacks {_columns(missing)}")
    for name in unknown_perf_columns(columns):  # results files add columns of their own; a slip is something else
        if meant := closest(name, perf_csv_columns()):
            hint = f'did you mean "{meant}"?'
            yield Problem(
                "warning", "misspelt-column", "", 1, f"{printable(name, 60)!r} is no column of perf.csv", hint
            )
    if twice := [name for name in dict.fromkeys(columns) if columns.count(name) > 1]:
        yield Problem("error", "duplicate-column", "", 1, f"more than once in the header: {_columns(twice)}")
    states = shared_schema("perf_csv")["properties"]["status"]["enum"]
    for row in read_rows(Path(file)):
        if row.surplus or len(row.cells) < len(columns):
            message = f"the row has {len(row.cells)} cells for {len(columns)} columns"
            yield Problem("error", "ragged-row", "", row.line, message)
        elif row.get("status") not in states:
            message = f"found the status {printable(row.get('status'), 40)!r}, allowed: {', '.join(states)}"
            yield Problem("warning", "status", "", row.line, message)


def _columns(names: list[str]) -> str:
    return printable(", ".join(names), 200)


def _result_rows(file: str) -> Iterator[Problem]:
    """What would keep a results CSV, or one of its rows, from being a result."""
    from madengine.reporting.result_csv import metric_rejection_reason, missing_columns, read_results_rows

    path = Path(file)
    if reason := metric_rejection_reason(path):
        line = re.search(r"\bline (\d+)", reason)
        hint = "a results CSV has the columns model, performance and metric" if "column" in reason else None
        yield Problem("error", "no-metric", "", int(line.group(1)) if line else 1, printable(reason), hint)
        return
    if missing := missing_columns(path):
        yield Problem("warning", "missing-column", "", 1, f"the file lacks {_columns(missing)}")
    for row in read_results_rows(path):
        if row.value is None:
            reason = row.reason or "its performance is empty"
            yield Problem(
                "warning", "row-without-metric", "", row.line, f"the row measures nothing: {printable(reason)}"
            )
