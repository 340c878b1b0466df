"""Where something stands in the text of a JSON document.

The parser of the standard library is fast but forgets positions. These functions find them again, and only when there
is something to report: they walk the tokens of the text once, without recursion, and never build a document.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

# A string without escapes (with the colon that makes it a key), a quote that opens one with escapes, or structure.
_TOKEN = re.compile(r'"[^"\\]*"(?P<colon>[ \t\r\n]*:)?|["{}\[\],]')
_BLANK = re.compile(r"[ \t\r\n]*")
_COLON = re.compile(r"[ \t\r\n]*:")

Token = tuple[str, int, int]
"""Kind (``key``, ``string`` or one of ``{}[],``), offset of the first character, offset after the last one."""


def pointer_of(parts: Iterable[str | int]) -> str:
    """The RFC 6901 JSON pointer of a path: ``~`` becomes ``~0`` and ``/`` becomes ``~1``."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def parts_of(pointer: str) -> tuple[str, ...]:
    """The path of an RFC 6901 JSON pointer; list indices stay text."""
    if not pointer:
        return ()
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/"))


def line_at(text: str, offset: int) -> int:
    """The line, counted from 1, of an offset."""
    return text.count("\n", 0, offset) + 1


def tokens(text: str) -> Iterator[Token]:
    """The strings, keys and structural characters of a text; numbers and words lie in the gaps between them.

    The text may be broken JSON: an unterminated string ends the walk.
    """
    offset = 0
    while found := _TOKEN.search(text, offset):
        start, offset = found.span()
        kind = found.group()[0]
        if kind != '"':
            yield kind, start, offset
            continue
        is_key = found.group("colon") is not None
        if offset - start == 1:  # the string holds escapes, or has no end
            end = _end_of_string(text, start)
            if end is None:
                return
            is_key = _COLON.match(text, end) is not None
            offset = end
        yield ("key" if is_key else "string"), start, offset


def _end_of_string(text: str, start: int) -> int | None:
    end = text.find('"', start + 1)
    while end != -1:
        before = end - 1
        while text[before] == "\\":
            before -= 1
        if (end - before) % 2:
            return end + 1
        end = text.find('"', end + 1)
    return None


def string_at(text: str, start: int) -> str:
    """The decoded string that begins at an offset; what cannot be decoded comes back as it is written."""
    try:
        value, _ = json.decoder.scanstring(text, start + 1, False)  # type: ignore[attr-defined]
    except ValueError:
        return text[start + 1 : start + 61]
    return str(value)


def find_duplicate(text: str, key: str) -> tuple[int, int] | None:
    """The offsets of the first two occurrences of a key in one object."""
    written = json.dumps(key, ensure_ascii=False)
    occurrences = [found.start() for found in islice(re.finditer(re.escape(written) + r"[ \t\r\n]*:", text), 3)]
    if len(occurrences) == 2:
        return occurrences[0], occurrences[1]
    seen: list[int | None] = []  # for each open object where the key stands in it
    for kind, start, end in tokens(text):
        if kind == "key":
            if not _spells(text, start, end, written, key) or not seen:
                continue
            if (first := seen[-1]) is not None:
                return first, start
            seen[-1] = start
        elif kind in "{[":
            seen.append(None)
        elif kind in "}]" and seen:
            seen.pop()
    return None


def _spells(text: str, start: int, end: int, written: str, key: str) -> bool:
    if text.startswith(written, start):
        return True
    return text.find("\\", start, end) != -1 and string_at(text, start) == key


def find_depth(text: str, limit: int) -> int | None:
    """The offset of the first bracket that is nested deeper than ``limit``."""
    depth = 0
    for kind, start, _ in tokens(text):
        if kind in "{[":
            depth += 1
            if depth > limit:
                return start
        elif kind in "}]":
            depth -= 1
    return None


