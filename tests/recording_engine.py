"""A container engine that keeps what it was asked for, and fails where a test wants it to.

Its archives are files that hold the name of the image that is in them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from madengine.core.errors import BuildError
from madengine.execution.engine import BuildRequest, Container, ContainerRequest, ImageFacts, Output

Builder = Callable[[BuildRequest, Output], None]


class RecordingEngine:
    """``local`` are the images that are there, with their digests. ``builder`` stands for the build itself."""

    name = "docker"

    def __init__(
        self, *, needs_image: bool = True, local: Mapping[str, str] | None = None, builder: Builder | None = None
    ) -> None:
        self.needs_image = needs_image
        self.local = dict(local or {})
        self.builds: list[BuildRequest] = []
        self.tags: list[tuple[str, str]] = []
        self.pushes: list[str] = []
        self.refuse_push = False
        self.remote: set[str] = set()
        self.loads: list[Path] = []
        self._builder = builder or (lambda request, output: output(b"done\n"))

    def problem(self) -> str | None:
        return None

    def describe(self) -> str:
        return self.name

    def build(self, request: BuildRequest, *, output: Output, timeout: float | None = None) -> None:
        self.builds.append(request)
        self._builder(request, output)
        self.local[request.tag] = "sha256:" + "b" * 64

    def pull(self, reference: str, *, output: Output) -> None:
        if reference not in self.remote:
            raise BuildError(f"docker cannot pull {reference}: not found")
        self.local[reference] = "sha256:" + "c" * 64

    def push(self, reference: str, *, output: Output) -> None:
        if self.refuse_push:
            raise BuildError(f"docker cannot push {reference}: denied")
        self.pushes.append(reference)

    def tag(self, reference: str, alias: str) -> None:
        self.tags.append((reference, alias))
        if reference in self.local:
            self.local[alias] = self.local[reference]

    def load(self, archive: Path, *, output: Output) -> None:
        self.loads.append(archive)
        if (reference := archive.read_text()) == "broken":
            raise BuildError(f"docker cannot load {archive}: unexpected EOF")
        self.local[reference] = "sha256:" + "d" * 64

    def save(self, reference: str, archive: Path) -> None:
        archive.write_text(reference)

    def image_facts(self, reference: str) -> ImageFacts | None:
        digest = self.local.get(reference)
        return ImageFacts(reference, digest) if digest else None

    def remove_image(self, reference: str) -> None:
        raise AssertionError("nothing is removed here")

    def containers(self) -> Mapping[str, Path]:
        return {}

    def start(self, request: ContainerRequest) -> Container:
        raise AssertionError("nothing is started here")
