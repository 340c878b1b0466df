"""Growing one file from many processes at once, without reading it and without showing a half-written row.

What holds, and by which means:

* **One writer at a time.** Writers of one machine queue at a ``flock`` of the folder, so that a waiting writer does
  not keep the file itself open; the file's own ``flock`` keeps out writers of other machines on shared storage (a
  folder's lock stays on its machine there). No lock file is left behind. A writer that got its lock after the file
  was replaced by a rename notices (another inode) and opens the new one.
* **A reader without any lock sees whole rows.** The kernel makes a growing file longer one page at a time, so a row
  that crosses a page boundary can be seen cut in two (on ext4 one reader in a thousand did). Such a write is made
  while the writer holds a write *lease*: the kernel grants it only when nobody else has the file open, and lets
  whoever opens it meanwhile wait for the microseconds that the write takes. Where somebody keeps the file open, or
  a file system knows no leases, a small file is copied and renamed instead; a file beyond :data:`COPY_LIMIT` is
  then written as it is.
* **A failed write leaves nothing.** On a full disk the file gets back its old end and length.
* **A killed writer** can leave a cut last row and nothing else; the next writer mends the end, see ``perf_csv`` and
  ``perf_super``.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from madengine.core.errors import ConfigurationError, ExecutionError

LOCK_PATIENCE = 120.0  # seconds until a lock that somebody holds becomes an error
LEASE_PATIENCE = 0.02  # seconds to wait for readers of a file that can be copied instead
LEASE_PATIENCE_LARGE = 0.25  # the same for a file that is too large to be copied
COPY_LIMIT = 8 << 20  # bytes up to which a copy is cheaper than a torn row
_PAGE = os.sysconf("SC_PAGE_SIZE")
_CHUNK = 1 << 20


@dataclass(frozen=True)
class GrowingFile:
    """A file that is open for this process alone. ``path`` is the real file behind any symbolic link."""

    fd: int
    path: Path

    def size(self) -> int:
        """Length in bytes, now."""
        return os.fstat(self.fd).st_size

    def read(self, offset: int, count: int) -> bytes:
        """Up to ``count`` bytes from ``offset``."""
        return os.pread(self.fd, count, offset)

    def write_end(self, offset: int, data: bytes) -> None:
        """Make the file end in ``data`` from ``offset`` on, all of it or nothing; on disk when this returns.

        ``offset`` lies at or shortly before the end of the file. Raises ``OSError`` after having restored the old
        end. The path may name a new file afterwards, so this is the last thing to do with this one.
        """
        size = self.size()
        old_end = self.read(offset, size - offset)
        torn_to_readers = bool(old_end) or offset // _PAGE != (offset + len(data) - 1) // _PAGE
        if torn_to_readers and not self._lease(size) and self._replaced_by_copy(offset, data):
            return
        try:
            # Appending is left to the kernel, so that even a writer that knows no locks is not overwritten.
            _write_all(self.fd, offset, data, 0 if old_end else os.RWF_APPEND)
            if size > offset + len(data):
                os.ftruncate(self.fd, offset + len(data))
            self._release()
            os.fsync(self.fd)
        except BaseException:
            self._restore(offset, old_end)
            raise

    def replace(self, chunks: Iterable[bytes]) -> None:
        """Put a new file with this content in the place of the old one, at once and on disk; keeps mode and owner."""
        # The lock is held, so the name is ours alone; what a killed process left of it is overwritten.
        temporary = self.path.with_name(f".{self.path.name}.new")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            fd = os.open(temporary, flags, 0o600)
            try:
                self._copy_owner(fd)
                with os.fdopen(os.dup(fd), "wb", _CHUNK) as out:
                    out.writelines(chunks)
                os.fsync(fd)
            finally:
                os.close(fd)
            temporary.replace(self.path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
        _sync_folder(self.path.parent)

    def _replaced_by_copy(self, offset: int, data: bytes) -> bool:
        """Write a copy with the new end and rename it, where that is cheap and takes the file from nobody."""
        facts = os.fstat(self.fd)
        if facts.st_size > COPY_LIMIT or facts.st_nlink > 1 or facts.st_uid != os.geteuid():
            return False
        try:
            self.replace([self.read(0, offset), data])
        except OSError:  # a folder that is not ours to write in, a file that is mounted alone
            return False
        return True

    def _copy_owner(self, fd: int) -> None:
        facts = os.fstat(self.fd)
        with suppress(OSError):  # only root may give a file away, anybody to a group of theirs
            os.fchown(fd, -1, facts.st_gid)
            os.fchown(fd, facts.st_uid, -1)
        os.fchmod(fd, stat.S_IMODE(facts.st_mode))

    def _lease(self, size: int) -> bool:
        """Whether nobody else has the file open and whoever opens it will wait."""
        # Whoever opens the file makes the kernel signal the holder: SIGIO would end the process, SIGURG does nothing.
        fcntl.fcntl(self.fd, fcntl.F_SETSIG, signal.SIGURG)
        deadline = time.monotonic() + (LEASE_PATIENCE if size <= COPY_LIMIT else LEASE_PATIENCE_LARGE)
        while True:
            try:
                fcntl.fcntl(self.fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
                return True
            except OSError as error:
                if error.errno != errno.EAGAIN or time.monotonic() > deadline:
                    return False
                time.sleep(0.00005)

    def _release(self) -> None:
        with suppress(OSError):
            fcntl.fcntl(self.fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)

    def _restore(self, offset: int, old_end: bytes) -> None:
        """Give the file its old end back: these bytes have their blocks already, so this works on a full disk."""
        with suppress(OSError):
            if old_end:
                os.pwrite(self.fd, old_end, offset)
            os.ftruncate(self.fd, offset + len(old_end))
            os.fsync(self.fd)
        self._release()


@contextmanager
def sole_writer(path: Path, *, what: str) -> Iterator[GrowingFile]:
    """Open (or create) a file for this process alone, following symbolic links.

    ``what`` names the file's kind in errors. Raises :class:`ConfigurationError` for a path that cannot be written (a
    folder, read-only, no such folder) and :class:`ExecutionError` when a lock cannot be had or the disk fails.
    """
    real = real_path(path, what)
    try:
        with _locked_folder(real.parent):
            fd = _open_locked(real)
            try:
                yield GrowingFile(fd, real)
            finally:
                _unlock_and_close(fd)
    except OSError as error:
        raise as_error(error, path, what) from error


def real_path(path: Path, what: str) -> Path:
    """The file behind symbolic links; raises :class:`ConfigurationError` for a path that cannot name a file."""
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"is no usable path for a {what}: {error}", where=repr(str(path))) from error


def refuse_loop(path: Path, what: str) -> None:
    """Raise :class:`ConfigurationError` for a symbolic link that leads to itself, so that no file is behind it."""
    if real_path(path, what).is_symlink():
        raise ConfigurationError(f"is a link that leads to itself and cannot be a {what}", where=str(path))


def as_error(error: OSError, path: Path, what: str) -> ConfigurationError | ExecutionError:
    """An operating system's error as a sentence of ours."""
    where = str(path)
    if isinstance(error, FileNotFoundError):
        return ConfigurationError(f"the folder for the {what} does not exist", where=where, hint="make it first")
    if isinstance(error, IsADirectoryError):
        return ConfigurationError(f"is a folder, but a {what} is to be written there", where=where)
    if error.errno in _NOT_WRITABLE:
        reason = os.strerror(error.errno or 0).lower()
        return ConfigurationError(f"the {what} cannot be written: {reason}", where=where, hint="mend its permissions")
    if isinstance(error, _NotAFileError):
        return ConfigurationError(f"is no regular file, but a {what} is to be written there", where=where)
    if isinstance(error, TimeoutError):
        return ExecutionError(f"the {what} has been locked by another process for {LOCK_PATIENCE:.0f} s", where=where)
    reason = os.strerror(error.errno).lower() if error.errno else str(error)
    return ExecutionError(f"nothing was written to the {what}, which is as it was: {reason}", where=where)


