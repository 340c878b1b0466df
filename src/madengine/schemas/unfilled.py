"""Template values that nobody has filled in.

Five dialects are in use in MAD's templates: ``<FILL_NAME free text>``, ``<OPTIONAL free text>``, ``SITE-NAME``,
``CHANGE-ME`` and ``<supply-your-image>``; alone, inside longer values, and as keys of mounts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
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


def is_comment(key: str) -> bool:
    """Whether a key holds a remark for people."""
    return key.startswith(_COMMENT)


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
    found: list[tuple[str, str]] = []
    stack: list[_Place] = [((), document)]
    while stack:
        path, value = stack.pop()
        if path and isinstance(path[-1], str):
            found += [(pointer_of(path), template) for template in templates_in(path[-1])]
        if isinstance(value, str):
            found += [(pointer_of(path), template) for template in templates_in(value)]
        elif isinstance(value, dict):
            stack += _worth_a_look(path, ((key, item) for key, item in value.items() if not is_comment(key)))
        elif isinstance(value, list):
            stack += _worth_a_look(path, enumerate(value))
    return found


def _worth_a_look(path: tuple[str | int, ...], members: Iterable[tuple[str | int, Any]]) -> list[_Place]:
    """The members that can hold a template value, the last one first: it is the one that a stack gives back last."""
    found: list[_Place] = []
    for key, item in members:
        is_open = may_be_unfilled(item) if isinstance(item, str) else isinstance(item, (dict, list))
        if is_open or (isinstance(key, str) and may_be_unfilled(key)):
            found.append(((*path, key), item))
    found.reverse()
    return found
