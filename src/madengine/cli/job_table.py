"""The live table of jobs: what a person sees on a terminal while a scheduler has the runs.

It is drawn over itself at each look. Where lines cannot be drawn over, each change is a line (``cli.job_lines``).
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from madengine.cli import views
from madengine.cli.run_view import seconds

HEADERS = ("model", "job", "state", "nodes", "elapsed", "reason")
ELASTIC = (0, 3, 5)  # the columns that shrink on a narrow terminal: model, nodes, reason
LEAST = 8  # characters to which they shrink
GAP = "  "
CUT = "..."
COLOURS = {"running": "32", "pending": "33"}  # numbers of ECMA-48, by the small letters of a state


class JobRow(NamedTuple):
    """One run of the table; ``elapsed`` is in seconds, None before it began."""

    model: str
    job: str = ""
    state: str = ""
    nodes: str = ""
    elapsed: float | None = None
    reason: str = ""

    def cells(self) -> list[str]:
        """The texts under ``HEADERS``, safe for a terminal."""
        texts = (self.model, self.job, self.state, self.nodes, _age(self.elapsed), self.reason)
        return [views.printable(text, keep="") for text in texts]


def table_lines(rows: Sequence[JobRow], width: int, height: int) -> list[str]:
    """The table in at most ``height`` lines (three at least) of at most ``width`` cells.

    Of more runs than there is room for those come first that neither wait nor run, then those that run.
    """
    shown, rest = _fitting(rows, max(1, height - 1))
    cells = [row.cells() for row in shown]
    widths = _widths([list(HEADERS), *cells], width)
    lines = [_dim(_line(HEADERS, widths, width))]
    lines += [_coloured(_line(texts, widths, width), texts[2]) for texts in cells]
    if rest:
        lines.append(_clipped(_remainder(rest), width))
    return lines


class Screen:
    """The last lines of standard error, which are drawn over."""

    def __init__(self) -> None:
        self._drawn = 0

    def draw(self, rows: Sequence[JobRow]) -> None:
        """The table instead of the one that is there."""
        size = shutil.get_terminal_size()
        lines = table_lines(rows, size.columns - 1, size.lines - 1) if rows else []
        views.narrate(self._back() + "".join(f"{line}\n" for line in lines))
        self._drawn = len(lines)

    def say(self, text: str) -> None:
        """A line that stays, in place of the table."""
        views.narrate(self._back())
        self._drawn = 0
        views.say(text)

    def _back(self) -> str:
        return f"\x1b[{self._drawn}A\r\x1b[J" if self._drawn else ""


def _age(elapsed: float | None) -> str:
    if elapsed is None:
        return ""
    return f"{elapsed:.0f} s" if elapsed < 60 else seconds(elapsed)


def _fitting(rows: Sequence[JobRow], room: int) -> tuple[list[JobRow], list[JobRow]]:
    if len(rows) <= room:
        return list(rows), []
    ordered = sorted(rows, key=lambda row: {"running": 1, "pending": 2}.get(row.state.lower(), 0))
    room = max(1, room - 1)
    return ordered[:room], ordered[room:]


def _remainder(rest: Sequence[JobRow]) -> str:
    states = Counter(row.state for row in rest if row.state)
    counts = ", ".join(f"{count} {views.printable(state, keep='')}" for state, count in states.most_common())
    return f"... and {len(rest)} more: {counts}" if counts else f"... and {len(rest)} more"


def _widths(rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """The columns' widths; the widest of the elastic ones gives way first."""
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    excess = sum(widths) + len(GAP) * (len(widths) - 1) - width
    while excess > 0:
        column = max(ELASTIC, key=widths.__getitem__)
        if widths[column] <= LEAST:
            break
        widths[column] -= 1
        excess -= 1
    return widths


def _line(texts: Sequence[str], widths: Sequence[int], width: int) -> str:
    return _clipped(GAP.join(map(_cell, texts, widths)).rstrip(), width)


def _cell(text: str, room: int) -> str:
    """The text in ``room`` cells. One that is too long loses its middle: names of models often differ at their end."""
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) <= room:
        return set_cell_size(text, room)
    end = text[len(text) - (room - len(CUT)) // 2 :]
    while end and cell_len(end) > room // 2:
        end = end[1:]
    return set_cell_size(text, room - len(CUT) - cell_len(end)) + CUT + end


def _clipped(text: str, width: int) -> str:
    from rich.cells import cell_len, set_cell_size

    return text if cell_len(text) <= width else set_cell_size(text, max(0, width))


def _dim(line: str) -> str:
    return f"\x1b[2m{line}\x1b[0m"


def _coloured(line: str, state: str) -> str:
    """The line with the colour of its state."""
    number = COLOURS.get(state.lower())
    return f"\x1b[{number}m{line}\x1b[0m" if number else line
