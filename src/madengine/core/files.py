"""Files that are whole or not there, locks that die with their holder, names that stay in their folder.

Everything the product writes for others to read goes through :func:`write_atomic`; everything that several processes
add to is written under :func:`locked`; every part of a path that comes from outside (a model's name, a tag) goes
through :func:`safe_name`.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from madengine.core.errors import MADEngineError

_DIGEST_LENGTH = 10
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+|\.{2,}")
_DIGEST_AT_END = re.compile(rf"-[0-9a-f]{{{_DIGEST_LENGTH}}}\Z")


def write_atomic(
    path: str | os.PathLike[str], data: str | bytes, mode: int | None = None, *, durable: bool = True
) -> None:
    """Writes a file so that a reader, a full disk or a power cut sees the old content or the new, never a part.

    The data goes to a file of its own beside the target, to the disk, and then takes the target's name. ``mode`` are
    the permissions; None keeps those of an existing file and otherwise follows the umask. A symbolic link is written
    through. Text is UTF-8. ``durable`` False does not wait for the disk, which costs milliseconds each time: right for
    what is of no use after a power cut or stands elsewhere too. Raises :class:`MADEngineError` when the file cannot be
    written; the old one is then untouched.
    """
    target = Path(os.path.realpath(path))
    content = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data
    try:
        _replace(target, content, mode, durable)
    except OSError as error:
        raise MADEngineError(
            f"cannot be written: {error.strerror or error}",
            where=str(path),
            hint="the old content, if any, is untouched",
        ) from error


def _replace(target: Path, content: bytes, mode: int | None, durable: bool) -> None:
    existing = _status(target)
    if existing is not None and stat.S_ISDIR(existing.st_mode):
        raise IsADirectoryError(None, "it is a folder")
    if existing is not None and not stat.S_ISREG(existing.st_mode):
        raise OSError(None, "it is no regular file")  # a rename would take /dev/null away from everybody
    temporary = target.with_name(f".madengine-{os.urandom(8).hex()}.tmp")
    try:
        _write_new(temporary, content, existing, mode, durable)
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    if durable:
        _sync_folder(target.parent)


def _write_new(path: Path, content: bytes, existing: os.stat_result | None, mode: int | None, durable: bool) -> None:
    wanted = stat.S_IMODE(existing.st_mode) if mode is None and existing is not None else mode
    # Until the permissions are set nobody else reads it; only without any wish the umask decides, at once.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if wanted is None else 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        if existing is not None:
            with suppress(PermissionError):
                os.fchown(descriptor, existing.st_uid, existing.st_gid)
        if wanted is not None:
            os.fchmod(descriptor, wanted)
        if durable:
            os.fsync(descriptor)


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _sync_folder(folder: Path) -> None:
    # Some network file systems refuse to sync a folder; the rename has happened all the same.
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def locked(path: str | os.PathLike[str]) -> Iterator[None]:
    """Holds the one lock that belongs to ``path``, against all processes and threads that ask for it too.

    Waits as long as another holds it. The system lets go of the lock when its holder dies, however it dies. The lock is
    on an empty file ``.<name>.lock`` beside ``path`` (on shared storage it so works between nodes), which stays:
    removing it while others wait for it would give two of them a lock. Not re-entrant. Raises :class:`MADEngineError`
    when the lock file cannot be made or the file system has no locks.
    """
    import fcntl

    target = Path(os.path.realpath(path))
    lock = target.with_name(f".{target.name[:240]}.lock")
    try:
        descriptor = _open_lock(lock)
    except OSError as error:
        raise MADEngineError(f"the lock file cannot be opened: {error.strerror}", where=str(lock)) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError as error:
            raise MADEngineError(
                f"the file system gives no lock: {error.strerror}", where=str(lock), hint="use a folder on another one"
            ) from error
        try:
            yield
        finally:
            # Explicitly: a child that was forked meanwhile shares the descriptor and would keep the lock.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


def _open_lock(lock: Path) -> int:
    try:
        return os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    except PermissionError:
        return os.open(lock, os.O_RDONLY | os.O_NOFOLLOW)  # made by somebody else: reading is enough to lock it


def safe_name(text: str, limit: int = 100) -> str:
    """Returns a readable name for one part of a path: ``[A-Za-z0-9_.-]`` only, at most ``limit`` characters.

    It never starts with a dot or a dash and has no two dots in a row. A text that is such a name is returned as it is;
    any other gets ``-`` and ten hexadecimal digits of its SHA-256, and so does a text that already ends like that: so
    different texts have different names. (Hence not idempotent: name a thing once.)
    """
    cleaned = _UNSAFE.sub("_", text).lstrip(".-")
    if cleaned == text and 0 < len(text) <= limit and not _DIGEST_AT_END.search(text):
        return text
    import hashlib

    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]
    readable = cleaned[: limit - _DIGEST_LENGTH - 1].rstrip(".-") or "x"
    return f"{readable}-{digest}"


def remove_tree(path: str | os.PathLike[str]) -> list[Path]:
    """Removes a file or a folder with all that is in it, and returns what could not be removed.

    (What root made in a container, for one.) A path that is not there is fine. Symbolic links are removed, never
    followed. A folder on another file system (something mounted there) is left alone and reported. Folders without
    write permission are made writable first where that is allowed.
    """
    root = Path(path)
    folders, left = _empty(root) if root.is_dir() and not root.is_symlink() else ([], _unlink(root))
    for folder in reversed(folders):
        try:
            folder.rmdir()
        except FileNotFoundError:
            continue
        except OSError:
            if not any(folder in other.parents for other in left):
                left.append(folder)
    return left


def _empty(root: Path) -> tuple[list[Path], list[Path]]:
    """Removes all files below ``root``. Returns its folders, outer ones first, and what could not be removed."""
    device = root.lstat().st_dev
    folders: list[Path] = []
    left: list[Path] = []
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        if _device(folder) != device:
            left.append(folder)
            continue
        folders.append(folder)
        for entry in _entries(folder):
            if entry.is_dir(follow_symlinks=False):
                waiting.append(Path(entry.path))
            else:
                left += _unlink(Path(entry.path))
    return folders, left


def _device(folder: Path) -> int | None:
    try:
        return folder.lstat().st_dev
    except OSError:
        return None


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with suppress(OSError):
        folder.chmod(stat.S_IRWXU)
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def _unlink(path: Path) -> list[Path]:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return [path]
    return []
