"""Model cards against their schema."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from madengine.core.json_positions import pointer_of
from madengine.schemas import wording
from madengine.schemas.misspelt import Shape, misspelt_keys, schema_shape
from madengine.schemas.problems import Problem
from madengine.schemas.violations import Violation, is_valid, object_at, violations

CARD_LIMIT = 50
"""Problems of one card that are looked for."""


def validate_model_cards(cards: Any, source: str | None = None) -> list[Problem]:  # noqa: ARG001
    """What is wrong with the cards of one ``models.json``, in their order; ``pointer`` begins with the card's index.

    ``source`` names the file. The hint of an error names the card, when it has a name. Warnings of misspelt keys follow
    the errors.
    """
    return [*each_card_problem(cards), *misspelt_in_cards(cards)]


def misspelt_in_cards(cards: Any) -> list[Problem]:
    """A warning for each misspelt key of the cards of one file."""
    return misspelt_keys(Shape(frozenset(), items=schema_shape("model_card")), cards)


def each_card_problem(cards: Any) -> Iterator[Problem]:
    """The errors of :func:`validate_model_cards`, one by one."""
    if not isinstance(cards, list):
        yield Problem("error", "type", "", None, f"found {wording.found(cards)}, allowed: a list of model cards")
        return
    for index, card in enumerate(cards):
        if is_valid("model_card", card) and "slurm" not in card:
            continue
        yield from (_placed(violation, index, card) for violation in islice(card_violations(card), CARD_LIMIT))


def card_violations(card: Any) -> Iterator[Violation]:
    """What is wrong with one card, in document order, and what its fields say against each other."""
    yield from violations("model_card", card)
    yield from nodes_violations(card, ())


def nodes_violations(block: Any, path: tuple[str | int, ...]) -> Iterator[Violation]:
    """The contradiction of ``slurm.nodes`` and ``distributed.nnodes`` in a card or deployment_config."""
    nodes = object_at(object_at(block), "slurm").get("nodes")
    nnodes = object_at(object_at(block), "distributed").get("nnodes")
    if not isinstance(nodes, int) or not isinstance(nnodes, int) or nodes == nnodes:
        return
    yield Violation(
        "nodes-mismatch",
        (*path, "slurm", "nodes"),
        f"slurm.nodes is {nodes} but distributed.nnodes is {nnodes}: "
        "sbatch and the launcher would disagree on the world size",
        found=f"the number {nodes}",
        allowed=f"the number {nnodes}, as in {pointer_of((*path, 'distributed', 'nnodes'))}",
        hint="give both the same number, or leave one out",
    )


def _placed(violation: Violation, index: int, card: Any) -> Problem:
    placed = replace(violation, path=(index, *violation.path))
    name = card.get("name") if isinstance(card, dict) else None
    problem = placed.problem()
    return replace(problem, hint=problem.hint or (f"card {wording.quoted(name)}" if isinstance(name, str) else None))
