"""Programs that are started, listened to and ended.

Two functions: :func:`run` for a question with a short answer (its output is kept), :func:`stream` for work (its
output is handed on as it comes). Both take argv lists, never a shell string, and both hold to the same rules:

* a program gets a session and process group of its own, and an empty standard input unless the caller gives one;
* at the time limit, on a cancel and on any exception in the caller (Ctrl-C among them) the whole group is ended: TERM,
  some seconds of grace, KILL. The leader is reaped last, so its number cannot be another program's by then;
* a descendant that keeps a pipe open never holds up the caller for longer than ``LINGER`` seconds;
* a program that cannot be started is an exit code (127, or 126) with the reason in its output, as in a shell.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from madengine.core.errors import ConfigurationError

TIMED_OUT = 124
CANNOT_START = 126
NOT_FOUND = 127
SIGNALLED = 128
CANCELLED = 130

CHUNK = 64 * 1024
"""Bytes of one read. A program that writes less is handed on at once all the same."""

LINGER = 2.0
"""Seconds that the output of descendants is still read after the program itself has ended.

A script with ``exec > >(tee log)`` ends before its ``tee`` has written the last lines: the ones with the metric.
"""

CAPTURE_LIMIT = 32 * 1024 * 1024
"""Bytes that :func:`run` keeps of each of the two outputs; the rest is read and dropped."""

_TICK = 0.05
_REAP_LIMIT = 5.0

Argument = str | os.PathLike[str]


@dataclass(frozen=True)
class Completed:
    """What :func:`run` came back with.

    ``exit_code`` is the program's own, 128+n after signal n, 124 at the time limit, 127 or 126 when it could not be
    started (``stderr`` says why). ``duration`` is in seconds. ``truncated``: more was written than is kept.
    """

    argv: tuple[str, ...]
    exit_code: int
    stdout: str
    stderr: str
    duration: float
    timed_out: bool = False
    truncated: bool = False


@dataclass(frozen=True)
class StreamResult:
    """How a streamed program ended: exit codes as in :class:`Completed`, and 130 when it was cancelled."""

    exit_code: int
    duration: float
    timed_out: bool = False
    cancelled: bool = False


def run(
    argv: Sequence[Argument],
    *,
    timeout: float | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Argument | None = None,
    input: bytes | str | None = None,
    pass_fds: Sequence[int] = (),
    grace: float = 1.0,
) -> Completed:
    """Runs a program to its end and keeps what it wrote (UTF-8, undecodable bytes replaced).

    ``timeout`` is in seconds, None for no limit. ``env`` is the whole environment, None for this process's own. Raises
    :class:`ConfigurationError` when an argument cannot be given to any program (it holds a NUL byte).
    """
    began = time.monotonic()
    captured = (_Capture(), _Capture())
    words = tuple(os.fspath(word) for word in argv)
    with _input_file(input) as stdin:
        child = _start(words, env=env, cwd=cwd, stdin=stdin, merged=False, pass_fds=pass_fds)
    if isinstance(child, _Unstartable):
        return Completed(words, child.exit_code, "", child.reason, time.monotonic() - began)
    child.listen(captured)
    outcome = child.follow(timeout=timeout, cancel=None, grace=grace)
    stdout, stderr = (capture.text() for capture in captured)
    return Completed(
        argv=words,
        exit_code=outcome.exit_code,
        stdout=stdout,
        stderr=stderr,
        duration=time.monotonic() - began,
        timed_out=outcome.timed_out,
        truncated=any(capture.truncated for capture in captured),
    )


def stream(
    argv: Sequence[Argument],
    *,
    output: Callable[[bytes], None],
    env: Mapping[str, str] | None = None,
    cwd: Argument | None = None,
    timeout: float | None = None,
    cancel: threading.Event | None = None,
    grace: float = 10.0,
    end_group: bool = False,
    started: Callable[[int], None] | None = None,
) -> StreamResult:
    """Runs a program and hands its output (standard error merged in) to ``output`` as it comes.

    ``timeout`` is in seconds, None for no limit; setting ``cancel`` ends the program within a tick. ``grace`` is the
    time in seconds between TERM and KILL. ``end_group``: what the program left running in its process group is ended
    too when the program itself ends. ``started`` is told the process id, which is the id of the group as well.
    Raises what ``output`` raises, after the group was ended.
    """
    began = time.monotonic()
    if cancel is not None and cancel.is_set():
        return StreamResult(CANCELLED, 0.0, cancelled=True)
    words = tuple(os.fspath(word) for word in argv)
    child = _start(words, env=env, cwd=cwd, stdin=None, merged=True)
    if isinstance(child, _Unstartable):
        output(f"{child.reason}\n".encode())
        return StreamResult(child.exit_code, time.monotonic() - began)
    child.listen((output,))
    outcome = child.follow(timeout=timeout, cancel=cancel, grace=grace, end_group=end_group, started=started)
    return StreamResult(outcome.exit_code, time.monotonic() - began, outcome.timed_out, outcome.cancelled)


class _Capture:
    """Keeps the first ``CAPTURE_LIMIT`` bytes that it is called with."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self.truncated = False

    def __call__(self, data: bytes) -> None:
        room = CAPTURE_LIMIT - len(self._kept)
        self._kept += data[:room]
        self.truncated = self.truncated or len(data) > room

    def text(self) -> str:
        return self._kept.decode("utf-8", "replace")


