"""Reading a number that somebody else wrote, and saying why it is none."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"

_PLAIN = re.compile(NUMBER)
_GROUPED = re.compile(r"[+-]?[0-9]+(?:[,'_ \u00a0\u2009\u202f][0-9]+)+(?:\.[0-9]*)?")
_NOT_FINITE = frozenset({"nan", "inf", "infinity"})
_ABSENT = frozenset({"na", "n/a", "none", "null", "-", "--"})
_SHOWN = 40  # characters of a strange value that a message quotes


@dataclass(frozen=True)
class NotANumber:
    """Why a text is no finite number; ``reason`` quotes the text and completes a sentence."""

    reason: str


def read_number(text: str) -> float | NotANumber:
    """The finite number that ``text`` spells, blanks around it ignored.

    ASCII digits, an optional sign, decimals and an exponent. Underscores, thousands separators and decimal commas
    are refused, because ``1,234`` is a different number in different countries.
    """
    text = text.strip()
    if not text:
        return NotANumber("the value is empty")
    if not _PLAIN.fullmatch(text):
        return NotANumber(_why_not(text))
    value = float(text)
    if math.isinf(value):
        return NotANumber(f"{quoted(text)} is too large for a number")
    return value


def quoted(text: str) -> str:
    """``text`` in quotes for a message: on one line, printable, shortened."""
    shown = "".join(char if char.isprintable() else "?" for char in text[:_SHOWN])
    return f"'{shown}...'" if len(text) > _SHOWN else f"'{shown}'"


def _why_not(text: str) -> str:
    word = text.lower()
    if word.lstrip("+-") in _NOT_FINITE:
        return f"{quoted(text)} is not a finite number"
    if word in _ABSENT:
        return f"{quoted(text)} says that there is no value"
    if _GROUPED.fullmatch(text):
        return f"{quoted(text)} has thousands separators or a decimal comma"
    return f"{quoted(text)} is not a number"
