"""What GitHub Actions is told: annotations as workflow commands, and a table in the summary of the step.

Both say what the command shows anyway. GitHub reads workflow commands on standard output and standard error; they are
written only where ``GITHUB_ACTIONS`` is set, the table where ``GITHUB_STEP_SUMMARY`` names a file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from madengine.cli import views

Severity = Literal["error", "warning"]
Annotation = tuple[Severity, str, str]
"""Severity, title, text."""

ACTIONS = "GITHUB_ACTIONS"
SUMMARY_FILE = "GITHUB_STEP_SUMMARY"
_MARKUP = re.compile(r"[\\`*_\[\]<>&~#$]")


def command(severity: Severity, text: str, **properties: str | int) -> str:
    """A workflow command, one line whatever the text and the ``properties`` (``title``, ``file``, ``line``) hold."""
    given = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    return views.printable(f"::{severity} {given}::{_data(text)}", keep="")


def annotate(annotations: Iterable[Annotation], environ: Mapping[str, str]) -> None:
    """Write annotations on standard error, for standard output may be a JSON document."""
    if not environ.get(ACTIONS):
        return
    for severity, title, text in annotations:
        views.say(command(severity, text, title=title))


def append_summary(
    title: str, headers: Sequence[str], rows: Iterable[Sequence[str]], environ: Mapping[str, str]
) -> None:
    """Append a table to the step's summary; where it cannot be written, this is a warning and nothing more."""
    path = environ.get(SUMMARY_FILE)
    if not path:
        return
    try:
        # Without waiting: a pipe that nobody reads must not hold up the end of a command.
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
        with os.fdopen(descriptor, "a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(markdown(title, headers, rows))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        views.warn(f"the summary for GitHub cannot be written: {reason} ({SUMMARY_FILE}={path})")


def markdown(title: str, headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A heading and a table, in which no text is markup."""
    lines = [headers, ["---"] * len(headers), *([_cell(cell) for cell in row] for row in rows)]
    return f"\n### {_cell(title)}\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines) + "\n"


def _cell(text: str) -> str:
    return _MARKUP.sub(r"\\\g<0>", views.printable(text, keep="")).replace("|", "&#124;")


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
