"""Values as cells of a CSV file that every reader takes: Python 3.10 and later, pandas, spreadsheets.

A value comes back from ``csv.reader`` as it was, with three exceptions that would make the whole file unreadable to
some reader: a lone surrogate and a NUL are written as their escape (``\\udc80``, ``\\x00``), and a text longer than
``csv.field_size_limit()`` allows is cut, saying so. A leading ``=``, ``+``, ``-`` or ``@`` is data and stays.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import Enum

CELL_LIMIT = 131072  # characters; the default of csv.field_size_limit()
_CUT = "...[cut]"


def cell_text(value: object) -> str:
    """A value as text: None is empty, lists are joined with commas (tags), booleans are ``true`` and ``false``."""
    if value is None:
        return ""
    if isinstance(value, Enum):
        return cell_text(value.value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(cell_text(item) for item in value)
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    return str(value)


def storable(text: str) -> str:
    """The text without what would make a file unreadable."""
    if "\0" in text:
        text = text.replace("\0", "\\x00")
    if not text.isascii():
        text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text if len(text) <= CELL_LIMIT else text[: CELL_LIMIT - len(_CUT)] + _CUT


def csv_line(cells: Sequence[str], end: str = "\n") -> str:
    """One record with its line end, quoted where a reader needs it."""
    line = ",".join(_quoted(storable(cell)) for cell in cells)
    return (line or '""') + end  # a record of one empty cell would be a blank line


def _quoted(text: str) -> str:
    # csv.writer leaves a lone carriage return bare before Python 3.13, and csv.reader then refuses the line.
    if any(mark in text for mark in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text
