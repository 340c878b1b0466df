"""Ending what a client started elsewhere.

Ending ``docker exec`` does not end the process that it started inside the container. So a watcher beside the client
keeps the time limit and hears a cancel, and ends the command at the far end; the client returns by itself then.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from madengine.core.process import CANCELLED, TIMED_OUT, StreamResult

TICK = 0.05  # seconds between two looks


@dataclass(frozen=True)
class Watched:
    """How the command ended: its own exit code, or 124 at the time limit and 130 on a cancel."""

    exit_code: int
    duration: float
    timed_out: bool = False
    cancelled: bool = False


def watched(
    client: Callable[[threading.Event], StreamResult],
    *,
    end: Callable[[threading.Event], None],
    timeout: float | None = None,
    cancel: threading.Event | None = None,
) -> Watched:
    """Run ``client`` to its end, which it must reach soon after the event that it is given is set.

    ``end`` ends the command at the far end; it is given an event that is set when the client has returned.
    """
    watcher = _Watcher(end, timeout, cancel)
    thread = threading.Thread(target=watcher.watch, name="watcher", daemon=True)
    thread.start()
    try:
        result = client(watcher.give_up)
    finally:
        watcher.returned.set()
        thread.join()
    if watcher.timed_out:
        return Watched(TIMED_OUT, result.duration, timed_out=True)
    if watcher.cancelled:
        return Watched(CANCELLED, result.duration, cancelled=True)
    return Watched(result.exit_code, result.duration)


class _Watcher:
    def __init__(
        self, end: Callable[[threading.Event], None], timeout: float | None, cancel: threading.Event | None
    ) -> None:
        self.returned = threading.Event()
        self.give_up = threading.Event()
        self.timed_out = self.cancelled = False
        self._end, self._cancel = end, cancel
        self._deadline = None if timeout is None else time.monotonic() + timeout

    def watch(self) -> None:
        """Look until the client returns, or until there is a cause to step in."""
        while not (self.timed_out or self.cancelled):
            if self.returned.wait(TICK):
                return
            self.cancelled = self._cancel is not None and self._cancel.is_set()
            self.timed_out = self._deadline is not None and time.monotonic() >= self._deadline and not self.cancelled
        self._end(self.returned)
        self.give_up.set()
