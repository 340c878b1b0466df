"""Which rows of a results file were written during this run.

Cards share file names, packages ship old results, and scripts append. In a file that was there before, the rows decide
and not the time stamp: when it begins with exactly the rows it had, it was appended to, and only what follows is new;
with the same rows as before it is stale, also when something touched it. A file that was made anew in its place (the
old one deleted, moved away or replaced) is new with all its rows, whatever they say. A file that is another one but was
last written before the run began (copied with its time stamp) is stale.

Whether it is the same file only its inode tells, and a file system gives the inode of a deleted file to the very next
one. So the old file is held open until the run has been read: an inode in use is given to nobody.
"""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from madengine.reporting.csv_rows import CsvRow, read_rows
from madengine.reporting.plain_file import NotReadableError, open_plain

_DIGEST_SIZE = 12
CLOCK_SLACK = 60.0  # seconds that the clocks of a file server and of this machine may differ


@dataclass(frozen=True)
class FileMark:
    """What a file was like: the file itself, held open, a digest of each row, and whether its last line had no end.

    A line without an end may have been continued, so that the last row is then another one. Of a file that ceases to be
    CSV half way the rows up to there are marked, since they are what would be read of it later.
    """

    held: io.FileIO = field(repr=False)
    digests: bytes = field(repr=False)
    open_end: bool

    @property
    def rows(self) -> int:
        """How many rows there were."""
        return len(self.digests) // _DIGEST_SIZE

    def is_file(self, info: os.stat_result) -> bool:
        """Whether this is still the same file, and not another one in its place."""
        return os.path.samestat(os.fstat(self.held.fileno()), info)


@dataclass(frozen=True)
class Freshness:
    """How much of a file is new: ``old_rows`` at its beginning are not; ``stale`` says why nothing is.

    ``repeated`` rows at its beginning are new, but say what the old file said.
    """

    old_rows: int = 0
    stale: str = ""
    repeated: int = 0


@dataclass(frozen=True)
class Snapshot:
    """The declared file in every folder where it may lie, as it was before the run.

    ``taken_at`` is in seconds since the epoch. The files are held open until :meth:`release`.
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

    def release(self) -> None:
        """Let go of the files, once all that is wanted of their freshness is known."""
        for mark in self.marks.values():
            mark.held.close()

    def freshness(self, path: Path) -> Freshness:
        """What of the file is new, as far as it can be read as CSV. Raises ``OSError`` when it is not there."""
        info = path.stat()
        before = self.marks.get(path)
        if before is not None and before.is_file(info):
            return _compare(path, before)
        if info.st_mtime < self.taken_at - CLOCK_SLACK:
            written = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(info.st_mtime))
            return Freshness(stale=f"it was last written at {written}, before this run began")
        return Freshness(repeated=_overlap(path, before).old if before is not None else 0)


def is_bare_name(name: str) -> bool:
    """Whether a declared name is that of a file in a folder, and not a path that could lead out of it."""
    return name not in ("", ".", "..") and not set(name) & {"/", "\0", "\\"}


@dataclass(frozen=True)
class _Overlap:
    """``old`` of a file's ``total`` rows, from the first on, are those it had; ``broken`` says why no more can be read.

    A file that has other rows before the last of the old ones went by overlaps with nothing: it was written over.
    """

    old: int
    total: int
    broken: str


def _compare(path: Path, before: FileMark) -> Freshness:
    """What is new of a file that is still the same one."""
    overlap = _overlap(path, before)
    if not overlap.total or overlap.old < overlap.total:
        return Freshness(old_rows=overlap.old)
    rows = "the same row" if overlap.total == 1 else f"the same {overlap.total} rows"
    broken = f", and then is not readable as CSV: {overlap.broken}" if overlap.broken else ""
    return Freshness(old_rows=overlap.total, stale=f"it holds {rows} as before this run{broken}")


def _overlap(path: Path, before: FileMark) -> _Overlap:
    total = common = 0
    broken = ""
    try:
        for digest in _digests(path):
            start = total * _DIGEST_SIZE
            if common == total and before.digests[start : start + _DIGEST_SIZE] == digest:
                common += 1
            total += 1
    except NotReadableError as error:
        broken = str(error)
    kept = common == before.rows or (before.open_end and common == before.rows - 1)
    return _Overlap(common if kept or common == total else 0, total, broken)


def _mark(path: Path) -> FileMark | None:
    try:
        held = open_plain(path)
    except NotReadableError:
        return None
    digests, open_end = bytearray(), False
    try:
        open_end = _has_open_end(held)
        for digest in _digests(path):
            digests += digest
    except (NotReadableError, OSError):
        pass
    return FileMark(held, bytes(digests), open_end)


def _digests(path: Path) -> Iterator[bytes]:
    return (_digest(row) for row in read_rows(path))


def _digest(row: CsvRow) -> bytes:
    import hashlib

    cells = "\x1f".join(cell.strip() for cell in row.cells)
    return hashlib.blake2b(cells.encode("utf-8", "replace"), digest_size=_DIGEST_SIZE).digest()


def _has_open_end(file: io.FileIO) -> bool:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - 1))
    return file.read(1) not in b"\r\n"
