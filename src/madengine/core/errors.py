"""The errors a user can meet, each with the exit code that a command ends with.

An error says what is wrong, where (file, line, JSON pointer) and what to do about it. Everything the product
raises on purpose is a :class:`MADEngineError`; anything else is a defect of the product.
"""

from __future__ import annotations


class MADEngineError(Exception):
    """Base of all errors that madengine raises on purpose.

    ``message`` is one sentence that says what is wrong, ``where`` the place (``file:line`` or ``file#/pointer``),
    ``hint`` what the reader can do about it. ``str()`` joins what there is on one line.
    """

    exit_code = 1

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        text = f"{_on_one_line(self.where)}: {self.message}" if self.where else self.message
        return f"{text} ({self.hint})" if self.hint else text


def _on_one_line(place: str) -> str:
    """A place with its control characters as escapes: keys of a document, and so its pointers, may hold any."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in place)


class ConfigurationError(MADEngineError):
    """An argument, option, variable or file that cannot be used as it is. Nothing was started."""

    exit_code = 4


class ValidationError(ConfigurationError):
    """A document breaks its contract.

    ``source`` is the file (or what the caller named it), ``pointer`` the RFC 6901 JSON pointer of the first
    violation, ``found`` and ``allowed`` say what stands there and what may.
    """

    def __init__(
        self,
        message: str,
        *,
        source: str | None = None,
        pointer: str = "",
        found: str = "",
        allowed: str = "",
        hint: str | None = None,
    ) -> None:
        place = f"{source or 'document'}#{pointer}"
        super().__init__(message, where=place, hint=hint)
        self.source = source
        self.pointer = pointer
        self.found = found
        self.allowed = allowed


class DiscoveryError(ConfigurationError):
    """The model package, a card or a tag is not usable or not there."""


class BuildError(MADEngineError):
    """An image could not be built or made available."""

    exit_code = 2


class ExecutionError(MADEngineError):
    """A run could not be carried out."""

    exit_code = 3
