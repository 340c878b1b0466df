"""The text of an environment file: what is wrong with it before it runs, and which of its words nobody may see."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from madengine.core.errors import ConfigurationError

SIZE_LIMIT = 4 * 1024 * 1024
"""Bytes. Real files have some thousand."""

_SHOWN = 3

# The dialects of MAD's templates. What is in angle brackets would be a redirection from, and to, a file.
_PLACEHOLDER = re.compile(
    r"<(?:FILL|OPTIONAL)(?![a-z0-9])[^<>\n]*>?|<(?:supply|your)-[^<>\s]*>"
    r"|(?<![\w-])CHANGE[-_]?ME(?![\w-])|(?<![\w-])SITE-[A-Z][A-Z0-9_-]*"
)

# Of a shell text: a comment, or what a comment cannot begin in. ``#`` is one only where a word would begin.
_QUOTED_OR_COMMENT = re.compile(
    r"""\\. | '[^']*' | "(?:[^"\\]|\\.)*" | (?P<comment>(?:(?<=[\s;&|()])|\A)\#[^\n]*)""", re.VERBOSE | re.DOTALL
)

_ASSIGNMENT = re.compile(r"(?:(?<=[\s;&|({])|\A)([A-Za-z_][A-Za-z0-9_]*)\+?=", re.ASCII)
_DECLARATION = re.compile(
    r"^[ \t]*(?:export|declare|typeset|readonly)[ \t]+(?:-\w+[ \t]+)*([A-Za-z_]\w*)[ \t]+(?=\S)", re.MULTILINE
)
_VALUE = re.compile(
    r"""[ \t]*(?:\$?"(?P<double>(?:[^"\\]|\\.)*)"?|\$?'(?P<single>[^']*)'?)?(?P<rest>[^\n]*)""", re.DOTALL
)
_COMMAND = re.compile(r"\$\(|`|\$\{|\$[A-Za-z_]")


def read_env_text(path: Path) -> str:
    """The text of the file. Raises :class:`ConfigurationError` for what is no readable text file."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            kind = "a folder" if stat.S_ISDIR(status.st_mode) else "no regular file"
            raise ConfigurationError(f"the env_file is {kind}", where=str(path), hint="it has to be a shell file")
        if status.st_size > SIZE_LIMIT:
            raise ConfigurationError(
                f"the env_file is larger than {SIZE_LIMIT // 1024 // 1024} MiB",
                where=str(path),
                hint="is it the right file?",
            )
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise ConfigurationError(
            "the env_file does not exist", where=str(path), hint="a relative path is relative to the manifest"
        ) from error
    except OSError as error:
        raise ConfigurationError(f"the env_file cannot be read: {error.strerror}", where=str(path)) from error
    return data.decode("utf-8", "surrogateescape")


def check_text(text: str, path: Path) -> None:
    """Raises :class:`ConfigurationError` for a text that bash would misunderstand, before bash sees it."""
    if "\0" in text:
        raise ConfigurationError("the env_file is binary or UTF-16, not plain text", where=str(path))
    if text.startswith("\ufeff"):
        raise ConfigurationError(
            "the env_file begins with a byte-order mark, which bash takes for a command",
            where=f"{path}:1",
            hint="save it as UTF-8 without BOM",
        )
    if "\r\n" in text or text.endswith("\r"):
        line = text.count("\n", 0, text.index("\r")) + 1
        raise ConfigurationError(
            "the env_file has Windows line ends (CRLF): every value would end in a carriage return",
            where=f"{path}:{line}",
            hint="convert it with `dos2unix FILE` or `sed -i 's/\\r$//' FILE`",
        )
    unfilled = unfilled_placeholders(text)
    if unfilled:
        shown = "; ".join(f"line {line}: {found}" for line, found in unfilled[:_SHOWN])
        more = f"; and {len(unfilled) - _SHOWN} more" if len(unfilled) > _SHOWN else ""
        raise ConfigurationError(
            f"the env_file is a template with values that are not filled in: {shown}{more}",
            where=f"{path}:{unfilled[0][0]}",
            hint="fill them in; nothing was executed",
        )


def unfilled_placeholders(text: str) -> list[tuple[int, str]]:
    """Placeholders of a template that stand in the file's code, not in a comment: line number and text of each."""
    code = _QUOTED_OR_COMMENT.sub(lambda part: "" if part["comment"] else part[0], text)
    return [(code.count("\n", 0, found.start()) + 1, found[0]) for found in _PLACEHOLDER.finditer(code)]


def masked_message(message: str, text: str, environment: Mapping[str, str]) -> str:
    """What bash or the file printed, without secrets and without what is assigned to any name of the file."""
    from madengine.core.redact import MASK, Redactor, secret_values

    names = "|".join(sorted({found[1] for found in _ASSIGNMENT.finditer(text)}))
    if names:
        message = re.sub(rf"\b({names})(\+?=)[^\n]+", rf"\1\2{MASK}", message)
    return Redactor([*secret_values(environment), *_secret_words(text)]).text(message)


def _secret_words(text: str) -> Iterator[str]:
    """What the text gives to names that are secret, whole and word by word: bash may quote any of it."""
    from madengine.core.redact import is_secret_name

    for name in (*_ASSIGNMENT.finditer(text), *_DECLARATION.finditer(text)):
        value = _VALUE.match(text, name.end())
        if value is None or not is_secret_name(name[1]):
            continue
        written_out = [part for part in (value["double"], value["rest"]) if part and not _COMMAND.search(part)]
        for part in (value["single"] or "", *written_out):
            yield from (word.strip("'\"()`; ") for word in (part, *part.split()))
