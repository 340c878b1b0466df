"""The error patterns of a log and the lines that are known to be harmless, compiled once before a run starts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from madengine.core.errors import ConfigurationError
from madengine.reporting.text_search import Search, searches_for

DEFAULT_PATTERNS = (
    "OutOfMemoryError",
    "HIP out of memory",
    "CUDA out of memory",
    "RuntimeError:",
    "AssertionError:",
    "ValueError:",
    "SystemExit",
    "failed (exitcode:",
    "Traceback (most recent call last)",
    "FAILED",
    "Exception:",
    "ImportError:",
    "ModuleNotFoundError:",
)
REGEX_REACH = 4 << 10  # bytes of a line that an own expression sees at once: a bad one costs their square at least
DEFAULT_BENIGN = ("[rocprofv3]", "FutureWarning", "rpd_tracer")

# rocprof's own log: glog with an eight-digit date and a C++ source file. The four-digit date of PyTorch's elastic
# agent is left out on purpose: "E1201 ... api.py:826] failed (exitcode: 1)" is a real failure.
_BENIGN_LINES = (
    re.compile(rb"^\s*[EW][0-9]{8} [0-9:.]+ .*\.(?:cpp|cc|hpp):[0-9]+\]"),
    re.compile(rb"metrics[-_ ]?exporter", re.IGNORECASE),
)
# Substrings that several patterns share: one search for them replaces several.
_SHARED_PROBES = (b"Error:", b" out of memory")
_META = frozenset(".^$*+?{}[]\\|()")


class ScanRules(Protocol):
    """What the card and the context say about the log scan, see CONTRACTS 6. ``patterns`` None means the defaults."""

    @property
    def enabled(self) -> bool:
        """Whether the log is searched for error patterns at all."""

    @property
    def benign(self) -> Sequence[str]:
        """Literal texts whose lines are harmless, in addition to the known ones."""

    @property
    def patterns(self) -> Sequence[str] | None:
        """Error patterns that replace the default ones."""


@dataclass(frozen=True)
class Pattern:
    """One error pattern: the text as it was written, and the regular expression when it is more than literal text."""

    text: str
    literal: bytes
    regex: re.Pattern[str] | None = None

    def matches(self, line: bytes) -> bool:
        """Whether the line holds the literal text or matches the expression."""
        if self.literal in line:
            return True
        if self.regex is None:
            return False
        return self.regex.search(line[:REGEX_REACH].decode("utf-8", "replace")) is not None


@dataclass(frozen=True)
class CompiledRules:
    """Rules ready for scanning. ``probes`` find substrings of which every literal match holds at least one."""

    patterns: tuple[Pattern, ...]
    benign: tuple[bytes, ...]
    probes: tuple[Search, ...]
    regexes: tuple[Pattern, ...]

    def match(self, line: bytes) -> Pattern | None:
        """The first pattern that the line matches, None for a harmless line."""
        found = next((pattern for pattern in self.patterns if pattern.matches(line)), None)
        return None if found is None or self.is_benign(line) else found

    def match_regex(self, line: bytes) -> Pattern | None:
        """As :meth:`match`, for lines that match at least one of the expressions."""
        return self.match(line) if any(pattern.matches(line) for pattern in self.regexes) else None

    def is_benign(self, line: bytes) -> bool:
        """Whether the line is known to be harmless."""
        return any(text in line for text in self.benign) or any(known.search(line) for known in _BENIGN_LINES)


def compile_rules(rules: ScanRules) -> CompiledRules:
    """The rules, checked. A switched-off scan has no patterns.

    An own pattern matches as literal text, and as a regular expression besides. Raises
    :class:`ConfigurationError` naming the pattern that is empty, no text or no valid expression.
    """
    texts = DEFAULT_PATTERNS if rules.patterns is None else tuple(rules.patterns)
    benign = tuple(_text(text, "log_error_benign_patterns").encode("utf-8", "replace") for text in rules.benign)
    patterns = tuple(_pattern(text) for text in texts) if rules.enabled else ()
    return CompiledRules(
        patterns=patterns,
        benign=tuple(text.encode() for text in DEFAULT_BENIGN) + benign,
        probes=_probes([pattern.literal for pattern in patterns]),
        regexes=tuple(pattern for pattern in patterns if pattern.regex is not None),
    )


def _pattern(text: object) -> Pattern:
    checked = _text(text, "log_error_patterns")
    literal = checked.encode("utf-8", "replace")
    if checked in DEFAULT_PATTERNS or not _META.intersection(checked):
        return Pattern(checked, literal)
    try:
        return Pattern(checked, literal, re.compile(checked))
    except (re.error, OverflowError, RecursionError) as error:
        raise ConfigurationError(
            f"log_error_patterns holds {checked!r}, which is no valid regular expression: {error}",
            hint=f"for that literal text write {re.escape(checked)!r}",
        ) from None


def _text(text: object, field: str) -> str:
    if not isinstance(text, str) or not text.strip():
        raise ConfigurationError(
            f"{field} holds {text!r}, where a text that is not empty belongs",
            hint="remove it or write what to look for",
        )
    return text


def _probes(literals: Sequence[bytes]) -> tuple[Search, ...]:
    probes: dict[bytes, None] = {}
    for literal in literals:
        shared = next((probe for probe in _SHARED_PROBES if probe in literal), None)
        alone = shared is None or sum(shared in other for other in literals) == 1
        probes[literal if alone or shared is None else shared] = None
    return searches_for(tuple(probes))
