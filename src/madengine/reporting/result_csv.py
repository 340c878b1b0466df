"""Results files: the CSV that a model's script writes and its card declares as ``multiple_results``.

A file is recognised as a results CSV by the columns model, performance and metric, in any order and among any others; a
declared file needs only ``performance``. A row measures when its performance is a finite number and it does not say
itself that it failed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path

from madengine.reporting.csv_rows import CsvRow, Header, read_header, read_rows
from madengine.reporting.numbers import NotANumber, quoted, read_number
from madengine.reporting.plain_file import MissingFileError, NotReadableError

REQUIRED_COLUMNS = ("model", "performance", "metric")
_OWN_OUTPUT = ("perf.csv", "perf_super*", "perf_entry*")
_FAILED_STATES = frozenset(
    {"failure", "failed", "fail", "error", "timeout", "no_metric", "skipped", "cancelled", "canceled", "crashed"}
)
_SHOWN_COLUMNS = 20
_COUNTED_ROWS = 10_000  # of a candidate that is only suggested
_CANDIDATE_LIMIT = 200  # CSV files of one folder that are looked into


@dataclass(frozen=True)
class ResultRow:
    """One row of a results file.

    ``value`` is None when the row does not measure, ``reason`` then says why and ``blank`` that nothing stood there.
    ``text`` is the performance cell as written, ``extra`` the other columns in their order.
    """

    line: int
    name: str
    metric: str
    text: str
    value: float | None
    reason: str = ""
    blank: bool = False
    extra: tuple[tuple[str, str], ...] = ()


def read_results_rows(path: Path) -> Iterator[ResultRow]:
    """The rows of a results file in their order. Raises :class:`NotReadableError`."""
    return (result_row(row) for row in read_rows(path))


def result_row(row: CsvRow) -> ResultRow:
    """What a row says."""
    text = row.get("performance")
    value = value_of(row)
    return ResultRow(
        line=row.line,
        name=row.get("model"),
        metric=row.get("metric"),
        text=text,
        value=None if isinstance(value, NotANumber) else value,
        reason=value.reason if isinstance(value, NotANumber) else "",
        blank=not text,
        extra=_extra(row),
    )


def value_of(row: CsvRow) -> float | NotANumber:
    """The number that a row measured, or why it measured none."""
    status = row.get("status")
    if status.casefold() in _FAILED_STATES:
        return NotANumber(f"the row itself says {quoted(status)}")
    if row.surplus:
        # An unquoted comma, as in 1,234.5, moves every later cell to the wrong column.
        cells, columns = len(row.header.keys) + row.surplus, len(row.header.keys)
        return NotANumber(f"the row has {cells} cells for {columns} columns, so a comma is not quoted")
    return read_number(row.get("performance"))


def read_columns(path: Path) -> list[str]:
    """The header's names as they are compared (stripped, lower case), empty when there is no readable header."""
    header, _ = _header(path)
    return list(header.keys) if header else []


def missing_columns(path: Path) -> list[str]:
    """Those of model, performance and metric that the file lacks; all of them when it cannot be read."""
    columns = read_columns(path)
    return [name for name in REQUIRED_COLUMNS if name not in columns]


def has_result_shape(path: Path) -> bool:
    """Whether the file has the columns of a results file."""
    return not missing_columns(path)


def is_own_output(path: Path) -> bool:
    """Whether the name is one that madengine itself writes: perf.csv, perf_super*, perf_entry*."""
    name = Path(path).name.lower()
    return any(fnmatchcase(name, pattern) for pattern in _OWN_OUTPUT)


def count_rows(path: Path) -> tuple[int, int]:
    """How many rows measure and how many there are; what can be read counts, ``(0, 0)`` for no readable file."""
    return _count(Path(path), None)


def metric_rejection_reason(path: Path) -> str | None:
    """Why the file gives no measurement, None when it gives at least one."""
    reason = header_rejection(path)
    if reason:
        return reason
    try:
        return why_nothing_measured(read_results_rows(Path(path)))
    except NotReadableError as error:
        return f"not readable as CSV: {error}"


