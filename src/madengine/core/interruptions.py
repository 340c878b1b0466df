"""Ctrl-C, TERM and HUP (a terminal that was closed): raised, or counted where work must not be torn apart.

A command as a whole may be broken off anywhere (:func:`raised_interruptions`); between two of its steps that belong
together interruptions are only counted (:func:`counted_interruptions`). A HUP that is ignored from the start stays
ignored: that is what ``nohup`` does.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
IMPATIENT = 3  # times Ctrl-C after which nothing is waited for
IMPORT_LOOK = 0.005  # seconds between two looks whether an import has ended


class Interruptions:
    """How often this process was asked to end: ``count`` in all, ``impatience`` by a user at the keyboard."""

    def __init__(self, *, raising: bool = False) -> None:
        self.count = self.impatience = 0
        self._raising = raising

    def note(self, number: int, frame: FrameType | None) -> None:
        """One more (or, at an alarm, one that waited for an import). Raises ``KeyboardInterrupt`` where that is due."""
        if number != signal.SIGALRM or not self.count:
            self.count += 1
        self.impatience += number == signal.SIGINT
        if not self._raising:
            return
        if self.impatience < IMPATIENT and _is_importing(frame):
            signal.signal(signal.SIGALRM, self.note)
            signal.setitimer(signal.ITIMER_REAL, IMPORT_LOOK)
            return
        raise KeyboardInterrupt

    def only_count(self) -> None:
        """From now on nothing is raised: the command is about to end."""
        self._raising = False

    @contextmanager
    def raised(self) -> Iterator[None]:
        """Work that an interruption breaks off by ``KeyboardInterrupt``, also when it came before."""
        self._raising = True
        try:
            if self.count:
                raise KeyboardInterrupt
            yield
        finally:
            self._raising = False


@contextmanager
def counted_interruptions() -> Iterator[Interruptions]:
    """Count instead of raising ``KeyboardInterrupt``; afterwards signals do what they did before.

    Only the main thread can arrange that; in another one nothing is counted.
    """
    with _heard_by(Interruptions()) as counted:
        yield counted


@contextmanager
def raised_interruptions() -> Iterator[Interruptions]:
    """Raise ``KeyboardInterrupt`` for each of the signals, and count them as well.

    What comes out of the work may be something else, since libraries answer with errors of their own: after an
    interruption any exception is its consequence. Nothing is raised inside of an import, but right after it: what is
    half imported prints, panics or swallows it.
    """
    with _heard_by(Interruptions(raising=True)) as heard:
        yield heard


@contextmanager
def _heard_by(heard: Interruptions) -> Iterator[Interruptions]:
    if threading.current_thread() is not threading.main_thread():
        yield heard
        return
    before = {number: signal.signal(number, heard.note) for number in _heeded()}
    try:
        yield heard
    finally:
        if signal.getsignal(signal.SIGALRM) == heard.note:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _heeded() -> list[signal.Signals]:
    """The signals to hear, with the alarm when an interruption waits for it already."""
    numbers = [number for number in SIGNALS if number != signal.SIGHUP or not _is_ignored(number)]
    waits = isinstance(getattr(signal.getsignal(signal.SIGALRM), "__self__", None), Interruptions)
    return [*numbers, signal.SIGALRM] if waits else numbers


def _is_ignored(number: signal.Signals) -> bool:
    return signal.getsignal(number) is signal.SIG_IGN


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