class _input_file:  # noqa: N801 - reads as a function in a with statement
    """The standard input as a file in memory: nothing to feed while reading, nothing on a disk."""

    def __init__(self, content: bytes | str | None) -> None:
        self._content = content.encode() if isinstance(content, str) else content
        self._fd: int | None = None

    def __enter__(self) -> int | None:
        if self._content is not None:
            self._fd = os.memfd_create("madengine-input")
            with open(self._fd, "wb", closefd=False) as file:
                file.write(self._content)
            os.lseek(self._fd, 0, os.SEEK_SET)
        return self._fd

    def __exit__(self, *_: object) -> None:
        if self._fd is not None:
            os.close(self._fd)


@dataclass(frozen=True)
class _Unstartable:
    exit_code: int
    reason: str


def _start(
    words: tuple[str, ...],
    *,
    env: Mapping[str, str] | None,
    cwd: Argument | None,
    stdin: int | None,
    merged: bool,
    pass_fds: Sequence[int] = (),
) -> _Child | _Unstartable:
    try:
        process = subprocess.Popen(
            words,
            env=env,
            cwd=cwd,
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if merged else subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
            pass_fds=tuple(pass_fds),
        )
    except OSError as error:
        return _unstartable(words, cwd, error)
    except ValueError as error:
        raise ConfigurationError(
            f"{words[0]!r} cannot be started: an argument or variable holds a character that no program can be given",
            hint="remove NUL bytes and unpaired surrogates",
        ) from error
    return _Child(process)


def _unstartable(words: tuple[str, ...], cwd: Argument | None, error: OSError) -> _Unstartable:
    missing = isinstance(error, FileNotFoundError | NotADirectoryError)
    if cwd is not None and not Path(cwd).is_dir():
        return _Unstartable(NOT_FOUND, f"cannot start {words[0]!r}: no folder {os.fspath(cwd)!r} to start it in")
    return _Unstartable(NOT_FOUND if missing else CANNOT_START, f"cannot start {words[0]!r}: {error.strerror}")


@dataclass(frozen=True)
class _Outcome:
    exit_code: int
    timed_out: bool = False
    cancelled: bool = False


