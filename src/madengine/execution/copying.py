"""Copying a package's folders into a run's private workspace.

Cheap where the file system shares blocks between copies (copy_file_range), and careful with symbolic links: one that
leads to a place that is copied too is made anew there, one that leads elsewhere in the package is followed, one that
leads out of the package stays what it is, since nobody asked for what it shows.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Collection
from pathlib import Path

SKIPPED_NAMES = frozenset((".git", "__pycache__"))
CHUNK = 1 << 30  # bytes of one copy_file_range call


def copy_folder(
    source: Path, target: Path, *, package: Path, skip: Collection[Path] = (), replace: bool = False
) -> None:
    """Copy the contents of ``source`` into ``target``, which may exist.

    Files that are there already are kept, or replaced with ``replace``; links that are there are never written
    through. ``skip`` are resolved folders that are left out (the run's own, when it lies in the package).
    """
    root = source.resolve()
    _Copy(root, target, package.resolve(), frozenset(skip), replace).folder(root, target, ())


class _Copy:
    def __init__(self, source: Path, target: Path, package: Path, skip: frozenset[Path], replace: bool) -> None:
        self._source, self._target, self._package, self._skip, self._replace = source, target, package, skip, replace

    def folder(self, source: Path, target: Path, parents: tuple[Path, ...]) -> None:
        """``parents`` are the resolved folders around this one, so that a link to one of them ends the way down."""
        if target.is_symlink():
            target.unlink()
        target.mkdir(parents=True, exist_ok=True)
        for entry in os.scandir(source):
            if entry.name not in SKIPPED_NAMES:
                self._entry(entry, target / entry.name, (*parents, source))

    def _entry(self, entry: os.DirEntry[str], copy: Path, parents: tuple[Path, ...]) -> None:
        path = Path(entry.path)
        if entry.is_symlink():
            if self._makes_way(copy):
                self._link(path, copy, parents)
        elif entry.is_dir():
            if path not in self._skip:
                self.folder(path, copy, parents)
        elif entry.is_file() and self._makes_way(copy):
            copy_file(path, copy)

    def _makes_way(self, copy: Path) -> bool:
        """Whether ``copy`` can be made: nothing is there, or it was replaceable and is gone now."""
        if not os.path.lexists(copy):
            return True
        if not self._replace or (copy.is_dir() and not copy.is_symlink()):
            return False
        copy.unlink()
        return True

    def _link(self, path: Path, copy: Path, parents: tuple[Path, ...]) -> None:
        goal = path.resolve() if path.exists() else None
        if goal is None or not goal.is_relative_to(self._package):
            copy.symlink_to(path.readlink())
        elif goal.is_relative_to(self._source):
            copy.symlink_to(os.path.relpath(self._target / goal.relative_to(self._source), copy.parent))
        elif goal in parents:
            copy.symlink_to(path.readlink())
        elif goal.is_dir():
            self.folder(goal, copy, parents)
        else:
            copy_file(goal, copy)


def copy_file(source: Path, target: Path) -> None:
    """Copy a regular file with its permissions; the owner may always write the copy. ``target`` must not exist."""
    with source.open("rb") as reader, target.open("xb") as writer:
        if not _share(reader.fileno(), writer.fileno()):
            shutil.copyfileobj(reader, writer)
        os.fchmod(writer.fileno(), stat.S_IMODE(os.fstat(reader.fileno()).st_mode) | stat.S_IWUSR | stat.S_IRUSR)


def _share(reader: int, writer: int) -> bool:
    """Copy inside the kernel, sharing blocks where the file system can; False when it cannot copy like that at all."""
    try:
        while os.copy_file_range(reader, writer, CHUNK):
            pass
    except OSError:
        os.lseek(reader, 0, os.SEEK_SET)
        os.ftruncate(writer, 0)
        os.lseek(writer, 0, os.SEEK_SET)
        return False
    return True
