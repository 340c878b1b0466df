"""Reading a CSV file row by row, in bounded memory, from whoever wrote it.

Header names are compared stripped of blanks, quotes, case and a byte-order mark. Blank rows are passed over; a header
that is repeated inside the file is no row, and one with other columns holds for the rows that follow it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from madengine.reporting.plain_file import NotReadableError, open_plain

LINE_LIMIT = 1 << 20  # bytes of one line; csv itself allows 131,072 characters in a field
_STRIPPED = " \t\r\n\f\v\"'\ufeff\u00a0"
_END = "\ue000end of file"  # private use: read as a row of its own unless a quote is still open


class NotCsvError(NotReadableError):
    """The file's content is no CSV text in UTF-8."""


@dataclass(frozen=True)
class Header:
    """The columns of a file: ``names`` as written (stripped), ``keys`` as they are compared, and where each key is.

    Of several columns of one name the first is meant.
    """

    names: tuple[str, ...]
    keys: tuple[str, ...] = field(repr=False)
    positions: Mapping[str, int] = field(repr=False, compare=False)

    @classmethod
    def of(cls, cells: list[str]) -> Header:
        """The header that these cells spell."""
        names = tuple(cell.strip(_STRIPPED) for cell in cells)
        keys = tuple(name.casefold() for name in names)
        return cls(names, keys, {key: index for index, key in reversed(tuple(enumerate(keys)))})


class CsvRow(NamedTuple):
    """A row that is no header: its first line in the file, its header, and its cells as written."""

    line: int
    header: Header
    cells: list[str]

    def get(self, key: str) -> str:
        """The stripped cell of the column called ``key``, empty when the row or the file has none."""
        index = self.header.positions.get(key, len(self.cells))
        return self.cells[index].strip(_STRIPPED) if index < len(self.cells) else ""

    @property
    def surplus(self) -> int:
        """How many cells the row has beyond its header, blank ones at the end not counted."""
        columns, filled = len(self.header.keys), len(self.cells)
        while filled > columns and not self.cells[filled - 1].strip():
            filled -= 1
        return max(0, filled - columns)


def read_header(path: Path) -> Header | None:
    """The file's header, None when the file is empty. Raises :class:`NotReadableError`."""
    with open_plain(path) as file:
        for _, cells in _records(file):
            return Header.of(cells)
    return None


def read_rows(path: Path) -> Iterator[CsvRow]:
    """The file's rows. Raises :class:`NotReadableError`, also half way through the file."""
    header: Header | None = None
    with open_plain(path) as file:
        for line, cells in _records(file):
            if header is None:
                header = Header.of(cells)
            elif (repeated := _repeated_header(cells, header)) is not None:
                header = repeated
            else:
                yield CsvRow(line, header, cells)


def _repeated_header(cells: list[str], header: Header) -> Header | None:
    if "performance" not in "".join(cells).casefold():  # cheap, and true of next to no row
        return None
    repeated = Header.of(cells)
    same = repeated.keys == header.keys
    return repeated if same or ("performance" in repeated.keys and "metric" in repeated.keys) else None


def _records(file: io.FileIO) -> Iterator[tuple[int, list[str]]]:
    """The records that hold anything, each with the number of its first line."""
    lines = _Lines(file)
    reader = csv.reader(lines)
    while True:
        first = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise NotCsvError(f"line {first}: {error}") from None
        except OSError as error:
            raise NotReadableError(f"line {first}: {error.strerror or error}") from None
        if lines.ended and cells == [_END]:
            return
        if lines.ended:
            raise NotCsvError(f"line {first}: a quote is opened there and never closed")
        if any(cell.strip() for cell in cells):
            yield first, cells


class _Lines:
    """The lines of a file as text, whichever line break they end with, and ``_END`` behind the last one."""

    def __init__(self, file: io.FileIO) -> None:
        self.ended = False
        self._file = file

    def __iter__(self) -> Iterator[str]:
        buffered = io.BufferedReader(self._file)
        number = 0
        while raw := buffered.readline(LINE_LIMIT + 1):
            number += 1
            text = _decode(raw, number)
            if "\r" in text:
                yield from (piece + "\n" for piece in _unix(text).removesuffix("\n").split("\n"))
            else:
                yield text
        self.ended = True
        yield _END


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _decode(raw: bytes, number: int) -> str:
    if len(raw) > LINE_LIMIT:
        raise NotCsvError(f"line {number} is longer than {LINE_LIMIT:,} bytes")
    if b"\0" in raw:
        raise NotCsvError(f"line {number} holds NUL bytes, as binary files and UTF-16 text do")
    try:
        return raw.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError:
        raise NotCsvError(f"line {number} is not UTF-8 text") from None
