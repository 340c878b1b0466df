"""Which rows of a results file were written during this run.

Cards share file names, packages ship old results, and scripts append. What decides is the rows, not the time stamp: a
file that begins with exactly the rows it had before was appended to, and only what follows is new; a file with the same
rows as before is stale, also when something touched it. The one exception is a file that was deleted and made anew with
the same rows, which shows in its inode. A file that was not there before but was last written before the run began
(copied with its time stamp) is stale as well.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from madengine.reporting.csv_rows import CsvRow, read_rows
from madengine.reporting.plain_file import NotReadableError

_DIGEST_SIZE = 12
CLOCK_SLACK = 60.0  # seconds that the clocks of a file server and of this machine may differ


@dataclass(frozen=True)
class FileMark:
    """What a file was like: its identity, a digest of each row, and whether its last line had no end.

    A line without an end may have been continued, so that the last row is then another one.
    """

    identity: tuple[int, int]
    digests: bytes = field(repr=False)
    open_end: bool

    @property
    def rows(self) -> int:
        """How many rows there were."""
        return len(self.digests) // _DIGEST_SIZE


@dataclass(frozen=True)
class Freshness:
    """How much of a file is new: ``old_rows`` at its beginning are not; ``stale`` says why nothing is."""

    old_rows: int = 0
    stale: str = ""


@dataclass(frozen=True)
class Snapshot:
    """The declared file in every folder where it may lie, as it was before the run.

    ``taken_at`` is in seconds since the epoch.
    """

    taken_at: float
    marks: Mapping[Path, FileMark] = field(default_factory=dict)

    @classmethod
    def take(cls, folders: Sequence[Path], name: str, *, clock: Callable[[], float] = time.time) -> Snapshot:
        """Look at ``name`` in each folder. What is missing or unreadable leaves no mark; an empty name none at all."""
        taken_at = clock()
        if not name or not is_bare_name(name):
            return cls(taken_at)
        marks = {folder / name: _mark(folder / name) for folder in folders}
        return cls(taken_at, {path: mark for path, mark in marks.items() if mark is not None})

    def freshness(self, path: Path) -> Freshness:
        """What of the file is new. Raises :class:`NotReadableError` when it cannot be read as CSV."""
        info = path.stat()
        before = self.marks.get(path)
        if before is not None:
            return _compare(path, before, (info.st_dev, info.st_ino))
        if info.st_mtime < self.taken_at - CLOCK_SLACK:
            written = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(info.st_mtime))
            return Freshness(stale=f"it was last written at {written}, before this run began")
        return Freshness()


def is_bare_name(name: str) -> bool:
    """Whether a declared name is that of a file in a folder, and not a path that could lead out of it."""
    return name not in ("", ".", "..") and not set(name) & {"/", "\0", "\\"}


def _compare(path: Path, before: FileMark, identity: tuple[int, int]) -> Freshness:
    total = common = 0
    for row in read_rows(path):
        start = total * _DIGEST_SIZE
        if common == total and before.digests[start : start + _DIGEST_SIZE] == _digest(row):
            common += 1
        total += 1
    if total and total == common and (total < before.rows or identity == before.identity):
        rows = "the same row" if total == 1 else f"the same {total} rows"
        return Freshness(old_rows=total, stale=f"it holds {rows} as before this run")
    kept = common == before.rows or (before.open_end and common == before.rows - 1)
    return Freshness(old_rows=common if kept and total > common else 0)


def _mark(path: Path) -> FileMark | None:
    try:
        info = path.stat()
        digests = b"".join(_digest(row) for row in read_rows(path))
        return FileMark((info.st_dev, info.st_ino), digests, _has_open_end(path))
    except (NotReadableError, OSError, ValueError):
        return None


def _digest(row: CsvRow) -> bytes:
    import hashlib

    cells = "\x1f".join(cell.strip() for cell in row.cells)
    return hashlib.blake2b(cells.encode("utf-8", "replace"), digest_size=_DIGEST_SIZE).digest()


def _has_open_end(path: Path) -> bool:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 1))
        return file.read(1) not in b"\r\n"
