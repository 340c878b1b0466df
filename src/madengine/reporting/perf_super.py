"""perf_super: the rows of perf.csv with the configuration that each ran with, cumulative, as JSON and as CSV.

``perf_super.json`` is one JSON array with one row to a line::

    [
    {"model": "a", ..., "configs": null, "multi_results": null},
    {"model": "b", ..., "configs": [{"tp": "8"}], "multi_results": {"bs": "1"}}
    ]

JSON escapes line ends, so a line end always separates rows. To append, the closing ``]`` is written over, under the
lock and the lease of ``appending``: the rest of the file is not read, and readers see one valid array or the next.
A killed writer can only leave a file that lacks its closing bracket, or ends within a line; the next append takes
up behind the last whole row. A file in another layout that ends in ``]`` is continued as well; one that is damaged
in a way that ours cannot be is refused and left alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from madengine.core.errors import ConfigurationError, MADEngineError
from madengine.reporting.appending import GrowingFile, refuse_loop, sole_writer
from madengine.reporting.csv_text import cell_text, storable
from madengine.reporting.perf_csv import append_rows
from madengine.reporting.perf_rows import ResultRow

JSON_WHAT = "perf_super.json"
CSV_WHAT = "perf_super.csv"
_BLOCK = 64 << 10
_LONGEST_ROW = 64 << 20  # bytes that are looked through for the last whole row of a file that was cut
_BLANKS = b" \t\r\n"


def super_row(row: ResultRow, configs: Any = None) -> dict[str, Any]:
    """A row for perf_super: perf.csv's own columns, ``configs``, and the added columns under ``multi_results``.

    Measured values stay text, as they were measured. ``multi_results`` is None for a row without added columns.
    """
    added = {name: row.values[name] for name in row.extra}
    plain = {name: value for name, value in row.values.items() if name not in added}
    return {**plain, "configs": configs, "multi_results": added or None}


def append_super_json(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Append rows to a cumulative perf_super.json, making it when it is not there; on disk when this returns.

    Raises :class:`ConfigurationError` for a path or file that is not to be written, :class:`ExecutionError` when the
    disk or the lock fails; the file is then as it was.
    """
    if not rows:
        return
    with sole_writer(path, what=JSON_WHAT) as file:
        offset, lead = _place_for_rows(file, path)
        file.write_end(offset, lead + ",\n".join(map(json_line, rows)).encode() + b"\n]\n")


def append_super_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Append rows to a cumulative perf_super.csv; ``configs`` and ``multi_results`` are JSON texts. Errors as above."""
    append_rows(path, [csv_row(row) for row in rows], columns=super_columns(), what=CSV_WHAT)


def check_super_json(path: Path) -> None:
    """Raise the :class:`ConfigurationError` that appending to an existing file would; makes and changes nothing."""
    refuse_loop(path, JSON_WHAT)
    if not path.exists():
        return
    if not path.is_file():
        raise ConfigurationError(f"is no regular file, but a {JSON_WHAT} is to be written there", where=str(path))
    try:
        with path.open("rb+") as file:
            _place_for_rows(GrowingFile(file.fileno(), path), path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigurationError(f"the {JSON_WHAT} cannot be written: {reason.lower()}", where=str(path)) from error


def super_columns() -> tuple[str, ...]:
    """The columns of perf_super.csv."""
    from madengine.schemas import perf_csv_columns

    return (*perf_csv_columns(), "configs", "multi_results")


def csv_row(row: Mapping[str, Any]) -> dict[str, str]:
    """A row of perf_super for a CSV."""
    return {name: _json_cell(value) if name in ("configs", "multi_results") else value for name, value in row.items()}


def json_line(row: Mapping[str, Any]) -> str:
    """A row as JSON on one line."""
    return json.dumps(_clean(row), ensure_ascii=False, allow_nan=False)


def _json_cell(value: Any) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _clean(value: Any) -> Any:
    """The value with texts that any reader of JSON takes."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, Mapping):
        return {storable(cell_text(key)): _clean(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(item) for item in value]
    return value


def _place_for_rows(file: GrowingFile, path: Path) -> tuple[int, bytes]:
    """Where the next row goes, and what stands between that place and the row."""
    size = file.size()
    head = file.read(0, _BLOCK).removeprefix(b"\xef\xbb\xbf")
    if size <= _BLOCK and not head.strip():
        return 0, b"[\n"
    if not head.lstrip().startswith(b"["):
        raise _refusal("is no list of rows", path)
    start = max(0, size - _BLOCK)
    tail = file.read(start, _BLOCK).rstrip(_BLANKS)
    line = tail[tail.rfind(b"\n") + 1 :]
    on_one_line = b"\n" not in head.rstrip(_BLANKS)  # another program's: ours has a line end behind the bracket
    if line in (b"]", b"}]") or (on_one_line and tail.endswith(b"]")):
        return _before_bracket(tail, start, path)
    return _behind_last_whole_row(file, path)


def _before_bracket(tail: bytes, start: int, path: Path) -> tuple[int, bytes]:
    rows = tail[:-1].rstrip(_BLANKS)
    if rows.endswith(b"}"):
        return start + len(rows), b",\n"
    if rows.endswith(b"["):
        return start + len(rows), b"\n"
    raise _refusal("is no list of rows", path)


def _behind_last_whole_row(file: GrowingFile, path: Path) -> tuple[int, bytes]:
    """Where to take up in a file whose writer was killed: behind its last whole line."""
    size = file.size()
    start = max(0, size - _BLOCK)
    while file.read(start, size - start).count(b"\n") < 2 and start > 0 and size - start < _LONGEST_ROW:
        start = max(0, size - 4 * (size - start))
    data = file.read(start, size - start)
    last = data[data.rfind(b"\n") + 1 :]
    if last[:1] not in (b"", b"[", b"{"):
        raise _refusal("ends in what is no row", path)
    whole = data if _is_row(last) or data == b"[" else data[: len(data) - len(last)]
    body = whole.rstrip(_BLANKS)
    line = body[body.rfind(b"\n") + 1 :]
    if start == 0 and body == b"[":
        return 1, b"\n"
    if _is_row(line):
        return start + len(body), b"\n" if line.endswith(b",") else b",\n"
    raise _refusal("is cut off within a row", path)


def _is_row(line: bytes) -> bool:
    """Whether the line is a whole row as we write it; an object inside another program's indented row is none."""
    try:
        row = json.loads(line.removesuffix(b",")) if line.startswith(b"{") else None
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and "model" in row


def _refusal(message: str, path: Path) -> MADEngineError:
    hint = "it was left as it is; mend it or move it away"
    return ConfigurationError(f"the {JSON_WHAT} {message}", where=str(path), hint=hint)
