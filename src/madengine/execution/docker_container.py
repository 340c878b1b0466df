"""One container of docker's or podman's: commands in it, its end, and the files that it leaves."""

from __future__ import annotations

import json
import os
import re
import threading
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from madengine.core.errors import ExecutionError
from madengine.core.process import Completed, StreamResult, run, stream
from madengine.execution.client_environment import Passing, passing
from madengine.execution.docker_words import SIGNALLER, WAITING, WORKSPACE, WRAPPER, Dialect, exec_words, mount_words
from madengine.execution.engine import ContainerRequest, ExecResult, Mount, Output
from madengine.execution.watch import Watched, watched

MARK = "MADENGINE_EXEC"
"""The variable that every process of one command has, so that they can be found to be ended."""

ASK_LIMIT = 30.0  # seconds
REMOVE_LIMIT = 120.0  # seconds; a process that hangs in a driver can hold a removal for long
KILL_LIMIT = 3.0  # seconds from KILL inside to killing the whole container

KILLED = 137
CANNOT_START = (125, 126, 127, 255)
UNSTARTABLE = re.compile(r"(Error: .*)?OCI runtime ")


class CommandContainer:
    """A started container that waits for commands."""

    notes: tuple[str, ...] = ()

    def __init__(
        self, dialect: Dialect, identity: str, request: ContainerRequest, variables: Passing, grace: float
    ) -> None:
        self.name = request.name
        self.entry = (dialect.program, "exec", "-it", request.name, "bash")
        self._dialect, self._id, self._request = dialect, identity, request
        self._variables, self._grace = variables, grace
        self._stopped = False

    def path(self, inside: str) -> str:
        """Paths are inside already."""
        return inside

    def exec(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        output: Output,
        timeout: float | None = None,
        environment: Mapping[str, str] | None = None,
        cancel: threading.Event | None = None,
    ) -> ExecResult:
        """Run a command in the container to its end."""
        token = uuid.uuid4().hex
        extra = passing(environment or {})
        carried = Passing(extra.plain, {**self._variables.carried, **extra.carried})
        wrapper = ["bash", "-c", WRAPPER, "madengine", *carried.renames, "--"]
        words = exec_words(
            self._id, [*wrapper, *argv], cwd=cwd, user=self._request.user, names=carried.names, settings={MARK: token}
        )
        head = _Head(output)

        def client(give_up: threading.Event) -> StreamResult:
            environ = carried.client(os.environ)
            return stream([self._dialect.program, *words], output=head, env=environ, cancel=give_up, grace=1.0)

        ended = watched(
            client, end=lambda returned: self._end(f"{MARK}={token}", returned), timeout=timeout, cancel=cancel
        )
        return self._result(ended, head)

    def copy_out(self, inside: str, destination: Path) -> None:
        """Copy a file or folder out of the container. Raises ``ExecutionError``."""
        done = self._ask("cp", f"{self._id}:{inside}", str(destination), timeout=None)
        if done.exit_code:
            raise ExecutionError(f"{inside} cannot be copied out of {self.name}: {done.stderr.strip()}")

    def stop(self) -> None:
        """Remove the container with all its processes, then make its files the caller's."""
        if self._stopped:
            return
        removed = self._ask("rm", "--force", "--volumes", self._id, timeout=REMOVE_LIMIT)
        if removed.exit_code and "no such container" not in removed.stderr.lower():
            raise ExecutionError(
                f"{self._dialect.program} cannot remove container {self.name}: "
                f"{'no answer in time' if removed.timed_out else removed.stderr.strip()}",
                hint=f"when the machine allows it: {self._dialect.program} rm -f {self._id[:12]}",
            )
        self._stopped = True
        self._reclaim()

    def _end(self, mark: str, returned: threading.Event) -> None:
        """TERM to every process of the command, KILL after the grace, then the end of the whole container."""
        self._signal("TERM", mark)
        returned.wait(self._grace)
        self._signal("KILL", mark)
        if not returned.wait(KILL_LIMIT):
            self._ask("kill", self._id)
            returned.wait(KILL_LIMIT)

    def _signal(self, name: str, mark: str) -> None:
        signaller = ("bash", "-c", SIGNALLER, "signaller", name, mark)
        self._ask(*exec_words(self._id, signaller, cwd="/", user=self._request.user, names=(), settings={}))

    def _result(self, ended: Watched, head: _Head) -> ExecResult:
        """How it ended, with what the engine knows about a bad end."""
        detail, out_of_memory = "", False
        if ended.exit_code and not ended.timed_out and not ended.cancelled:
            detail, out_of_memory = self._explain(ended.exit_code, head)
        return ExecResult(
            ended.exit_code,
            ended.duration,
            ended.timed_out,
            ended.cancelled,
            out_of_memory=out_of_memory,
            detail=detail,
        )

    def _explain(self, exit_code: int, head: _Head) -> tuple[str, bool]:
        if exit_code in CANNOT_START and UNSTARTABLE.match(head.text()):
            return _unstartable(head.text(), self._request.image), False
        state = self._state()
        if state is None:
            return f"container {self.name} was removed from outside while it ran", False
        out_of_memory = bool(state.get("OOMKilled"))
        if not state.get("Running"):
            if state.get("ExitCode") in CANNOT_START:
                return f"the image {self._request.image} has no {WAITING[0]}, with which a container waits", False
            how = "ran out of memory" if out_of_memory else "was ended from outside"
            return f"container {self.name} {how} (exit code {state.get('ExitCode')})", out_of_memory
        return "", out_of_memory and exit_code == KILLED

    def _state(self) -> dict[str, Any] | None:
        """What the engine says of the container, None when it is gone; without an answer it counts as running."""
        asked = self._ask("inspect", "--type", "container", "--format", "{{json .State}}", self._id)
        if asked.exit_code:
            gone = "no such" in asked.stderr.lower()
            return None if gone else {"Running": True}
        state = json.loads(asked.stdout.splitlines()[0])
        return state if isinstance(state, dict) else {"Running": True}

    def _reclaim(self) -> None:
        """Make files of other users the caller's, in a container that sees nothing but the workspace.

        Not in the run's own one: a recursive change of owners there would follow mounts to the user's data.
        """
        uid, workspace = os.geteuid(), self._request.workspace
        if uid == 0 or not _has_foreign_files(workspace, uid):
            return
        words = ["run", "--rm", "--pull", "never", "--network", "none", "--user", "0:0", "--entrypoint", "chown"]
        words += [*mount_words(Mount(workspace, WORKSPACE)), self._request.image, "-Rh"]
        self._ask(*words, f"{uid}:{os.getegid()}", WORKSPACE, timeout=REMOVE_LIMIT)

    def _ask(self, *words: str, timeout: float | None = ASK_LIMIT) -> Completed:
        return run([self._dialect.program, *words], timeout=timeout)


class _Head:
    """Hands output on and remembers how it began: an engine that cannot start a command says so first."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._head = b""

    def __call__(self, data: bytes) -> None:
        if len(self._head) < 1000:
            self._head = (self._head + data)[:1000]
        self._output(data)

    def text(self) -> str:
        return self._head.decode("utf-8", "replace")


def _unstartable(text: str, image: str) -> str:
    """An engine's text for a command that could not be started, with the most common cause in words."""
    if '"bash"' in text or "`bash`" in text:
        return f"the image {image} has no bash, which a model's script needs"
    return text.strip().splitlines()[0]


def _has_foreign_files(folder: Path, uid: int) -> bool:
    """Whether something in ``folder`` is not ours; a folder that we may not read is not ours either."""
    for place, names, files in os.walk(folder, onerror=None):
        for name in (*names, *files):
            with suppress(OSError):
                if Path(place, name).lstat().st_uid != uid:
                    return True
    return False
