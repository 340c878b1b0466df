"""Where one of several texts stands in a large buffer, each kind of text searched for in its fastest way.

A search for a single byte runs at memory speed, one for a text at a tenth of that. So a text is not searched for where
one of its bytes is missing, and texts that share a capital letter are looked at only where that letter stands: one pass
for all of them, unless the letter is as frequent as in a log that is written in capitals.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

_COMMON = b"VWGHKUBLMDFPCSIRNTAOExvkw(_ybp:gfmuchdlrsnioate "  # what logs are made of, rarest first
_SAMPLE = 4 << 10  # bytes that are looked at to tell how frequent a letter is
_FREQUENT = _SAMPLE // 50
_CAPITALS = bytes(range(ord("A"), ord("Z") + 1))


class Search(Protocol):
    """A way of finding texts."""

    def hits(self, buffer: bytearray, start: int, stop: int, end: int) -> Iterator[int]:
        """Where a text begins, in order, from ``start`` and before ``stop``; it may reach as far as ``end``."""


@dataclass(frozen=True)
class OneText:
    """Finds one text."""

    text: bytes

    def hits(self, buffer: bytearray, start: int, stop: int, end: int) -> Iterator[int]:
        """See :class:`Search`."""
        text, limit = self.text, min(stop + len(self.text) - 1, end)
        if any(buffer.find(byte, start, limit) < 0 for byte in _rare_bytes(text)):
            return
        at = buffer.find(text, start, limit)
        while at >= 0:
            yield at
            at = buffer.find(text, at + 1, limit)


@dataclass(frozen=True)
class TextsWithLetter:
    """Finds texts that all hold the same letter, each with the place of that letter in it."""

    places: tuple[tuple[bytes, int], ...]
    pattern: re.Pattern[bytes]

    def hits(self, buffer: bytearray, start: int, stop: int, end: int) -> Iterator[int]:
        """See :class:`Search`."""
        letter = self.pattern.pattern[:1]
        if buffer.count(letter, start, start + _SAMPLE) > _FREQUENT:
            yield from heapq.merge(*(OneText(text).hits(buffer, start, stop, end) for text, _ in self.places))
        else:
            yield from self._around_letters(buffer, start, stop, end)

    def _around_letters(self, buffer: bytearray, start: int, stop: int, end: int) -> Iterator[int]:
        before = max(place for _, place in self.places)
        after = max(len(text) - place for text, place in self.places)
        waiting: list[int] = []
        for match in self.pattern.finditer(buffer, start, min(stop + before + after, end)):
            letter = match.start()
            while waiting and waiting[0] < letter - before:  # no later letter belongs to a text that begins earlier
                yield heapq.heappop(waiting)
            for text, place in self.places:
                at = letter - place
                if start <= at < stop and buffer.startswith(text, at, end):
                    heapq.heappush(waiting, at)
        while waiting:
            yield heapq.heappop(waiting)


def searches_for(texts: Sequence[bytes]) -> tuple[Search, ...]:
    """The searches that together find all of the texts, none of which is empty."""
    letter = max(_CAPITALS, key=lambda byte: sum(byte in text for text in texts))
    together = [text for text in texts if letter in text]
    if len(together) < 2:
        return tuple(map(OneText, texts))
    places = tuple((text, text.index(letter)) for text in together)
    alternatives = b"|".join(_around(text, place) for text, place in places)
    # The letter stands in front, not in the alternatives: then the matcher looks for it as for a single byte.
    pattern = re.compile(b"%c(?:%b)" % (letter, alternatives))
    alone = map(OneText, (text for text in texts if letter not in text))
    return (TextsWithLetter(places, pattern), *alone)


def _around(text: bytes, place: int) -> bytes:
    """An expression for what stands before and behind the letter."""
    before, behind = re.escape(text[:place]), re.escape(text[place + 1 :])
    letter = re.escape(text[place : place + 1])
    return (b"(?<=%b%b)" % (before, letter) if before else b"") + b"(?=%b)" % behind


@lru_cache(maxsize=256)
def _rare_bytes(text: bytes) -> tuple[bytes, ...]:
    """Three of the text's bytes, those that logs hold least often."""
    order = sorted(set(text), key=lambda byte: (_COMMON.find(byte), byte))
    return tuple(bytes((byte,)) for byte in order[:3])
