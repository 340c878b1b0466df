"""A lock between machines, on storage that all of them see, that outlives no holder.

File locks (``core.files.locked``) die with their holder, but not every shared file system has them, and some have them
for one machine only. So this one is a file: whoever makes it has the lock. It names its holder, who touches it every
few seconds; who waits takes it away when the holder is a dead process of this machine, or when nothing has touched it
for ``LIMIT`` seconds by the clock of the one who waits (clocks of machines differ).

A holder that was taken for dead and was not (a machine that stood still for a minute) goes on all the same. So the
lock is for work that may be done twice, but should not be: building an image.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from madengine.core.errors import ExecutionError, MADEngineError
from madengine.core.files import safe_name, write_atomic
from madengine.core.living import process_space, start_time

BEAT = 5.0  # seconds between two signs of life
LIMIT = 60.0  # seconds without one after which a holder is taken for dead
LOOK = 1.0  # seconds between two looks at a lock that another has
UNKNOWN = "unknown"


@dataclass(frozen=True)
class Holder:
    """Who has a lock. ``space`` says what ``pid`` means, ``started`` tells it from a later process of that number."""

    token: str
    host: str = ""
    space: str = ""
    pid: int = 0
    started: int = 0

    @classmethod
    def this_process(cls) -> Holder:
        """This process, in a new term."""
        pid = os.getpid()
        return cls(os.urandom(8).hex(), os.uname().nodename, process_space(), pid, start_time(pid) or 0)

    def is_dead(self) -> bool:
        """Whether it is known to be dead; of one on another machine nobody here knows."""
        return bool(self.space) and self.space == process_space() and start_time(self.pid) != self.started


@dataclass(frozen=True)
class Sight:
    """What a lock file was like: its holder, and when it was touched (nanoseconds, by whatever clock)."""

    holder: Holder
    touched: int


@dataclass(frozen=True)
class Failure:
    """What a holder leaves for those who waited for it: that there is no use in trying the same."""

    token: str
    host: str
    reason: str


class SharedLock:
    """The lock that belongs to ``path``; its file is ``.<name>.holder`` beside it."""

    def __init__(
        self,
        path: Path,
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._path = path
        self._file = path.with_name(f".{path.name}.holder")
        self._note = path.with_name(f".{path.name}.failed")
        self._clock, self._pause = clock, pause
        self._waited_for: set[str] = set()

    @contextmanager
    def held_unless(self, ready: Callable[[], bool]) -> Iterator[bool]:
        """Wait for the lock, or until ``ready`` says that it is not needed any more; yields whether it is held.

        Raises ``ExecutionError`` when the file cannot be made.
        """
        me = self._acquired(ready)
        if me is None:
            yield False
            return
        ended = threading.Event()
        beats = threading.Thread(target=self._beat, args=(me, ended), name="lock", daemon=True)
        beats.start()
        try:
            yield True
        finally:
            ended.set()
            beats.join()
            self._release(me)

    def fail(self, reason: str) -> None:
        """Tell those who wait for this holder that it failed."""
        seen = self._sight()
        if seen is not None:
            failure = Failure(seen.holder.token, seen.holder.host, reason)
            with suppress(MADEngineError):
                write_atomic(self._note, json.dumps(asdict(failure)) + "\n", durable=False)

    def failure(self) -> Failure | None:
        """How a holder failed whom this one has waited for."""
        try:
            found = Failure(**json.loads(self._note.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return None
        return found if found.token in self._waited_for else None

    def _acquired(self, ready: Callable[[], bool]) -> Holder | None:
        me = Holder.this_process()
        last: Sight | None = None
        since = self._clock()
        while not self._made(me):
            if ready():
                return None
            seen = self._sight()
            if seen is None:
                continue
            self._waited_for.add(seen.holder.token)
            if seen != last:
                last, since = seen, self._clock()
            silent = self._clock() - since
            if seen.holder.is_dead() or silent > LIMIT:
                self._take_away(seen, late=silent > 2 * LIMIT)
            self._pause(LOOK)
        if ready():
            self._release(me)
            return None
        return me

    def _made(self, me: Holder) -> bool:
        """Make the file; False when another has made it (open(2): O_EXCL holds on NFS, too)."""
        try:
            descriptor = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            return False
        except OSError as error:
            raise ExecutionError(f"the lock cannot be made: {error.strerror}", where=str(self._file)) from error
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(json.dumps(asdict(me)) + "\n")
        return True

    def _sight(self) -> Sight | None:
        """The lock as it is, None without one.

        It is opened anew each time, since attributes alone may be remembered for a minute on NFS (nfs(5)). One that
        cannot be read, or is being written, has a holder without a name.
        """
        try:
            with self._file.open("rb") as file:
                touched, text = os.fstat(file.fileno()).st_mtime_ns, file.read()
            return Sight(Holder(**json.loads(text)), touched)
        except FileNotFoundError:
            return None
        except OSError:
            return Sight(Holder(UNKNOWN), 0)
        except (ValueError, TypeError):
            return Sight(Holder(UNKNOWN), touched)

    def _take_away(self, seen: Sight, *, late: bool) -> None:
        """Remove the lock of a dead holder, if it is still the same one.

        Of several that wait one may do so, who makes a second file first: another could remove the lock that the first
        one has made meanwhile. ``late``: who made that file is dead, too.
        """
        claim = self._file.with_name(f"{self._file.name}.{safe_name(seen.holder.token)}")
        with suppress(OSError):
            os.close(os.open(claim, os.O_WRONLY | os.O_CREAT | (0 if late else os.O_EXCL), 0o644))
            try:
                if self._sight() == seen:
                    self._file.unlink(missing_ok=True)
            finally:
                claim.unlink(missing_ok=True)

    def _beat(self, me: Holder, ended: threading.Event) -> None:
        while not ended.wait(BEAT):
            if self._is_of(me):
                with suppress(OSError):
                    os.utime(self._file)

    def _release(self, me: Holder) -> None:
        if self._is_of(me):
            with suppress(OSError):
                self._file.unlink(missing_ok=True)

    def _is_of(self, me: Holder) -> bool:
        seen = self._sight()
        return seen is not None and seen.holder == me
