"""Template values that nobody has filled in.

Five dialects are in use in MAD's templates: ``<FILL_NAME free text>``, ``<OPTIONAL free text>``, ``SITE-NAME``,
``CHANGE-ME`` and ``<supply-your-image>``; alone, inside longer values, and as keys of mounts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from madengine.core.documents import printable
from madengine.core.json_positions import pointer_of

SHOWN = 80  # characters of a template value that is shown

_TEMPLATE = re.compile(
    r"""
    <(?:FILL|OPTIONAL)(?![a-zA-Z0-9]) [^<>]* (?: <[^<>]*> [^<>]* )* >?  # free text, which may hold <words> itself
    | <(?:supply|your)-[^<>]*>?
    | (?<![A-Za-z0-9_-]) SITE-[A-Z][A-Z0-9_-]*
    | (?<![A-Za-z0-9]) CHANGE[-_]?ME (?![A-Za-z0-9])
    """,
    re.VERBOSE,
)
_Place = tuple[tuple[str | int, ...], Any]  # path and value
_COMMENT = ("_comment", "_note", "_usage", "_description")


def is_comment(key: object) -> bool:
    """Whether a key holds a remark for people."""
    return isinstance(key, str) and key.startswith(_COMMENT)


def may_be_unfilled(text: str) -> bool:
    """Whether a text can hold a template value at all: a fast test that most texts fail."""
    return "<" in text or "SITE-" in text or "CHANGE" in text


def templates_in(text: str) -> list[str]:
    """The unfilled template values in a text, each on one line and cut to a readable length."""
    if not may_be_unfilled(text):
        return []
    return [" ".join(printable(found.group(), SHOWN).split()) for found in _TEMPLATE.finditer(text)]


def unfilled_values(document: Any) -> list[tuple[str, str]]:
    """Each unfilled template value of a document with the JSON pointer of its place, in document order.

    A key that is one has the pointer of its member. Comment keys are not searched.
    """
    return list(each_unfilled_value(document))


def each_unfilled_value(document: Any) -> Iterator[tuple[str, str]]:
    """The values of :func:`unfilled_values`, one by one."""
    stack: list[_Place] = [((), document)] if _has_candidates(document) else []
    while stack:
        path, value = stack.pop()
        if path and isinstance(path[-1], str):
            yield from ((pointer_of(path), template) for template in templates_in(path[-1]))
        if isinstance(value, str):
            yield from ((pointer_of(path), template) for template in templates_in(value))
        elif isinstance(value, dict):
            found = [((*path, key), item) for key, item in value.items() if _is_worth_a_look(key, item)]
            stack += reversed(found)
        elif isinstance(value, list):
            stack += [((*path, index), value[index]) for index in reversed(range(len(value)))]


def _has_candidates(document: Any) -> bool:
    """Whether any text of the document can be a template value. Most have none, and writing it is C code."""
    try:
        return may_be_unfilled(json.dumps(document, ensure_ascii=False))
    except (TypeError, ValueError, RecursionError):  # not a JSON document: walk it
        return True


def _is_worth_a_look(key: Any, item: Any) -> bool:
    return not is_comment(key) and (isinstance(item, (dict, list)) or _is_open(item) or _is_open(key))


def _is_open(item: Any) -> bool:
    return isinstance(item, str) and may_be_unfilled(item)
