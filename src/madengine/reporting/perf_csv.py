"""Rows into perf.csv: appended under a lock, without reading the file, whole or not at all.

Only the file's first record and its last byte are read, so a row costs the same in a file of a million rows. An
existing file keeps its own columns in their order, its line ends and its byte-order mark. Columns that it does not
have are added at the end by rewriting it once, row by row. A column that occurs twice gets the value twice, so that
every reader finds it. A last line without a line end (a killed writer, an editor) is ended first, also when it
stops within quotes.

Readers need no lock: see ``appending``.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from madengine.core.errors import ConfigurationError, MADEngineError
from madengine.reporting.appending import GrowingFile, as_error, real_path, sole_writer
from madengine.reporting.csv_text import cell_text, csv_line, storable

Row = Mapping[str, object]

WHAT = "perf.csv"
HEADER_LIMIT = 1 << 20  # bytes; a first line beyond this is no header
_BLOCK = 64 << 10
_BOM = b"\xef\xbb\xbf"
_ROWS_IN_ERROR = 2000  # characters


@dataclass(frozen=True)
class Header:
    """The first record of an existing file: its columns, its bytes without the line end, and the line end."""

    columns: tuple[str, ...]
    raw: bytes
    end: bytes

    @property
    def length(self) -> int:
        """Bytes up to the first row."""
        return len(self.raw) + len(self.end)

    @property
    def row_end(self) -> str:
        """The line end for rows."""
        return "\r\n" if self.end == b"\r\n" else "\n"


def append_rows(path: Path, rows: Sequence[Row], *, columns: Sequence[str] | None = None, what: str = WHAT) -> None:
    """Append rows (column -> value) to a perf.csv, making it when it is not there; on disk when this returns.

    A new file has ``columns`` (perf.csv's own by default) and then whatever else the rows have. Values become text as
    ``csv_text`` says; a column that a row lacks is empty. No rows: nothing happens.

    Raises :class:`ConfigurationError` for a path or file that is not to be written (not a perf.csv, a folder,
    read-only) and :class:`ExecutionError` when the disk or the lock fails. The file is then as it was, and the
    error holds the rows.
    """
    if not rows:
        return
    try:
        with sole_writer(path, what=what) as file:
            header = _existing_header(file, path, what)
            if header is None:
                _write_new(file, rows, columns)
            else:
                _append(file, header, rows)
    except MADEngineError as error:
        raise _with_rows(error, rows) from error


def check_perf_csv(path: Path, *, what: str = WHAT) -> None:
    """Raise the :class:`ConfigurationError` that :func:`append_rows` would, before anything is started.

    Makes and changes nothing.
    """
    real = real_path(path, what)
    if not os.path.lexists(real):
        _check_folder(real.parent, path, what)
        return
    try:
        fd = os.open(real, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise as_error(error, path, what) from error
    try:
        if not real.is_file():
            raise ConfigurationError(f"is no regular file, but a {what} is to be written there", where=str(path))
        _existing_header(GrowingFile(fd, real), path, what)
    finally:
        os.close(fd)


def read_header(file: GrowingFile, where: str, what: str = WHAT) -> Header:
    """The header of a file that is not empty; raises :class:`ConfigurationError` when it is not a perf.csv's."""
    data = file.read(0, _BLOCK)
    first = _first_record(data)
    if first is None and len(data) == _BLOCK:
        first = _first_record(file.read(0, HEADER_LIMIT))
    if first is None or b"\0" in first[0]:
        raise _refusal(f"is no {what}: it does not begin with a line of column names", where)
    record, columns = first
    if "model" not in map(normal_name, columns):
        shown = ", ".join(columns[:5])[:80].encode("utf-8", "replace").decode()
        raise _refusal(f"is no {what}: its first line names no column 'model', but: {shown}", where)
    raw = record.rstrip(b"\r\n")
    return Header(tuple(columns), raw, record[len(raw) :])


def normal_name(column: str) -> str:
    """A column name for comparing: without blanks, quotes and byte-order mark around it, in lower case."""
    return column.strip(" \t\r\n\"'\ufeff").casefold()


def place_columns(columns: Sequence[str], names: Sequence[str]) -> tuple[list[str | None], list[str]]:
    """For each column of a file the name of the value that it takes, and the names that have no column there.

    An equal name goes first; one that differs in case or blanks takes what is left.
    """
    by_normal = {normal_name(name): name for name in reversed(names)}
    exact = set(names)
    takes = [column if column in exact else None for column in columns]
    placed = {name for name in takes if name is not None}
    for index, column in enumerate(columns):
        candidate = by_normal.get(normal_name(column))
        if takes[index] is None and candidate is not None and candidate not in placed:
            takes[index] = candidate
    found = {name for name in takes if name is not None}
    return takes, [name for name in names if name not in found]


def _write_new(file: GrowingFile, rows: Sequence[Row], columns: Sequence[str] | None) -> None:
    if columns is None:
        from madengine.schemas import perf_csv_columns

        columns = perf_csv_columns()
    names = list(dict.fromkeys([*columns, *_names(rows)]))
    text = csv_line(names) + "".join(_lines(rows, list(names), "\n"))
    file.write_end(0, text.encode())


def _append(file: GrowingFile, header: Header, rows: Sequence[Row]) -> None:
    takes, added = place_columns(header.columns, _names(rows))
    lines = "".join(_lines(rows, [*takes, *added], header.row_end)).encode()
    size = file.size()
    mend = _line_end_for(file, header)
    if added:
        file.replace(_widened(file, header, added, mend, lines))
    else:
        file.write_end(size, mend + lines)


def _names(rows: Sequence[Row]) -> list[str]:
    """Column names in the order in which the rows bring them, as they are stored."""
    return list(dict.fromkeys(storable(name) for row in rows for name in row))


def _lines(rows: Sequence[Row], takes: Sequence[str | None], end: str) -> Iterator[str]:
    for row in rows:
        values = {storable(name): value for name, value in row.items()}
        yield csv_line(["" if name is None else cell_text(values.get(name)) for name in takes], end)


def _existing_header(file: GrowingFile, path: Path, what: str) -> Header | None:
    """The header of the file, or None when it has no contents yet (blank lines count as none)."""
    size = file.size()
    if size <= _BLOCK and not file.read(0, size).removeprefix(_BOM).strip():
        return None
    return read_header(file, str(path), what)


def _first_record(data: bytes) -> tuple[bytes, list[str]] | None:
    """The bytes of the first record with its line end, and its cells; None when it does not end within ``data``.

    A quoted column name may hold line ends itself.
    """
    mark = _BOM if data.startswith(_BOM) else b""
    taken: list[bytes] = [mark]

    def lines() -> Iterator[str]:
        for line in io.BytesIO(data[len(mark) :]):
            taken.append(line)
            yield line.decode("latin-1")

    try:
        cells = next(csv.reader(lines()), [])
    except csv.Error:
        return None
    record = b"".join(taken)
    if len(record) == len(data) >= _BLOCK:
        return None
    return record, [cell.encode("latin-1").decode("utf-8", "surrogateescape") for cell in cells]


def _line_end_for(file: GrowingFile, header: Header) -> bytes:
    """What ends the last line of the file when something cut it short; nothing in a whole file."""
    size = file.size()
    if file.read(size - 1, 1) == b"\n":
        return b""
    # Behind a blank a quote ends an open cell and means nothing anywhere else.
    quote = b' "' if _stops_within_quotes(file) else b""
    return quote + header.row_end.encode()


def _stops_within_quotes(file: GrowingFile) -> bool:
    """Whether the file stops inside a quoted cell. Reads the whole file, which only a cut one needs."""
    marker = "\x01end"

    def lines() -> Iterator[str]:
        with os.fdopen(os.dup(file.fd), "rb") as source:
            source.seek(0)
            for line in source:
                yield line.decode("latin-1")
        yield marker

    last: list[str] = []
    try:
        for row in csv.reader(lines()):
            last = row
    except csv.Error:  # what an open quote looks like when the cell grows beyond the limit
        return True
    return last != [marker]


def _widened(file: GrowingFile, header: Header, added: Sequence[str], mend: bytes, lines: bytes) -> Iterator[bytes]:
    """The contents of the file with more columns: every old row gets empty cells for them."""
    yield header.raw + b"," + csv_line(added, "").encode() + (header.end or b"\n")
    old = len(header.columns)
    if file.size() > header.length:
        with os.fdopen(os.dup(file.fd), "rb") as source:
            source.seek(header.length)
            yield from _widened_rows(_with_end(source, mend), old, len(added))
    yield lines


def _with_end(lines: Iterator[bytes] | io.BufferedReader, mend: bytes) -> Iterator[bytes]:
    """The lines, the last of them with the line end that it lacks."""
    last = b""
    for line in lines:
        if last:
            yield last
        last = line
    if last or mend:
        yield last + mend


def _widened_rows(lines: Iterator[bytes], old: int, added: int) -> Iterator[bytes]:
    """Each record as it was, byte by byte, with cells for the added columns behind its last one.

    A record with too many cells keeps them behind the added ones, so that they do not come to stand under a column
    that they do not belong to. From a record on that is no CSV the rest is copied as it is.
    """
    raw: list[bytes] = []

    def decoded() -> Iterator[str]:
        for line in lines:
            raw.append(line)
            yield line.decode("latin-1")

    try:
        for cells in csv.reader(decoded()):
            record = b"".join(raw)
            raw.clear()
            yield _padded(record, cells, old, added)
    except csv.Error:
        yield b"".join(raw)
        yield from lines


def _padded(record: bytes, cells: Sequence[str], old: int, added: int) -> bytes:
    if not cells:
        return record
    body = record.rstrip(b"\r\n")
    end = record[len(body) :]
    if len(cells) <= old:
        return body + b"," * (old + added - len(cells)) + end
    moved = [*cells[:old], *[""] * added, *cells[old:]]
    return ",".join('"' + cell.replace('"', '""') + '"' if cell else "" for cell in moved).encode("latin-1") + end


def _check_folder(folder: Path, path: Path, what: str) -> None:
    if not folder.is_dir():
        raise ConfigurationError(f"the folder for the {what} does not exist", where=str(path), hint="make it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigurationError(f"the folder for the {what} cannot be written to", where=str(path))


def _refusal(message: str, where: str) -> ConfigurationError:
    return ConfigurationError(message, where=where, hint="it was left as it is; move it away or name another file")


def _with_rows(error: MADEngineError, rows: Sequence[Row]) -> MADEngineError:
    """The same error with the rows that it kept from being written, as far as they fit on a line."""
    names: list[str | None] = [*_names(rows)]
    text = " | ".join(line for line in _lines(rows, names, "")).replace("\r", "\\r").replace("\n", "\\n")
    if len(text) > _ROWS_IN_ERROR:
        text = text[:_ROWS_IN_ERROR] + "..."
    hint = f"{error.hint}; " if error.hint else ""
    return type(error)(error.message, where=error.where, hint=f"{hint}not written, {len(rows)} in number: {text}")
