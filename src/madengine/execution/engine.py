"""The seam between a run and the thing that executes it: a container engine, or the host itself.

An implementation is one file and one line in :data:`ENGINES`. Docker and podman share one; ``host`` runs the same
script in the run's private workspace without a container. Every implementation passes the same conformance suite
(``tests/conformance``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

Output = Callable[[bytes], None]
"""Receives a process's output as it comes, standard output and error interleaved, already redacted."""


@dataclass(frozen=True)
class Mount:
    """A folder or file of this machine that the script sees at ``target``."""

    source: Path
    target: str
    read_only: bool = False


@dataclass(frozen=True)
class ImageFacts:
    """What an engine knows about a local image. ``digest`` is the image id (``sha256:...``)."""

    reference: str
    digest: str
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class BuildRequest:
    """Everything one image build needs.

    ``secrets`` (name -> value) reach the builder through its environment and are never printed or put into argv.
    ``contexts`` are named build contexts (name -> folder).
    """

    tag: str
    dockerfile: Path
    context: Path
    build_args: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    contexts: Mapping[str, Path] = field(default_factory=dict)
    pull: bool = False
    no_cache: bool = False
    network: str = "host"


@dataclass(frozen=True)
class ContainerRequest:
    """Everything that starting one container needs.

    ``workspace`` is mounted at ``/myworkspace`` and is the working directory. ``environment`` and ``secrets`` reach the
    container as ``-e NAME`` with the values in the engine client's environment, so no value shows in a process
    list. ``gpus`` are NVIDIA device indices joined by commas. ``options`` are extra words for the engine's run
    command (already split). ``user`` is ``uid:gid`` or empty.
    """

    name: str
    image: str
    workspace: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    mounts: tuple[Mount, ...] = ()
    devices: tuple[str, ...] = ()
    gpus: str = ""
    cpus: str = ""
    user: str = ""
    options: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ExecResult:
    """How a command in a container ended. A signal shows as 128+n; ``timed_out`` as 124, ``cancelled`` as 130."""

    exit_code: int
    duration: float
    timed_out: bool = False
    cancelled: bool = False
    out_of_memory: bool = False
    detail: str = ""


class Container(Protocol):
    """A started container (or, for the host engine, a prepared workspace).

    ``notes`` are remarks on what could not be arranged as asked. ``entry`` is the command with which
    a person enters it.
    """

    name: str
    notes: tuple[str, ...]
    entry: tuple[str, ...]

    def path(self, inside: str) -> str:
        """The path that the script sees for ``/myworkspace/...`` (the host engine maps it into its workspace)."""

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
        """Run a command to its end, streaming its output; ends it, and what it started, at the time limit or on cancel.

        ``cwd`` is a path under ``/myworkspace``. A command that cannot be started is a result with a ``detail``.
        """

    def copy_out(self, inside: str, destination: Path) -> None:
        """Copy a file or folder out of the container."""

    def stop(self) -> None:
        """End and remove the container, and give the workspace's files to the caller. Safe to call twice.

        Raises ``ExecutionError`` when the engine cannot remove it.
        """


class ContainerEngine(Protocol):
    """What every engine offers. Errors are ``BuildError`` or ``ExecutionError`` with the engine's own words."""

    name: str
    needs_image: bool

    def problem(self) -> str | None:
        """Why this engine cannot be used here, or None when it works."""

    def describe(self) -> str:
        """The engine's name and version, for people."""

    def build(self, request: BuildRequest, *, output: Output, timeout: float | None = None) -> None:
        """Build an image."""

    def pull(self, reference: str, *, output: Output) -> None:
        """Fetch an image from its registry."""

    def push(self, reference: str, *, output: Output) -> None:
        """Send a local image to its registry."""

    def tag(self, reference: str, alias: str) -> None:
        """Give a local image a second name."""

    def load(self, archive: Path, *, output: Output) -> None:
        """Load an image from a tar archive."""

    def save(self, reference: str, archive: Path) -> None:
        """Write an image to a tar archive, atomically."""

    def image_facts(self, reference: str) -> ImageFacts | None:
        """What is known of a local image, None when it is not there."""

    def remove_image(self, reference: str) -> None:
        """Remove a local image."""

    def start(self, request: ContainerRequest) -> Container:
        """Start a container that waits for commands."""

    def containers(self) -> Mapping[str, Path]:
        """What madengine has started and nobody has removed, by name, with the run directories."""


ENGINES: Mapping[str, str] = {
    "docker": "madengine.execution.docker:docker",
    "podman": "madengine.execution.docker:podman",
    "host": "madengine.execution.host:HostEngine",
}
"""Engine name -> ``module:factory``, imported only when it is asked for."""
