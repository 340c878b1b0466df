"""Commands in a container, with what they print."""

from __future__ import annotations

import threading

from madengine.execution.engine import Container, ExecResult


class Heard:
    """Runs commands in a container and keeps what they print."""

    def __init__(self, container: Container) -> None:
        self._container = container
        self.output = b""

    def __call__(
        self,
        *argv: str,
        cwd: str = "/myworkspace",
        timeout: float | None = 60,
        environment: dict[str, str] | None = None,
        cancel: threading.Event | None = None,
    ) -> ExecResult:
        self.output = b""
        return self._container.exec(
            argv, cwd=cwd, output=self._hear, timeout=timeout, environment=environment, cancel=cancel
        )

    def _hear(self, data: bytes) -> None:
        self.output += data

    @property
    def text(self) -> str:
        return self.output.decode().strip()
