"""Which cards the words after ``--tags`` mean.

A word is a tag, a model's name (full, or short when that is unambiguous) or ``all``; ``scope/word`` looks only at the
cards of ``scripts/<scope>/``; ``word:key=value:flag`` appends `` --key value --flag`` to the args of what it selects.
Words are separated by commas or blanks; an argument that is a tag or a card's name is taken whole, whatever it holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from madengine.catalog.card import ModelCard
from madengine.catalog.discovery import Catalog, load_updated
from madengine.catalog.index import ALL, CardIndex
from madengine.catalog.problems import CardProblem, ProblemKind
from madengine.catalog.rules import shown
from madengine.core.errors import DiscoveryError

_SEPARATORS = re.compile(r"[,\s]+")
_WARNINGS_SHOWN = 10


@dataclass(frozen=True)
class Term:
    """One word of a selection: what to look for, and the shell text that it appends to the args."""

    pattern: str
    extra: str = ""


@dataclass(frozen=True)
class Selection:
    """What the words mean: ``picks`` in their order, each a card and the shell text to append to its args.

    ``broken`` are problems of cards and files that the words ask for, ``others`` the remaining problems, without
    remarks about cards that are not picked.
    """

    picks: tuple[tuple[ModelCard, str], ...]
    broken: tuple[CardProblem, ...] = ()
    others: tuple[CardProblem, ...] = ()


def select(
    catalog: Catalog,
    tags: Sequence[str],
    *,
    ignore_deprecated: bool = False,
    warn: Callable[[str], None] | None = None,
) -> tuple[ModelCard, ...]:
    """The cards to build or run for the arguments of ``--tags``, extra args appended, generated ones updated.

    A card comes once, unless its extra args differ. Deprecated cards are left out, said through ``warn``, unless
    ``ignore_deprecated``. Broken cards that nobody asked for are only warned about, as are misspelt keys of the cards
    that somebody asked for. Raises DiscoveryError when a word
    matches nothing or several short names, when it asks for a broken card, or when nothing is left.
    """
    say = warn or (lambda _: None)
    selection = choose(catalog, tags)
    if selection.broken:
        raise _broken_error(selection.broken)
    for text in _remarks(selection.others):
        say(text)
    picks = selection.picks
    if not ignore_deprecated:
        picks = tuple(pick for pick in picks if not pick[0].deprecated)
        _tell_deprecated(selection.picks, picks, say)
    updated, problems = load_updated(catalog, [card for card, _ in picks])
    if broken := [problem for problem in problems if problem.is_error]:
        raise _broken_error(broken)
    return finished(picks, updated)


def choose(catalog: Catalog, tags: Sequence[str]) -> Selection:
    """What the arguments of ``--tags`` mean in ``catalog``, broken and deprecated cards included.

    Raises DiscoveryError when there is no word at all, or when one matches nothing or several short names.
    """
    index = CardIndex(catalog.cards)
    suspects = CardIndex([problem.card for problem in catalog.problems if problem.card and problem.is_error])
    terms = [term for argument in tags for term in terms_of(argument, index)]
    if not terms:
        raise _nothing_asked(catalog)
    picks: dict[tuple[str, str], tuple[ModelCard, str]] = {}
    broken: dict[int, CardProblem] = {}
    for term in terms:
        asked_for = _broken_for(catalog, suspects, term.pattern, index)
        broken.update((id(problem), problem) for problem in asked_for)
        cards = _matching(index, term.pattern, catalog, lenient=bool(asked_for))
        picks.update({(card.raw["name"], term.extra): (card, term.extra) for card in cards})
    others = [problem for problem in catalog.problems if id(problem) not in broken]
    return Selection(tuple(picks.values()), tuple(broken.values()), _without_remarks_on_others(others, picks))


def _without_remarks_on_others(
    problems: Sequence[CardProblem], picks: Iterable[tuple[str, str]]
) -> tuple[CardProblem, ...]:
    if not problems:
        return ()
    names = {name for name, _ in picks}
    return tuple(problem for problem in problems if problem.is_error or (problem.card and problem.card.name in names))


def finished(picks: Iterable[tuple[ModelCard, str]], updated: Mapping[str, ModelCard]) -> tuple[ModelCard, ...]:
    """The chosen cards, replaced by their updated form where there is one, with their extra args appended."""
    cards = []
    for card, extra in picks:
        current = updated.get(card.name, card) if updated else card
        cards.append(current.with_fields(args=(current.text("args") + extra).lstrip()) if extra else current)
    return tuple(cards)


def terms_of(argument: str, index: CardIndex) -> list[Term]:
    """The words of one argument of ``--tags``."""
    if not (":" in argument or _SEPARATORS.search(argument)):
        return [Term(argument)] if argument else []
    pattern = _leading_pattern(argument, index)
    if pattern is not None and _SEPARATORS.search(pattern):
        return [_term(argument, pattern)]
    return [_term(word, _leading_pattern(word, index)) for word in _SEPARATORS.split(argument) if word]


def _leading_pattern(text: str, index: CardIndex) -> str | None:
    """The longest text that means a card - a tag, a name - and is ``text``, or stands before one of its colons."""
    end = len(text)
    while end > 0:
        if index.match(text[:end]):
            return text[:end]
        end = text.rfind(":", 0, end)
    return None


def _term(word: str, pattern: str | None) -> Term:
    pattern = word.partition(":")[0] if pattern is None else pattern
    rest = word[len(pattern) :]
    if not pattern:
        raise DiscoveryError(f"{shown(word)} has nothing before the colon", hint="write name:key=value:flag")
    return Term(pattern, "".join(_option(part, word) for part in rest[1:].split(":")) if rest else "")


def _option(part: str, word: str) -> str:
    from madengine.core.shell import quote

    key, has_value, value = part.partition("=")
    if not key:
        raise DiscoveryError(f"{shown(word)} has an extra argument without a name", hint="write name:key=value:flag")
    return f" {quote('--' + key)} {quote(value)}" if has_value else f" {quote('--' + key)}"


def _matching(index: CardIndex, pattern: str, catalog: Catalog, *, lenient: bool) -> Sequence[ModelCard]:
    cards = index.match(pattern)
    if cards or lenient:
        return cards
    namesakes = index.namesakes(pattern)
    if namesakes:
        names = ", ".join(shown(card.name) for card in namesakes[:5]) + (", ..." if len(namesakes) > 5 else "")
        raise DiscoveryError(
            f"{shown(pattern)} is the short name of {len(namesakes)} models", hint=f"give the full name: {names}"
        )
    raise _no_match(pattern, index, catalog)


def _broken_for(catalog: Catalog, suspects: CardIndex, pattern: str, index: CardIndex) -> list[CardProblem]:
    """The problems that stand between a word and what it asks for.

    A broken card counts when the word matches what can be told of it; a file that could not be read counts when the
    word asks for everything in its folder, or for something in it that is not there.
    """
    if not catalog.problems:
        return []
    cards = {id(card) for card in suspects.match(pattern) or suspects.namesakes(pattern)}
    scope, slash, rest = pattern.partition("/")
    found = []
    for problem in catalog.problems:
        if problem.kind is ProblemKind.CARD:
            nameless = problem.card is None and pattern in {ALL, f"{problem.scope}/{ALL}"}
            concerned = nameless or id(problem.card) in cards
        elif problem.kind is ProblemKind.FILE:
            inside = bool(slash) and scope == problem.scope and (rest == ALL or not index.match(pattern))
            concerned = pattern == ALL or inside
        else:
            concerned = False
        if concerned:
            found.append(problem)
    return found


def _broken_error(broken: Sequence[CardProblem]) -> DiscoveryError:
    first = broken[0]
    more = "" if len(broken) == 1 else f"; and {len(broken) - 1} more, which `madengine discover` shows"
    return DiscoveryError(
        f"{first.message}{more}", where=first.where, hint=first.hint or "mend it, or do not select it"
    )


def _no_match(pattern: str, index: CardIndex, catalog: Catalog) -> DiscoveryError:
    unread = [problem for problem in catalog.problems if problem.kind is ProblemKind.FILE]
    files = f"{len(unread)} file{'s' * (len(unread) > 1)} of the package could not be read"
    aside = f"; {files}: {unread[0].where}: {unread[0].message}" if unread else ""
    close = index.closest(pattern)
    hint = f"closest: {', '.join(close)}" if close else "`madengine discover` lists every model with its tags"
    return DiscoveryError(f"no model has the tag or name {shown(pattern)}{aside}", hint=hint)


def _nothing_asked(catalog: Catalog) -> DiscoveryError:
    common = CardIndex(catalog.cards).common_tags(5)
    examples = ", ".join(f"{tag} ({count})" for tag, count in common)
    return DiscoveryError(
        "no model was selected: give --tags a tag, the name of a model, or all",
        hint=f"the most frequent tags here: {examples}" if examples else "`madengine discover` lists the models",
    )


def _tell_deprecated(
    before: Sequence[tuple[ModelCard, str]], after: Sequence[tuple[ModelCard, str]], say: Callable[[str], None]
) -> None:
    """Name the deprecated cards that were left out; DiscoveryError when nothing is left."""
    names = list(dict.fromkeys(card.name for card, _ in before if card.deprecated))
    if not names:
        return
    listed = ", ".join(shown(name) for name in names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
    text = f"left out, because the package marks it as deprecated: {listed}"
    if not after:
        raise DiscoveryError(f"nothing to run: {text}", hint="--ignore-deprecated selects it all the same")
    say(f"{text} (--ignore-deprecated selects it all the same)")


def _remarks(problems: Sequence[CardProblem]) -> list[str]:
    texts = [str(problem) for problem in problems[:_WARNINGS_SHOWN]]
    if len(problems) > _WARNINGS_SHOWN:
        texts.append(f"{len(problems) - _WARNINGS_SHOWN} more problems in the package; `madengine discover` shows them")
    return texts
