"""Finding and ending what a command started and left, wherever it went.

A script's background processes leave its process group, and sometimes its session. All of them keep its environment, so
a variable that only this command's processes have finds them (proc(5), ``/proc/PID/environ``).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

ROUNDS = 20  # a process may start another one while the list is read
PAUSE = 0.02  # seconds between two rounds


def marked(marks: Collection[str]) -> list[int]:
    """Ids of the living processes whose environment holds one of ``marks`` (``NAME=VALUE``), this one not counted."""
    wanted = {os.fsencode(mark) for mark in marks}
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            with suppress(OSError):
                if not wanted.isdisjoint((Path(entry.path) / "environ").read_bytes().split(b"\0")):
                    found.append(int(entry.name))
    return found


def end_marked(marks: Collection[str]) -> list[int]:
    """KILL all processes with one of ``marks`` in their environment; returns those that are left (hung in a driver)."""
    left: list[int] = []
    for _ in range(ROUNDS):
        left = marked(marks)
        if not left:
            break
        for process in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        time.sleep(PAUSE)
    return left