class _Child:
    """A started program: its group, the pipes that are read from it, and the way it is ended."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._selector = selectors.DefaultSelector()
        self._readers: dict[int, Callable[[bytes], None]] = {}
        self._pidfd = _pidfd(process.pid)
        self._ended = False

    def listen(self, readers: Sequence[Callable[[bytes], None]]) -> None:
        for pipe, reader in zip((self._process.stdout, self._process.stderr), readers, strict=False):
            if pipe is not None:
                self._readers[pipe.fileno()] = reader
                self._selector.register(pipe.fileno(), selectors.EVENT_READ)
        if self._pidfd is not None:
            self._selector.register(self._pidfd, selectors.EVENT_READ)

    def follow(
        self,
        *,
        timeout: float | None,
        cancel: threading.Event | None,
        grace: float,
        end_group: bool = False,
        started: Callable[[int], None] | None = None,
    ) -> _Outcome:
        """Reads until the program has ended or must end, and leaves nothing of it behind."""
        try:
            if started is not None:
                started(self._process.pid)
            return self._follow(timeout, cancel, grace, end_group)
        except BaseException:
            self._readers = dict.fromkeys(self._readers, _ignore)
            self._end(grace)
            raise
        finally:
            self._close()

    def _follow(self, timeout: float | None, cancel: threading.Event | None, grace: float, end_group: bool) -> _Outcome:
        def stopped() -> bool:
            return self._has_ended() or (cancel is not None and cancel.is_set())

        in_time = self._read_until(stopped, timeout, polled=cancel is not None)
        by_itself = self._ended
        if end_group or not by_itself:
            self._end(grace)
        self._read_until(self._all_read, LINGER)
        if by_itself:
            return _Outcome(self._exit_code())
        return _Outcome(CANCELLED, cancelled=True) if in_time else _Outcome(TIMED_OUT, timed_out=True)

    def _read_until(self, done: Callable[[], bool], limit: float | None, *, polled: bool = False) -> bool:
        """Hands on output until ``done()`` (True) or until ``limit`` seconds have passed (False)."""
        deadline = None if limit is None else time.monotonic() + limit
        while not done():
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return False
            ticking = polled or (self._pidfd is None and not self._ended)
            self._read_once(min(_TICK, left or _TICK) if ticking else left)
        return True

    def _read_once(self, wait: float | None) -> None:
        for key, _ in self._selector.select(wait):
            if key.fd not in self._readers:
                continue
            data = os.read(key.fd, CHUNK)
            if data:
                self._readers[key.fd](data)
            else:
                self._selector.unregister(key.fd)
                del self._readers[key.fd]

    def _all_read(self) -> bool:
        return not self._readers

    def _has_ended(self) -> bool:
        """Whether the program is over. It stays a zombie, so that its group's number stays its own."""
        if not self._ended:
            state = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            self._ended = state is not None
            if self._ended and self._pidfd is not None:
                self._selector.unregister(self._pidfd)
        return self._ended

    def _end(self, grace: float) -> None:
        """TERM to the group, ``grace`` seconds for all of its members, then KILL for those that are left."""
        try:
            self._signal(signal.SIGTERM)
            self._read_until(self._group_is_gone, grace, polled=True)
        finally:
            self._signal(signal.SIGKILL)

    def _group_is_gone(self) -> bool:
        return self._has_ended() and not _members(self._process.pid)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _exit_code(self) -> int:
        code = self._process.wait()
        return SIGNALLED - code if code < 0 else code

    def _close(self) -> None:
        # A process in an uninterruptible sleep outlives a KILL: it is left to the system rather than waited for.
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_REAP_LIMIT)
        self._selector.close()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        if self._pidfd is not None:
            os.close(self._pidfd)


def _ignore(_: bytes) -> None:
    """Takes what is read while a program is being ended because its listener failed."""


def _pidfd(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends; None on a kernel without (then it is polled)."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _members(group: int) -> list[int]:
    """The living processes of a process group, zombies not counted (proc(5): fields 3 and 5 of ``stat``)."""
    living = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            fields = entry.read_bytes().rpartition(b")")[2].split()
            if int(fields[2]) == group and fields[0] not in (b"Z", b"X"):
                living.append(int(entry.parent.name))
    return living
