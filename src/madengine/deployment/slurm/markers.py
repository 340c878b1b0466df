"""``node.status``: what each node leaves when its part is over. A line for each fact, ``name=value``.

A marker that is cut, of another run or of an earlier attempt is none: it is said where it lies and why it does not
count. Thousands of them are looked at while a run is polled, so the reading is plain: one open, one read.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from madengine.deployment.slurm.layout import MARKER

_LIMIT = 4096  # bytes; a marker has some 150
_HIGHEST_CODE = 255


@dataclass(frozen=True)
class Marker:
    """A node's own word: its host, and the exit code of its part of the run."""

    host: str
    exit_code: int
    attempt: int = 0


def read_marker(folder: str, run_id: str, attempt: int | None = None) -> Marker | str:
    """The marker in a node's folder, or why there is none. ``attempt`` None takes that of any attempt."""
    path = f"{folder}/{MARKER}"
    content = _content(path)
    if isinstance(content, str):
        return content
    facts = _facts(content)
    why = _rejection(facts, content, run_id, attempt)
    if why:
        return f"{path} {why}"
    return Marker(facts.get("host", ""), int(facts["exit_code"]), int(facts.get("attempt") or 0))


def markers_present(run_dir: Path, run_id: str, ranks: int, attempt: int | None = None) -> frozenset[int]:
    """The ranks whose marker of this run and attempt is there."""
    root = str(run_dir)
    found = (rank for rank in range(ranks) if isinstance(read_marker(f"{root}/node_{rank}", run_id, attempt), Marker))
    return frozenset(found)


def _content(path: str) -> bytes | str:
    try:
        # Neither a pipe nor a link that somebody put there is waited for or followed.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return f"there is no {path}"
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}"
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return f"{path} is no file"
        return os.read(descriptor, _LIMIT)
    except OSError as error:
        return f"{path} cannot be read: {error.strerror}"
    finally:
        os.close(descriptor)


def _facts(content: bytes) -> dict[str, str]:
    lines = content.decode("utf-8", "replace").splitlines()
    pairs = (line.partition("=") for line in lines)
    return {name.strip(): value.strip() for name, separator, value in pairs if separator}


def _rejection(facts: dict[str, str], content: bytes, run_id: str, attempt: int | None) -> str:
    """Why the marker does not count, empty when it does."""
    if not content:
        return "is empty"
    if not content.endswith(b"\n") or not facts.get("timestamp") or "run" not in facts:
        return "is cut off"
    if facts["run"] != run_id:
        return f"is of another run, {facts['run']}"
    code, tried = facts.get("exit_code", ""), facts.get("attempt") or "0"
    if not (_is_count(code) and int(code) <= _HIGHEST_CODE):
        return f"has no exit code: {code!r}"
    if attempt is not None and not (_is_count(tried) and int(tried) == attempt):
        return f"is of attempt {tried}, and the job's is {attempt}"
    return "" if _is_count(tried) else f"has no attempt: {tried!r}"


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 9
