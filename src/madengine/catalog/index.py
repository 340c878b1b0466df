"""Finds cards by what a person calls them: tag, full name, short name, folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from madengine.catalog.card import ModelCard

ALL = "all"
_LONGEST_GUESS = 200  # characters of a word that similar ones are looked for


class CardIndex:
    """Cards by name, short name and tag. Each table (word -> positions in ``cards``) is made when first needed."""

    def __init__(self, cards: Sequence[ModelCard]) -> None:
        self.cards = cards

    @cached_property
    def by_name(self) -> dict[str, list[int]]:
        """Full names; one stands for several cards only among broken ones."""
        return _table((card.name,) for card in self.cards)

    @cached_property
    def by_short(self) -> dict[str, list[int]]:
        """Short names."""
        return _table((card.short_name,) for card in self.cards)

    @cached_property
    def by_tag(self) -> dict[str, list[int]]:
        """Tags."""
        return _table(card.tags for card in self.cards)

    def match(self, pattern: str) -> list[ModelCard]:
        """The cards that a word means, in their order: ``all``, tag, full name, unambiguous short name, ``scope/...``.

        A full name wins over short ones. Empty when nothing matches or only an ambiguous short name does.
        """
        if pattern == ALL:
            return list(self.cards)
        found = {*self.by_name.get(pattern, ()), *self.by_tag.get(pattern, ())}
        namesakes = self.by_short.get(pattern, ())
        if pattern not in self.by_name and len(namesakes) == 1:
            found.update(namesakes)
        return [self.cards[position] for position in sorted(found or self._in_scope(pattern))]

    def namesakes(self, pattern: str) -> list[ModelCard]:
        """All cards with this short name."""
        return [self.cards[position] for position in self.by_short.get(pattern, ())]

    def _in_scope(self, pattern: str) -> list[int]:
        scope, _, word = pattern.partition("/")
        if not (scope and word):
            return []
        candidates = range(len(self.cards)) if word == ALL else self.by_tag.get(word, ())
        return [position for position in candidates if self.cards[position].scope == scope]

    def closest(self, pattern: str) -> list[str]:
        """Up to three names, tags or scoped tags that look like ``pattern``."""
        from difflib import get_close_matches

        if len(pattern) > _LONGEST_GUESS:
            return []
        scoped = (f"{card.scope}/{tag}" for card in self.cards if card.scope for tag in (*card.tags, ALL))
        words = {word.lower(): word for word in (*self.by_short, *self.by_name, *self.by_tag, *scoped)}
        return [words[word] for word in get_close_matches(pattern.lower(), words, n=3)]

    def common_tags(self, limit: int) -> list[tuple[str, int]]:
        """The most frequent tags and how many cards have each."""
        counts = {tag: len(positions) for tag, positions in self.by_tag.items()}
        return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:limit]


def _table(words_of_cards: Iterable[Iterable[str]]) -> dict[str, list[int]]:
    table: dict[str, list[int]] = {}
    for position, words in enumerate(words_of_cards):
        for word in words:
            table.setdefault(word, []).append(position)
    return table
