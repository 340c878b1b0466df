"""Opening a file that somebody else may have put there: only a regular file, never waiting for a pipe."""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path


class NotReadableError(Exception):
    """A file that cannot be read as expected. ``str()`` says why and completes "<path>: ..."."""


class MissingFileError(NotReadableError):
    """There is no such file."""


def open_plain(path: Path) -> io.FileIO:
    """The regular file opened for reading bytes, unbuffered; :class:`NotReadableError` for anything else."""
    try:
        # Without O_NONBLOCK the open itself would wait for the writer of a named pipe.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        raise MissingFileError("there is no such file") from None
    except PermissionError:
        raise NotReadableError("there is no permission to read it") from None
    except (OSError, ValueError) as error:
        raise NotReadableError(_reason(error)) from None
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise NotReadableError("it is a directory" if stat.S_ISDIR(mode) else "it is not a regular file")
    return io.FileIO(descriptor, "rb")


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
