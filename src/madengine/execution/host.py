"""The engine without a container: the same script in the same layout, in the run's private workspace.

Paths below ``/myworkspace`` are mapped to the workspace, those below a mount to what is mounted: the working
directory, and variables that hold such a path.
The script has this machine's programs and the caller's own environment, with the run's variables on top.
"""

# ruff: noqa: ARG002 - the seam gives arguments that an engine without images does not look at

from __future__ import annotations

import os
import shutil
import threading
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from madengine.core.errors import BuildError, ExecutionError
from madengine.core.process import CANNOT_START, NOT_FOUND, stream
from madengine.execution.client_environment import check_variables
from madengine.execution.docker_words import WORKSPACE
from madengine.execution.engine import BuildRequest, ContainerRequest, ExecResult, ImageFacts, Mount, Output
from madengine.execution.stragglers import end_marked

MARK = "MADENGINE_EXEC"


class HostEngine:
    """Runs scripts on this machine. ``grace`` is the time in seconds between TERM and KILL."""

    name = "host"
    needs_image = False

    def __init__(self, *, grace: float = 10.0) -> None:
        self._grace = grace

    def problem(self) -> str | None:
        """Scripts need bash; nothing else is asked of the machine."""
        return None if shutil.which("bash") else "bash is not installed"

    def describe(self) -> str:
        """``host``."""
        return "host (no container)"

    def start(self, request: ContainerRequest) -> HostContainer:
        """Prepare to run in the request's workspace. Raises ``ExecutionError`` when it is not there."""
        if not request.workspace.is_dir():
            raise ExecutionError(f"the workspace {request.workspace} is not there")
        return HostContainer(request, self._grace)

    def containers(self) -> Mapping[str, Path]:
        """There are none."""
        return {}

    def image_facts(self, reference: str) -> ImageFacts | None:
        """There are no images."""
        return None

    def remove_image(self, reference: str) -> None:
        """There are no images, so it is gone already."""

    def build(self, request: BuildRequest, *, output: Output, timeout: float | None = None) -> None:
        """There is no builder."""
        _no_images(f"build {request.tag}")

    def pull(self, reference: str, *, output: Output) -> None:
        """There are no images."""
        _no_images(f"pull {reference}")

    def push(self, reference: str, *, output: Output) -> None:
        """There are no images."""
        _no_images(f"push {reference}")

    def tag(self, reference: str, alias: str) -> None:
        """There are no images."""
        _no_images(f"tag {reference}")

    def load(self, archive: Path, *, output: Output) -> None:
        """There are no images."""
        _no_images(f"load {archive}")

    def save(self, reference: str, archive: Path) -> None:
        """There are no images."""
        _no_images(f"save {reference}")


class HostContainer:
    """A workspace in which commands run."""

    def __init__(self, request: ContainerRequest, grace: float) -> None:
        self.name = request.name
        self._workspace = request.workspace.resolve()
        self.entry = ("cd", str(self._workspace))
        self._grace = grace
        self._marks: list[str] = []
        self._environment = {**request.environment, **request.secrets}
        self._links, self.notes = _link_mounts(request.mounts, self._workspace)
        self._places = [(WORKSPACE, str(self._workspace)), *_elsewhere(request.mounts)]
        if request.options:
            self.notes += ("additional_docker_run_options have no meaning on the host engine and were left out",)

    def path(self, inside: str) -> str:
        """A path below ``/myworkspace`` or a mount as it is on this machine."""
        for target, source in self._places:
            if inside == target or inside.startswith(target + "/"):
                return source + inside[len(target) :]
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
        """Run a command in the workspace to its end."""
        head = _FirstBytes(output)
        given = {**self._environment, **(environment or {})}
        check_variables(given)
        mapped = {name: ":".join(map(self.path, value.split(":"))) for name, value in given.items()}
        token = uuid.uuid4().hex
        self._marks.append(f"{MARK}={token}")
        result = stream(
            argv,
            output=head,
            env={**os.environ, **mapped, MARK: token},
            cwd=self.path(cwd),
            timeout=timeout,
            cancel=cancel,
            grace=self._grace,
        )
        if result.timed_out or result.cancelled:
            end_marked([f"{MARK}={token}"])
        return ExecResult(
            result.exit_code,
            result.duration,
            result.timed_out,
            result.cancelled,
            detail=head.reason() if result.exit_code in (CANNOT_START, NOT_FOUND) else "",
        )

    def copy_out(self, inside: str, destination: Path) -> None:
        """Copy a file or folder. Raises ``ExecutionError``."""
        source = Path(self.path(inside))
        try:
            if source.is_dir():
                shutil.copytree(source, destination, symlinks=True)
            else:
                shutil.copyfile(source, destination)
        except (OSError, shutil.Error) as error:
            raise ExecutionError(f"{inside} cannot be copied out of {self.name}: {error}") from error

    def stop(self) -> None:
        """End what the commands left running, as a container's end would, and take the links to mounts away."""
        left = end_marked(self._marks)
        for link in self._links:
            if link.is_symlink():
                link.unlink()
        if left:
            raise ExecutionError(f"processes of {self.name} cannot be ended: {', '.join(map(str, left))}")


class _FirstBytes:
    """Hands output on and remembers how it began: a program that cannot be started says so first."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._first = b""

    def __call__(self, data: bytes) -> None:
        self._first = self._first or data[:500]
        self._output(data)

    def reason(self) -> str:
        text = self._first.decode("utf-8", "replace").strip()
        return text if text.startswith("cannot start ") else ""


def _link_mounts(mounts: Sequence[Mount], workspace: Path) -> tuple[list[Path], tuple[str, ...]]:
    """Links in place of mounts below ``/myworkspace``, and a note for each mount that the script will not see."""
    links, notes = [], []
    for mount in mounts:
        place = _place(mount.target, workspace)
        if place is None:
            if Path(mount.target) != mount.source:
                notes.append(
                    f"{mount.source} is not visible as {mount.target} on the host engine; "
                    "variables that hold this path lead to it"
                )
        elif place.exists() or place.is_symlink():
            notes.append(f"{mount.source} is not visible as {mount.target}: the workspace has something there")
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(mount.source)
            links.append(place)
    return links, tuple(notes)


def _elsewhere(mounts: Sequence[Mount]) -> list[tuple[str, str]]:
    """Mounts outside ``/myworkspace``, as container path and path here, the innermost first."""
    places = [(os.path.normpath(mount.target), str(mount.source)) for mount in mounts]
    kept = [place for place in places if place[0] != "/" and not f"{place[0]}/".startswith(f"{WORKSPACE}/")]
    return sorted(kept, key=lambda place: -len(place[0]))


def _place(target: str, workspace: Path) -> Path | None:
    """Where a container path lies in the workspace; None outside it, also by ``..`` or by a link."""
    normal = os.path.normpath(target)
    if not normal.startswith(WORKSPACE + "/"):
        return None
    place = workspace / normal[len(WORKSPACE) + 1 :]
    parent = place.parent.resolve()
    return place if parent == workspace or workspace in parent.parents else None


def _no_images(what: str) -> NoReturn:
    raise BuildError(f"the host engine has no images and cannot {what}", hint="use --engine docker or podman")