def find_scalar(text: str, literal: str) -> int | None:
    """The offset of a number or word (``NaN``, ``1e999``) that stands outside of strings."""
    end_of_last = 0
    for _, start, end in tokens(text):
        if literal in text[end_of_last:start]:
            return text.index(literal, end_of_last)
        end_of_last = end
    offset = text.find(literal, end_of_last)
    return None if offset == -1 else offset


def find_unusable_string(text: str) -> int | None:
    """The offset of the first string with a NUL or half of a surrogate pair: no file or process can be given it."""
    for kind, start, end in tokens(text):
        if kind in {"key", "string"} and "\\u" in text[start:end] and not is_usable(string_at(text, start)):
            return start
    return None


def is_usable(value: str) -> bool:
    """Whether a string can be written as UTF-8 (it holds no lone surrogate) and given to a process (no NUL)."""
    if "\0" in value:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def lines_of(text: str, pointers: Iterable[str]) -> dict[str, int]:
    """The line of each JSON pointer: that of the key for a member of an object, of the value for an item of a list.

    Pointers that lead nowhere get the line of the deepest part that exists.
    """
    pointers = list(pointers)
    wanted: dict[str, Any] = {}
    for pointer in pointers:
        node = wanted
        for part in parts_of(pointer):
            node = node.setdefault(part, {})
    offsets: dict[str, int] = {}
    _locate(text, wanted, offsets)
    found = {pointer: _deepest(offsets, pointer) for pointer in pointers}
    lines = _lines_at(text, sorted(set(found.values())))
    return {pointer: lines[offset] for pointer, offset in found.items()}


def _lines_at(text: str, offsets: list[int]) -> dict[int, int]:
    """The line of each of the ascending offsets, in one pass over the text."""
    lines: dict[int, int] = {}
    line, last = 1, 0
    for offset in offsets:
        line += text.count("\n", last, offset)
        last = offset
        lines[offset] = line
    return lines


def _deepest(offsets: dict[str, int], pointer: str) -> int:
    while pointer and pointer not in offsets:
        pointer = pointer.rpartition("/")[0]
    return offsets.get(pointer, 0)


class _Frame:
    """An open object or list: its pointer, and what is wanted inside it (nothing: the walk only passes through)."""

    __slots__ = ("index", "pointer", "wanted")

    def __init__(self, pointer: str, wanted: dict[str, Any], index: int | None) -> None:
        self.pointer = pointer
        self.wanted = wanted
        self.index = index

    def child(self, key: str) -> tuple[str, dict[str, Any]] | None:
        inside = self.wanted.get(key)
        return None if inside is None else (self.pointer + pointer_of((key,)), inside)


_NOWHERE: dict[str, Any] = {}


def _locate(text: str, wanted: dict[str, Any], offsets: dict[str, int]) -> None:
    """Note the offset of every wanted pointer in ``offsets``."""
    stack: list[_Frame] = []
    pending: tuple[str, dict[str, Any]] | None = ("", wanted)  # what the next value is, when it is wanted
    for kind, start, _ in tokens(text):
        if kind in "{[":
            pointer, inside = pending or ("", _NOWHERE)
            if pending and not stack:
                offsets[""] = start
            stack.append(_Frame(pointer, inside, 0 if kind == "[" else None))
            pending = _item(stack[-1], text, start + 1, offsets)
        elif not stack:
            continue
        elif kind in "}]":
            stack.pop()
            pending = None
        elif kind == "key":
            pending = stack[-1].child(string_at(text, start)) if stack[-1].wanted else None
            if pending:
                offsets.setdefault(pending[0], start)
        elif kind == ",":
            frame = stack[-1]
            frame.index = None if frame.index is None else frame.index + 1
            pending = _item(frame, text, start + 1, offsets)


def _item(frame: _Frame, text: str, after: int, offsets: dict[str, int]) -> tuple[str, dict[str, Any]] | None:
    """What the next value of a list is, when somebody wants to know its line."""
    if frame.index is None or not frame.wanted:
        return None
    child = frame.child(str(frame.index))
    if child:
        blank = _BLANK.match(text, after)
        offsets.setdefault(child[0], blank.end() if blank else after)
    return child
