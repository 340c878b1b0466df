"""Reading numbers that others wrote."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from madengine.reporting.numbers import NotANumber, quoted, read_number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5.0),
        ("+5", 5.0),
        ("-5.25", -5.25),
        ("5.", 5.0),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("1E+3", 1000.0),
        ("1.5e-3", 0.0015),
        ("  7\t", 7.0),
        ("0", 0.0),
        ("68.20421075018477", 68.20421075018477),
        ("1e308", 1e308),
    ],
)
def test_a_plain_number_is_read(text: str, value: float) -> None:
    assert read_number(text) == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the value is empty"),
        (" \t", "the value is empty"),
        ("nan", "'nan' is not a finite number"),
        ("NaN", "'NaN' is not a finite number"),
        ("-inf", "'-inf' is not a finite number"),
        ("+Infinity", "'+Infinity' is not a finite number"),
        ("N/A", "'N/A' says that there is no value"),
        ("NA", "'NA' says that there is no value"),
        ("None", "'None' says that there is no value"),
        ("null", "'null' says that there is no value"),
        ("-", "'-' says that there is no value"),
        ("--", "'--' says that there is no value"),
        ("1e999", "'1e999' is too large for a number"),
        ("-1e999", "'-1e999' is too large for a number"),
        ("1,234", "'1,234' has thousands separators or a decimal comma"),
        ("-1,234.5", "'-1,234.5' has thousands separators or a decimal comma"),
        ("+1_000_000", "'+1_000_000' has thousands separators or a decimal comma"),
        ("1 000", "'1 000' has thousands separators or a decimal comma"),
        ("1'000", "'1'000' has thousands separators or a decimal comma"),
        ("12,5", "'12,5' has thousands separators or a decimal comma"),
        ("1.2.3", "'1.2.3' is not a number"),
        ("5ms", "'5ms' is not a number"),
        ("0x10", "'0x10' is not a number"),
        ("1e", "'1e' is not a number"),
        (".", "'.' is not a number"),
        ("٣", "'٣' is not a number"),
        ("OOM", "'OOM' is not a number"),
    ],
)
def test_anything_else_is_refused_with_its_reason(text: str, reason: str) -> None:
    assert read_number(text) == NotANumber(reason)


def test_a_quotation_is_short_and_printable() -> None:
    assert quoted("a\x00b\nc") == "'a?b?c'"
    assert quoted("x" * 40) == "'" + "x" * 40 + "'"
    assert quoted("x" * 41) == "'" + "x" * 40 + "...'"


@settings(deadline=None)
@given(st.text(max_size=60))
def test_any_text_gives_a_finite_number_or_a_reason(text: str) -> None:
    value = read_number(text)
    assert value.reason if isinstance(value, NotANumber) else math.isfinite(value)


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_what_python_writes_is_read_back(value: float) -> None:
    assert read_number(repr(value)) == value
