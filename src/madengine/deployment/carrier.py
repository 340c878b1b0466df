"""The process that carries a run, so that another one can tell whether it still lives, and can end it.

A process id alone does not do: it is given away again. So its start time stands beside it, and the host, since a run
directory may lie on storage that several machines see.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from madengine.core.errors import ExecutionError
from madengine.core.files import write_atomic
from madengine.core.living import start_time

PID = "pid"


@dataclass(frozen=True)
class Carrier:
    """A process. ``started`` is in clock ticks since its machine was booted, as the kernel counts."""

    pid: int
    started: int
    host: str

    @classmethod
    def this_process(cls) -> Carrier:
        """The process that asks."""
        return cls.of(os.getpid())

    @classmethod
    def of(cls, pid: int) -> Carrier:
        """A process of this machine."""
        return cls(pid, start_time(pid) or 0, os.uname().nodename)

    @classmethod
    def read(cls, run_dir: Path) -> Carrier | None:
        """What the run directory says, None when it says nothing that can be understood."""
        try:
            pid, started, host = (run_dir / PID).read_text(encoding="utf-8").split()
            return cls(int(pid), int(started), host)
        except (OSError, ValueError):
            return None

    def write(self, run_dir: Path) -> None:
        """Leave it in the run directory. Raises ``MADEngineError``."""
        write_atomic(run_dir / PID, f"{self.pid} {self.started} {self.host}\n", durable=False)

    def may_live(self) -> bool:
        """Whether the process lives; of one on another machine nobody here can say that it does not."""
        return not self._is_here() or start_time(self.pid) == self.started

    def end(self) -> None:
        """Ask the process to end. Raises ``ExecutionError`` when it cannot be asked from here."""
        if not self._is_here():
            raise ExecutionError(f"the run is carried by a process on {self.host}", hint="cancel it there")
        try:
            if self.may_live():
                os.kill(self.pid, signal.SIGTERM)
        except ProcessLookupError:
            return
        except PermissionError as error:
            raise ExecutionError(f"process {self.pid}, which carries the run, is another user's") from error

    def _is_here(self) -> bool:
        return self.host == os.uname().nodename
