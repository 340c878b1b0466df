"""What ``madengine validate`` says about the JSON files that madengine itself writes: run records, evidence, rows.

Their own readers judge records and evidence, and stop at the first error; rows are held to the columns of perf.csv.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from madengine.cli.validate_kinds import Kind
from madengine.core.documents import printable
from madengine.core.errors import ValidationError
from madengine.core.json_positions import pointer_of
from madengine.schemas.problems import PROBLEM_LIMIT, Problem

_SCALARS = (str, int, float, bool, type(None))
_BESIDE_COLUMNS = ("configs", "multi_results")


def _run_record(document: Any, file: str, _: Mapping[str, str]) -> list[Problem]:
    from madengine.reporting.run_record import run_record_of

    return _refusal(lambda: run_record_of(document, file))


def _evidence(document: Any, file: str, _: Mapping[str, str]) -> list[Problem]:
    from madengine.verdict.evidence_json import from_json

    return _refusal(lambda: from_json(document, file))


def _refusal(read: Callable[[], object]) -> list[Problem]:
    try:
        read()
    except ValidationError as error:
        return [Problem("error", "content", error.pointer, None, error.message, error.hint)]
    return []


def _rows(document: list[Any], _: str, __: Mapping[str, str]) -> list[Problem]:
    found = (problem for place, row in enumerate(document) for problem in _row_problems(row, place))
    return list(islice(found, PROBLEM_LIMIT + 1))


def _row_problems(row: Any, place: int) -> Iterator[Problem]:
    from madengine.schemas import perf_csv_columns
    from madengine.schemas.loader import shared_schema

    if not isinstance(row, dict):
        yield Problem("error", "type", f"/{place}", None, "a row must be an object")
        return
    if missing := [name for name in perf_csv_columns() if name not in row]:
        yield Problem("error", "missing-column", f"/{place}", None, f"the row lacks {', '.join(missing)}")
    for name, value in row.items():
        if name not in _BESIDE_COLUMNS and not isinstance(value, _SCALARS):
            yield Problem("error", "type", pointer_of((place, name)), None, "a value of a row must be a text or number")
    if not isinstance(row.get("multi_results"), (dict, type(None))):
        message = "the added columns of a row must be an object or null"
        yield Problem("error", "type", f"/{place}/multi_results", None, message)
    states = shared_schema("perf_csv")["properties"]["status"]["enum"]
    if "status" in row and row["status"] not in states:
        message = f"found the status {printable(row['status'], 40)!r}, allowed: {', '.join(states)}"
        yield Problem("warning", "status", f"/{place}/status", None, message)


OUTPUT_CHECKS: Mapping[Kind, Callable[[Any, str, Mapping[str, str]], list[Problem]]] = {
    "run_record": _run_record,
    "evidence": _evidence,
    "perf_entry": _rows,
    "perf_super": _rows,
}
"""Kind -> the problems of a document of that kind."""
