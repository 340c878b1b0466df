"""Whether a process still lives, asked by its number and the time that it began: numbers are given away again."""

from __future__ import annotations

import os
from pathlib import Path


def start_time(pid: int) -> int | None:
    """When a process began, in clock ticks since the machine was booted.

    Field 22 of ``/proc/PID/stat`` (proc(5)); None for a process that is not there, or only waits to be buried.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    state, *fields = text.rpartition(")")[2].split()
    return None if state in "ZX" else int(fields[18])


def process_space() -> str:
    """Names what numbers of processes mean: this boot of this machine, and the namespace of process numbers in it.

    Two machines with one name, and two containers of one machine, have different ones (proc(5), pid_namespaces(7)).
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}-{os.stat('/proc/self/ns/pid').st_ino}"  # noqa: PTH116 - Path.stat would do the same
    except OSError:
        return ""
