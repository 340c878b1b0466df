"""Ctrl-C and TERM, counted instead of raised, for work that must not be torn apart between two of its steps."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruptions:
    """How often this process was asked to end: ``count`` in all, ``impatience`` by a user at the keyboard."""

    def __init__(self) -> None:
        self.count = self.impatience = 0

    def note(self, number: int, frame: object) -> None:  # noqa: ARG002 - the shape of a signal handler
        """One more."""
        self.count += 1
        self.impatience += number == signal.SIGINT


@contextmanager
def counted_interruptions() -> Iterator[Interruptions]:
    """Count instead of raising ``KeyboardInterrupt``; afterwards signals do what they did before.

    Only the main thread can arrange that; in another one nothing is counted.
    """
    counted = Interruptions()
    if threading.current_thread() is not threading.main_thread():
        yield counted
        return
    before = {number: signal.signal(number, counted.note) for number in SIGNALS}
    try:
        yield counted
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
