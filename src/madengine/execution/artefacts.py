"""Keeping what a run left in its workspace, before the workspace goes."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from fnmatch import fnmatch
from pathlib import Path

from madengine.core.redact import Redactor

PATTERNS = ("*.csv", "*_trace.json", "*_profiler_output.json")
"""Every CSV, for it may be the results file under another name than the declared one, and what tools write."""

SIZE_LIMIT = 512 * 1024 * 1024  # bytes of one file; bigger ones stay in a workspace that is kept

CHUNK = 1 << 20  # bytes that are copied at a time


def inventory(folders: Iterable[Path]) -> dict[Path, tuple[int, int]]:
    """Size and time of change of what could be an artefact: taken before a run, it tells what is new after it."""
    return {path: (facts.st_size, facts.st_mtime_ns) for folder in folders for path, facts in _candidates(folder)}


def collect(
    folders: Sequence[Path], before: dict[Path, tuple[int, int]], destination: Path, redactor: Redactor
) -> tuple[list[Path], list[str]]:
    """Copy new and changed artefacts to ``destination``, without secrets: some of them list a whole environment.

    Returns the copies, and notes on what was not copied.
    """
    kept: list[Path] = []
    notes: list[str] = []
    for folder in folders:
        for path, facts in _candidates(folder):
            if before.get(path) == (facts.st_size, facts.st_mtime_ns):
                continue
            if facts.st_size > SIZE_LIMIT:
                notes.append(
                    f"{path.name} is too big to be kept ({facts.st_size >> 20} MiB); --keep-model-dir keeps it"
                )
                continue
            try:
                kept.append(_copy(path, _free_name(destination, folder, path.name), redactor))
            except OSError as error:
                notes.append(f"{path.name} could not be kept: {error.strerror}")
    return kept, notes


def _candidates(folder: Path) -> Iterable[tuple[Path, os.stat_result]]:
    """Regular files with an artefact's name. Links are left out: one from a container may lead anywhere here."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if any(fnmatch(entry.name, pattern) for pattern in PATTERNS) and entry.is_file(follow_symlinks=False):
            yield Path(entry.path), entry.stat(follow_symlinks=False)


def _free_name(destination: Path, folder: Path, name: str) -> Path:
    """Workspace and run directory may hold files of the same name: the second one says where it was."""
    path = destination / name
    return path if not path.exists() else destination / f"{folder.name}_{name}"


def _copy(source: Path, target: Path, redactor: Redactor) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as reader, target.open("wb") as writer:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "it is no regular file")
        held = b""
        while chunk := reader.read(CHUNK):
            safe, held = redactor.split(held + chunk)
            writer.write(safe)
        writer.write(redactor.bytes(held))
    return target