class _NotAFileError(OSError):
    """The path names a device, a pipe or a socket."""


_NOT_WRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ETXTBSY)


def _open_locked(path: Path) -> int:
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise _NotAFileError(errno.EINVAL, "not a regular file")
            _lock(fd)
            if _is_still(path, fd):
                return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)


def _is_still(path: Path, fd: int) -> bool:
    """Whether the path still names the open file. Opening it anew makes network file systems look again."""
    try:
        other = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    try:
        return os.path.samestat(os.fstat(fd), os.fstat(other))
    finally:
        os.close(other)


@contextmanager
def _locked_folder(folder: Path) -> Iterator[None]:
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:  # a folder that may be used but not listed: the file's own lock has to do
        yield
        return
    try:
        _lock(fd)
        yield
    finally:
        _unlock_and_close(fd)


def _lock(fd: int) -> None:
    deadline = time.monotonic() + LOCK_PATIENCE
    pause = 0.0002
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise TimeoutError from None
        time.sleep(pause)
        pause = min(pause * 2, 0.01)


def _unlock_and_close(fd: int) -> None:
    # Explicitly, since a child that was forked meanwhile shares the lock until it has closed its copy.
    with suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_UN)
    os.close(fd)


def _write_all(fd: int, offset: int, data: bytes, flags: int) -> None:
    """One write; a second one only when the first was cut short, to learn the reason."""
    done = 0
    while done < len(data):
        done += os.pwritev(fd, [data[done:] if done else data], offset + done, flags)


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # some network file systems refuse; the rename itself has happened
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
