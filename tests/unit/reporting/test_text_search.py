"""Searching a buffer for several texts at once."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from madengine.reporting.text_search import OneText, TextsWithLetter, searches_for

TEXTS = st.lists(st.text("AEab:(.", min_size=1, max_size=5).map(str.encode), min_size=1, max_size=6, unique=True)


def test_texts_with_a_capital_letter_in_common_are_searched_together() -> None:
    together, alone = searches_for([b"Error:", b"out of memory", b"SystemExit", b"FAILED"])
    assert isinstance(together, TextsWithLetter)
    assert together.places == ((b"Error:", 0), (b"SystemExit", 6), (b"FAILED", 4))
    assert alone == OneText(b"out of memory")


@pytest.mark.parametrize("texts", [[], [b"FAILED"], [b"failed", b"stopped"], [b"Alpha", b"Beta"]])
def test_texts_with_nothing_in_common_are_searched_one_by_one(texts: list[bytes]) -> None:
    assert searches_for(texts) == tuple(map(OneText, texts))


def test_places_come_in_order_though_the_letter_stands_elsewhere_in_each_text() -> None:
    (search,) = searches_for([b"FAILED", b"EDGE", b"LED"])
    assert list(search.hits(bytearray(b"FAILED EDGE FAILEDGE"), 0, 20, 20)) == [0, 3, 7, 12, 15, 16]


def test_a_text_begins_before_the_stop_and_may_reach_beyond_it() -> None:
    for search in (*searches_for([b"FAILED", b"Error"]), OneText(b"FAILED")):
        assert list(search.hits(bytearray(b"FAILED"), 0, 1, 6)) == [0]
        assert list(search.hits(bytearray(b"FAILED"), 0, 6, 5)) == []
        assert list(search.hits(bytearray(b"FAILED"), 1, 6, 6)) == []


@settings(max_examples=200, deadline=None)
@given(TEXTS, st.lists(st.sampled_from("AEab:(."), max_size=60), st.tuples(*[st.integers(0, 60)] * 3))
def test_the_places_are_those_of_a_plain_comparison(
    texts: list[bytes], letters: list[str], bounds: tuple[int, int, int]
) -> None:
    data = "".join(letters).encode()
    start, stop, end = sorted(min(bound, len(data)) for bound in bounds)
    for search in searches_for(texts):
        found = list(search.hits(bytearray(data), start, stop, end))
        own = [search.text] if isinstance(search, OneText) else [text for text, _ in search.places]  # type: ignore[attr-defined]
        plain = [at for at in range(start, stop) if any(data.startswith(text, at, end) for text in own)]
        assert found == sorted(found)
        assert sorted(set(found)) == plain


def test_a_letter_that_is_everywhere_is_not_searched_for(monkeypatch: pytest.MonkeyPatch) -> None:
    (search,) = searches_for([b"FAILED", b"Error"])
    data = bytearray(b"E" * 5000 + b" FAILED Error" + b"E" * 5000 + b"FAILED")
    monkeypatch.setattr(TextsWithLetter, "_around_letters", None)
    assert list(search.hits(data, 0, len(data), len(data))) == [5001, 5008, len(data) - 6]
