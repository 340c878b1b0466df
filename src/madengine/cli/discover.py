"""``madengine discover``: the model cards of a package, and what is wrong with the others."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from madengine.cli import views
from madengine.cli.constants import ExitCode

if TYPE_CHECKING:
    from madengine.catalog.card import ModelCard
    from madengine.catalog.discovery import Catalog
    from madengine.catalog.problems import CardProblem

_PROBLEMS_SHOWN = 50
_LONGEST_CELL = 120
_listed: list[Catalog] = []  # kept until the process ends: to free ten thousand cards one by one takes 7 ms


@click.command()
@click.option("--tags", "-t", multiple=True, metavar="TAG", help="Tags, names or all; scope/tag looks in one folder.")
@click.option("--model-dir", metavar="FOLDER", help="The model package [default: $MODEL_DIR, else this folder].")
@click.option("--json", "as_json", is_flag=True, help='Print {"models": [...]}, each card with its full name.')
def discover(tags: Sequence[str], model_dir: str | None, as_json: bool) -> int:
    """List the model cards of a package.

    Without --tags all of them. A broken card is named on standard error, the others are listed all the same, and the
    command ends with exit code 4.
    """
    import gc

    collecting = gc.isenabled()
    gc.disable()  # read, print, end: nothing becomes garbage, and looking for it would take half of the time
    try:
        return _list(tags, model_dir, as_json)
    finally:
        if collecting:
            gc.freeze()  # nor is there garbage among what is kept for the end
            gc.enable()


def _list(tags: Sequence[str], model_dir: str | None, as_json: bool) -> int:
    from madengine.catalog.discovery import discover as find
    from madengine.catalog.discovery import package_root

    catalog = find(package_root(model_dir, os.environ))
    _listed[:] = [catalog]
    cards, problems = _chosen(catalog, tags)
    if as_json:
        _print_json(cards)
    elif cards:
        _print_table(cards)
    _report(problems)
    views.say(_count(cards, catalog))
    return ExitCode.INVALID_ARGS if any(problem.is_error for problem in problems) else ExitCode.SUCCESS


def _chosen(catalog: Catalog, tags: Sequence[str]) -> tuple[Sequence[ModelCard], Sequence[CardProblem]]:
    if not tags:
        return catalog.cards, catalog.problems
    from madengine.catalog.discovery import load_updated
    from madengine.catalog.selection import choose, finished

    selection = choose(catalog, tags)
    updated, problems = load_updated(catalog, [card for card, _ in selection.picks])
    return finished(selection.picks, updated), [*selection.broken, *selection.others, *problems]


def _print_json(cards: Sequence[ModelCard]) -> None:
    """One object, a key a line, so that it can be read and compared: still one call of the encoder written in C."""
    import json

    encoder = json.JSONEncoder(check_circular=False, separators=(",\n", ": "))
    sys.stdout.write('{"models": ')
    sys.stdout.write(encoder.encode([card.raw for card in cards]))
    sys.stdout.write("}\n")


def _print_table(cards: Sequence[ModelCard]) -> None:
    headers = ["NAME", "TAGS", "GPUS", "PRECISION"]
    rows = [_row(card) for card in cards]
    if any(card.raw.get("deprecated") for card in cards):
        headers.append("NOTE")
        rows = [[*row, "deprecated" if card.deprecated else ""] for row, card in zip(rows, cards, strict=True)]
    views.table(headers, rows, styles=("bold", "cyan", "", "", "yellow"))


def _row(card: ModelCard) -> list[str]:
    """Read from the raw card, because ten thousand of these are a third of what listing them costs."""
    tags = card.raw.get("tags")
    words = " ".join(tags if isinstance(tags, list) else card.tags)
    precision = card.text("training_precision")
    if len(words) + len(precision) > _LONGEST_CELL or not (words + precision).isprintable():
        words, precision = _cell(words), _cell(precision)
    gpus = card.text("n_gpus").strip()
    return [card.raw["name"], words, "all" if gpus[:1] in {"", "-"} else gpus, precision]


def _cell(text: str) -> str:
    """What fits on one line of a table; --json has the whole."""
    if len(text) > _LONGEST_CELL:
        text = text[:_LONGEST_CELL] + "..."
    return views.printable(text.replace("\n", "\\n").replace("\t", "\\t"))


def _report(problems: Sequence[CardProblem]) -> None:
    for problem in problems[:_PROBLEMS_SHOWN]:
        (views.fail if problem.is_error else views.warn)(str(problem))
    if len(problems) > _PROBLEMS_SHOWN:
        views.say(f"... and {len(problems) - _PROBLEMS_SHOWN} more problems")


def _count(cards: Sequence[ModelCard], catalog: Catalog) -> str:
    number = len(cards)
    whole = "" if number == len(catalog.cards) else f" of {len(catalog.cards)}"
    return f"{number}{whole} model{'' if number == 1 and not whole else 's'} in {catalog.root}"