def header_rejection(path: Path) -> str | None:
    """Why the file cannot be a results file whatever its rows say, None when its header has a performance column."""
    header, why = _header(path)
    if header is None:
        return why
    return None if "performance" in header.keys else f"no 'performance' column; found: {_column_list(header)}"


def why_nothing_measured(rows: Iterable[ResultRow]) -> str | None:
    """Why none of these rows measures, None at the first one that does."""
    first: ResultRow | None = None
    total = 0
    for row in rows:
        if row.value is not None:
            return None
        total += 1
        if first is None or (first.blank and not row.blank):
            first = row
    if first is None:
        return "it has a header and no rows"
    if first.blank:
        return "every row has an empty 'performance' value"
    which = f"none of its {total} rows measured anything" if total > 1 else "its one row measured nothing"
    return f"{which}; line {first.line}: {first.reason}"


def suggest_candidates(dirs: Iterable[Path]) -> list[Path]:
    """CSV files directly in these folders that look like results files, those that measure first; none of our own."""
    seen: dict[Path, Path] = {}
    for folder in dirs:
        for path in _csv_files(Path(folder)):
            if has_result_shape(path):
                seen.setdefault(path.resolve(), path)
    return sorted(seen.values(), key=lambda path: (metric_rejection_reason(path) is not None, path.name, str(path)))


def suggestion_lines(
    dirs: Iterable[Path], limit: int = 3, *, like: str = "", apart: Collection[Path] = ()
) -> list[str]:
    """At most ``limit`` lines, a candidate and how to declare it each; the last says how many more there are.

    ``like`` is the declared name: what is spelt nearly the same comes first, a file of that very name is left out, and
    so are those in ``apart``.
    """
    candidates = [path for path in suggest_candidates(dirs) if path.name != like and path not in apart]
    if like:
        candidates.sort(key=lambda path: -_likeness(like, path.name))
    lines = [_suggestion(path) for path in candidates[: max(0, limit)]]
    if lines and len(candidates) > limit:
        lines[-1] += f" (and {len(candidates) - limit} more)"
    return lines


def _likeness(declared: str, name: str) -> float:
    from difflib import SequenceMatcher

    return round(SequenceMatcher(None, declared.lower(), name.lower()).ratio(), 1)


def _suggestion(path: Path) -> str:
    measured, total = _count(path, _COUNTED_ROWS)
    more = " or more" if total == _COUNTED_ROWS else ""
    rows = f"{measured} of {total}{more} row{'s' * (total != 1)} with a number"
    return f'{path} ({rows}): declare it in the card as "multiple_results": "{path.name}"'


def _count(path: Path, limit: int | None) -> tuple[int, int]:
    measured = total = 0
    try:
        for row in islice(read_rows(path), limit):
            total += 1
            measured += isinstance(value_of(row), float)
    except NotReadableError:
        pass
    return measured, total


def _csv_files(folder: Path) -> list[Path]:
    try:
        names = sorted(path for path in folder.iterdir() if path.suffix.lower() == ".csv" and not is_own_output(path))
    except OSError:
        return []
    return names[:_CANDIDATE_LIMIT]


def _header(path: Path) -> tuple[Header | None, str]:
    try:
        header = read_header(Path(path))
    except MissingFileError as error:
        return None, str(error)
    except NotReadableError as error:
        return None, f"not readable as CSV: {error}"
    return header, "" if header else "the file is empty"


def _column_list(header: Header) -> str:
    shown = ", ".join(quoted(name)[1:-1] for name in header.names[:_SHOWN_COLUMNS])
    more = len(header.names) - _SHOWN_COLUMNS
    return f"{shown} and {more} more" if more > 0 else shown


def _extra(row: CsvRow) -> tuple[tuple[str, str], ...]:
    names = row.header.names
    wanted = [key for key in dict.fromkeys(row.header.keys) if key and key not in REQUIRED_COLUMNS]
    return tuple((names[row.header.positions[key]], row.get(key)) for key in wanted)
