"""Listing ten thousand model cards."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.cards import cards
from benchmarks.measure import Result, command, interleaved, program, require

COUNT = 10_000
LOAD = "import json; json.load(open('models.json'))"


def measure(folder: Path) -> Iterator[Result]:
    """``discover --tags all``, as a table and as JSON, against a fresh interpreter that parses the file."""
    (folder / "models.json").write_text(json.dumps(cards(COUNT), indent=4))
    table = command([program(), "discover", "--tags", "all"], cwd=folder)
    document = command([program(), "discover", "--tags", "all", "--json"], cwd=folder)
    require(table().count(b"\n") == COUNT + 1, "a header and a line for each card")
    require(len(json.loads(document())["models"]) == COUNT, "every card in the JSON")
    bare, listed, dumped = interleaved(command([sys.executable, "-c", LOAD], cwd=folder), table, document)
    against = "json.load of the file in a fresh python"
    yield Result("discover of 10,000 cards", against, listed, bare, "s", 3 * bare, "<= 3x")
    yield Result("discover --json of 10,000 cards", against, dumped, bare, "s", 3 * bare, "<= 3x")
