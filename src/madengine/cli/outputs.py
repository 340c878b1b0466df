"""The files that a command is asked to write beside its results: checked before anything starts, written whole."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from madengine.core.errors import ConfigurationError, MADEngineError

MANIFEST_MARKS = ('"built_images"',)
SUMMARY_MARKS = ('"exit_code"', '"manifest"')
_HEAD = 64 << 10  # bytes


def refuse_unwritable(path: Path | None, marks: Sequence[str] = ()) -> None:
    """Find out before hours of work that the output cannot be written, or would replace somebody's file.

    ``marks`` are keys of which an earlier output of the kind has one at its head; without any, what is there is not
    looked at. Raises ConfigurationError.
    """
    if path is None:
        return
    try:
        problem = _problem_with(path.absolute(), marks)
    except OSError as error:
        problem = str(error.strerror).lower()
    if problem:
        raise ConfigurationError(f"cannot be written: {problem}", where=str(path))


def _problem_with(path: Path, marks: Sequence[str]) -> str:
    if path.is_dir():
        return "it is a folder"
    if os.path.lexists(path):
        return _problem_with_present(path, marks)
    folder = path.parent
    while not folder.exists():
        folder = folder.parent
    writable = folder.is_dir() and os.access(folder, os.W_OK)
    return "" if writable else f"{folder} is no folder that can be written to"


def _problem_with_present(path: Path, marks: Sequence[str]) -> str:
    real = Path(os.path.realpath(path))
    if real != path.absolute() and not os.path.lexists(real):
        return _problem_with(real, marks)
    if not real.is_file():
        return "it is no regular file"
    if not os.access(real, os.W_OK) or not os.access(real.parent, os.W_OK):
        return "there is no permission to replace it"
    with real.open("rb") as file:
        head = file.read(_HEAD)
    if not marks or not head.strip() or any(mark.encode() in head for mark in marks):
        return ""
    return "it is no earlier output of this kind and would be overwritten; choose another name"


def write_document(path: Path, document: Mapping[str, Any]) -> None:
    """Write a JSON document whole, making its folder. Raises MADEngineError."""
    from madengine.core.files import write_atomic

    try:
        path.absolute().parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MADEngineError(f"its folder cannot be made: {error.strerror}", where=str(path)) from error
    write_atomic(path, json.dumps(document, indent=2) + "\n")
