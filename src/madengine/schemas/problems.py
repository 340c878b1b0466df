"""What is wrong with a document, as a value."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

PROBLEM_LIMIT = 1000
"""Problems of one document that are looked for. Nobody mends more in one go."""

Severity = Literal["error", "warning"]


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a document.

    ``code`` names the sort of problem for programs ("type", "required", "unfilled-template"...). ``pointer`` is the
    RFC 6901 JSON pointer of the place, empty for the document as a whole and for files that are not JSON. ``line``
    counts from 1; it is None while nobody has looked it up. ``hint`` says what to do.
    """

    severity: Severity
    code: str
    pointer: str
    line: int | None
    message: str
    hint: str | None = None

    @property
    def is_error(self) -> bool:
        """Whether a run would refuse the document because of this."""
        return self.severity == "error"

    def sentence(self, source: str) -> str:
        """The problem on one line, with the file and the pointer in front."""
        text = f"{source}#{self.pointer}: {self.message}"
        return f"{text} ({self.hint})" if self.hint else text

    def to_dict(self) -> dict[str, Any]:
        """The problem as ``madengine validate --json`` prints it."""
        return asdict(self)
