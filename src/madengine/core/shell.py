"""The three dealings with shell text: quote a value into it, expand names in it, split it into words.

Nothing here starts a shell. Commands are argv lists everywhere; text for a shell is only made where a script is
rendered, and each value that goes into one goes through :func:`quote`.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping

from madengine.core.errors import ConfigurationError

_NAME = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")

# POSIX shell grammar, 2.2 Quoting. One match is one piece of a word, or the blanks between two words.
_PIECE = re.compile(
    r"""
      (?P<blanks>[ \t\n]+)
    | '(?P<single>[^']*)'
    | "(?P<double>[^"\\]*(?:\\.[^"\\]*)*)"
    | \\(?P<escaped>.)
    | (?P<plain>[^ \t\n'"\\]+)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPED_IN_DOUBLE_QUOTES = re.compile(r'\\(?:\n|([$`"\\]))')
_UNBALANCED = {
    "'": "has a single quote that is never closed",
    '"': "has a double quote that is never closed",
    "\\": "ends with a backslash that escapes nothing",
}


def quote(value: str | int | os.PathLike[str]) -> str:
    """Returns one word of shell text that a POSIX shell reads back as exactly ``value``.

    This is the only function of the product that quotes. Raises :class:`ConfigurationError` for what no shell word can
    hold: a NUL byte, or an unpaired surrogate that stands for no byte.
    """
    text = str(value) if isinstance(value, int) else os.fspath(value)
    if "\0" in text:
        raise ConfigurationError("a value with a NUL byte cannot be given to a shell", hint="remove the NUL byte")
    if not _encodable(text):
        raise ConfigurationError(
            "a value with an unpaired surrogate (half of a character) cannot be given to a shell",
            hint="write the value as plain UTF-8 text",
        )
    return shlex.quote(text)


def expand(text: str, environment: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """Expands ``$NAME`` and ``${NAME}`` once, from ``environment``, and nothing else.

    Command substitutions, other expansions, quotes and backslashes stay as they are, in ``text`` and in the values. A
    name that is not set gives nothing, as in a shell. Returns the text and the names that were not set, each once, in
    order of appearance.
    """
    unset: dict[str, None] = {}

    def value_of(match: re.Match[str]) -> str:
        name: str = match[1] or match[2]
        if name not in environment:
            unset[name] = None
        return environment.get(name, "")

    return _NAME.sub(value_of, text), tuple(unset)


def is_reference(text: str) -> bool:
    """Whether ``text`` is one ``$NAME`` or ``${NAME}`` and nothing else, so that it holds no value itself."""
    return _NAME.fullmatch(text) is not None


def split_words(text: str) -> tuple[str, ...]:
    """Splits text into words and removes the quotes, as a POSIX shell does, without expanding anything.

    What a shell would take as an operator or a comment (``;``, ``|``, ``#``) is an ordinary character. Raises
    :class:`ConfigurationError` for a quote that is not closed or a backslash at the end; the text itself is not
    repeated in the message, it may hold a secret.
    """
    words: list[str] = []
    word: str | None = None
    for kind, piece in _pieces(text):
        if kind != "blanks":
            word = (word or "") + piece
        elif word is not None:
            words.append(word)
            word = None
    return tuple(words) if word is None else (*words, word)


def rough_words(text: str) -> tuple[str, ...]:
    """The words of a text that may be no command line: split at blanks where the quotes do not match."""
    try:
        return split_words(text)
    except ConfigurationError:
        return tuple(text.split())


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    position = 0
    while position < len(text):
        match = _PIECE.match(text, position)
        if match is None:
            raise ConfigurationError(
                f"the text {_UNBALANCED[text[position]]} (character {position + 1})",
                hint="close the quote, or put a backslash before it when it is meant literally",
            )
        position = match.end()
        if match["escaped"] == "\n":
            continue  # a line that goes on: not even a piece of an empty word
        kind = str(match.lastgroup)
        piece = match[kind]
        yield kind, _ESCAPED_IN_DOUBLE_QUOTES.sub(r"\1", piece) if kind == "double" else piece


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True
