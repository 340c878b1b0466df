"""What a person sees: tables and remarks.

Results go to standard output, narration to standard error; a narration that nobody can be told breaks nothing off.
Colour and box drawing appear only on a terminal that wants them (https://no-color.org, ``FORCE_COLOR``,
``TERM=dumb``); elsewhere the same facts are plain aligned text.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import IO, Any

VERDICT_COLOURS = {
    "SUCCESS": ("green", "32"),
    "INCOMPLETE": ("yellow", "33"),
    "NO_METRIC": ("yellow", "33"),
    "FAILURE": ("red", "31"),
    "FAILED": ("red", "31"),
    "SKIPPED": ("dim", "2"),
}
"""The words of outcomes with their colours in a table (rich's name) and in front of a remark (ECMA-48 number)."""

NOBODY_READS = (errno.EPIPE, errno.EIO)
"""What a pipe without a reader and a terminal that was closed answer to who writes to them."""


def wants_colour(stream: IO[str]) -> bool:
    """Whether ``stream`` is a terminal whose reader accepts colours."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return bool(os.environ.get("FORCE_COLOR")) or stream.isatty()


def say(text: str) -> None:
    """Narrate on standard error."""
    narrate(printable(text) + "\n")


def show(text: str) -> None:
    """A result as text on standard output."""
    print(printable(text))


def narrate(piece: str | bytes) -> None:
    """Standard error as it is: what a program prints, a line that moves.

    What cannot be written is dropped. A reader that went away - a terminal that was closed, a pipe - stays away.
    """
    stream = sys.stderr
    if stream is None:
        return
    try:
        if isinstance(piece, bytes):
            stream.buffer.write(piece)
        else:
            stream.write(piece)
        stream.flush()
    except OSError as error:
        if error.errno in NOBODY_READS:
            silence(stream)


def silence(stream: IO[str]) -> None:
    """Nobody reads it any more: what is written to it from now on goes nowhere, and is no error."""
    try:
        number = stream.fileno()
    except OSError:  # it is no file
        return
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123 - pathlib is not loaded for --help
        os.dup2(nowhere.fileno(), number)


def show_done(exit_code: int, show: Callable[[], None]) -> int:
    """Show what is on record already; returns the exit code.

    Where it cannot be shown, a success becomes a failure and every other code stays.
    """
    try:
        show()
        sys.stdout.flush()
    except OSError as error:
        if error.filename is not None:
            raise
        silence(sys.stdout)
        if error.errno != errno.EPIPE:
            fail(f"the output cannot be written: {error.strerror}")
        return exit_code or 1
    return exit_code


def warn(text: str) -> None:
    """A warning on standard error."""
    _labelled("warning", "33", text)


def fail(text: str) -> None:
    """An error on standard error."""
    _labelled("error", "31", text)


def verdict(word: str, text: str) -> None:
    """What became of a run, on standard error, under the word of its outcome."""
    _labelled(word, VERDICT_COLOURS.get(word, ("", "1"))[1], text)


def print_json(document: Any) -> None:
    """One JSON object on standard output."""
    print(json.dumps(document, indent=2, ensure_ascii=True, default=str))


def table(
    headers: Sequence[str], rows: Sequence[Sequence[str]], *, styles: Sequence[str] = (), whole: bool = False
) -> None:
    """A table on standard output; ``styles`` are rich styles of the columns, used on terminals only.

    On a terminal that is too narrow cells fold, unless ``whole``: then the terminal wraps the lines, so that a path in
    a cell can still be copied.
    """
    cells = [row if "".join(row).isprintable() else [printable(cell, keep="") for cell in row] for row in rows]
    if wants_colour(sys.stdout):
        _rich_table(headers, cells, styles, whole)
    else:
        print("\n".join(aligned([list(headers), *cells])))


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines with columns padded to the same width, two blanks apart."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    line = "  ".join(f"{{:<{width}}}" for width in widths).format
    return [line(*row).rstrip() for row in rows]


def printable(text: str, keep: str = "\n\t") -> str:
    """Text with control characters and lone surrogates shown as escapes, so that a name cannot drive a terminal.

    The characters in ``keep`` stay as they are; a cell of a table keeps none.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in keep else char.encode("unicode_escape").decode() for char in text
    )


def _labelled(label: str, colour: str, text: str) -> None:
    shown = f"\x1b[{colour}m{label}:\x1b[0m" if wants_colour(sys.stderr) else f"{label}:"
    narrate(f"{shown} {printable(text)}\n")


def _rich_table(headers: Sequence[str], rows: Sequence[Sequence[str]], styles: Sequence[str], whole: bool) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    view = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, header in enumerate(headers):
        style = styles[number] if number < len(styles) else None
        view.add_column(header, style=style, overflow="fold", no_wrap=whole)
    for row in rows:
        view.add_row(*(Text(cell, style=VERDICT_COLOURS.get(cell, ("",))[0]) for cell in row))
    console = Console(file=sys.stdout, highlight=False, soft_wrap=whole)
    if whole:
        console.width = max(console.width, console.measure(view, options=console.options.update(width=1 << 16)).maximum)
    console.print(view)
