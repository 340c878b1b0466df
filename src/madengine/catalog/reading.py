"""From the documents of one file to model cards and the problems of those that are none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from madengine.catalog.card import CardOrigin, ModelCard
from madengine.catalog.plain import obviously_fine
from madengine.catalog.problems import CardProblem, ProblemKind, index_of
from madengine.catalog.rules import all_plain, name_fault, package_path, path_fault, shown

_PATHS = ("dockerfile", "scripts")


@dataclass(frozen=True)
class CardFile:
    """A file that cards come from; ``scope`` is its folder under ``scripts/``, empty for the package's root."""

    path: Path
    scope: str = ""

    @property
    def base(self) -> str:
        """The folder that the cards' paths are relative to, relative to the package."""
        return f"scripts/{self.scope}" if self.scope else ""

    def problem(self, message: str, *, line: int | None = None, hint: str | None = None) -> CardProblem:
        """A problem of the file as a whole."""
        return CardProblem(ProblemKind.FILE, self.path, message, line=line, hint=hint, scope=self.scope)


def read_cards(documents: Any, source: CardFile) -> tuple[list[ModelCard], list[CardProblem]]:
    """The good cards of a file's document, in their order, and what is wrong with the others.

    The document is taken over, not copied: names and paths are rewritten in place to be relative to the package.
    """
    if not isinstance(documents, list):
        return [], [source.problem(f"found {_kind(documents)}, allowed is a list of model cards")]
    problems = _violations(documents, source)
    if not problems and not source.scope and all_plain(_texts(documents)):
        return [ModelCard(document, CardOrigin(source.path, index)) for index, document in enumerate(documents)], []
    broken = {index_of(problem.pointer) for problem in problems if problem.kind is ProblemKind.CARD}
    cards: list[ModelCard] = []
    for index, document in enumerate(documents):
        if index in broken:
            continue
        faults = _faults(document, source)
        if faults:
            problems += [_problem(documents, source, f"/{index}/{field}", text) for field, text in faults]
        else:
            cards.append(ModelCard(document, CardOrigin(source.path, index), source.scope))
    return cards, problems


def _texts(documents: list[dict[str, Any]]) -> list[str]:
    paths = [document.get(field) for field in _PATHS for document in documents]
    return [document["name"] for document in documents] + list(filter(None, paths))


def _violations(documents: list[Any], source: CardFile) -> list[CardProblem]:
    """What breaks the schema of a model card, and keys that are misspelt."""
    if obviously_fine(documents):
        return []
    from madengine.schemas import validate_model_cards

    return [
        replace(
            _problem(documents, source, found.pointer, found.message),
            kind=ProblemKind.CARD if found.severity == "error" else ProblemKind.REMARK,
            line=found.line,
            hint=found.hint,
        )
        for found in validate_model_cards(documents, str(source.path))
    ]


def _problem(documents: list[Any], source: CardFile, pointer: str, text: str) -> CardProblem:
    index = index_of(pointer)
    document = documents[index] if index is not None and index < len(documents) else None
    return CardProblem(
        ProblemKind.CARD, source.path, text, pointer, card=_remains(document, source), scope=source.scope
    )


def _faults(document: dict[str, Any], source: CardFile) -> Sequence[tuple[str, str]]:
    """Rewrite name and paths of a valid card; what is wrong with them, as (field, sentence)."""
    name = document["name"]
    if fault := name_fault(name):
        return [("name", fault)]
    faults = []
    for field in _PATHS:
        value = document.get(field)
        if not value:
            continue
        path = package_path(value, source.base)
        if path is None:
            faults.append((field, path_fault(value)))
        elif path is not value:
            document[field] = path
    if source.scope and not faults:
        document["name"] = f"{source.scope}/{name}"
    return faults


def _remains(document: Any, source: CardFile) -> ModelCard | None:
    """Name and tags of a broken card, as far as they can be told."""
    if not isinstance(document, dict) or not isinstance(document.get("name"), str):
        return None
    name = document["name"]
    tags = document.get("tags")
    kept = [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else tags
    kept = kept if isinstance(kept, (str, list)) else []
    return ModelCard({"name": f"{source.scope}/{name}" if source.scope else name, "tags": kept}, scope=source.scope)


def hide_duplicates(cards: Sequence[ModelCard]) -> tuple[tuple[ModelCard, ...], list[CardProblem]]:
    """The first card of each name, and a problem that names both places for every further one."""
    if len({card.raw["name"] for card in cards}) == len(cards):
        return tuple(cards), []
    first = {card.name: card for card in reversed(cards)}
    kept = tuple(card for card in cards if first[card.name] is card)
    return kept, [_duplicate(card, first[card.name]) for card in cards if first[card.name] is not card]


def _duplicate(card: ModelCard, winner: ModelCard) -> CardProblem:
    origin, earlier = card.origin, winner.origin
    if origin is None or earlier is None:
        raise ValueError(f"card {card.name} has no origin")
    other = CardProblem(ProblemKind.DUPLICATE, earlier.file, "", f"/{earlier.position}")
    return CardProblem(
        ProblemKind.DUPLICATE,
        origin.file,
        f"the name {shown(card.name)} is already taken by {other.where}, which counts",
        f"/{origin.position}/name",
        card=card,
        scope=card.scope,
    )


def _kind(document: Any) -> str:
    names = {dict: "an object", str: "a string", bool: "true or false", int: "a number", float: "a number"}
    return names.get(type(document), "null")
