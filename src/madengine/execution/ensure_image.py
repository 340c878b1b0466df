"""Making an image available where a model is about to run: present, loaded from an archive, built, or pulled.

Several nodes of one run come here at the same time. Those that share a machine go one after the other, so that each
machine loads or pulls an image once. On shared storage one of all builds and leaves an archive; the others wait for it
and load that, each machine on its own.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from madengine.catalog.card import ModelCard
from madengine.config.credentials import Credentials
from madengine.config.manifest import ImageRecord
from madengine.config.settings import Settings
from madengine.core.errors import ExecutionError, MADEngineError
from madengine.core.files import locked, safe_name
from madengine.execution.dockerfile import find_dockerfiles
from madengine.execution.engine import ContainerEngine, Output
from madengine.execution.images import LOCAL_IMAGE_DOCKERFILE, ImageJob, plan_image
from madengine.execution.shared_lock import SharedLock

ARCHIVES_VARIABLE = "MAD_DOCKER_BUILDS"
"""Names the folder of archives; it must be on storage that all nodes see."""

Builder = Callable[[], None]


def ensure_image(
    image: ImageRecord,
    engine: ContainerEngine,
    *,
    archives: Path | None = None,
    build: Builder | None = None,
    output: Output,
) -> str:
    """Make ``image`` available under its ``docker_image`` name; returns how: present, loaded, built or pulled.

    ``archives`` is the folder of ``MAD_DOCKER_BUILDS``; ``build`` builds the image, None when nothing can be built.
    Raises ExecutionError with what was tried and why each way failed.
    """
    reference = image.docker_image
    if engine.image_facts(reference) is not None:
        return "present"
    failures: list[str] = []
    with _one_per_machine(engine, reference):
        if engine.image_facts(reference) is not None:
            return "present"
        how = None
        if image.local_image or not image.text("registry_image"):
            way = _Way(reference, engine, output, failures)
            how = way.by_archive(archives / archive_name(reference), build) if archives else way.built(build)
        return how or _pull(image, engine, output, failures)


def keep_archive(reference: str, engine: ContainerEngine, archives: Path) -> None:
    """Leave an image that is here for the nodes of later runs. Raises ``MADEngineError``."""
    archive = archives / archive_name(reference)
    _require_folder(archives)
    with SharedLock(archive).held_unless(lambda: False):
        engine.save(reference, archive)


def archive_name(reference: str) -> str:
    """The file that an image is kept in: every run of characters outside ``[A-Za-z0-9_.-]`` is one ``_``."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", reference) + ".tar"


def archives_folder(environ: Mapping[str, str]) -> Path | None:
    """The folder of archives that the environment names, if it names one."""
    folder = environ.get(ARCHIVES_VARIABLE)
    return Path(folder) if folder else None


def is_rebuilt(image: ImageRecord) -> bool:
    """Whether an image of a manifest is one that madengine builds: its Dockerfile is known."""
    return image.text("dockerfile") not in ("", LOCAL_IMAGE_DOCKERFILE)


def rebuild_job(
    image: ImageRecord, card: ModelCard, settings: Settings, package: Path, credentials: Credentials
) -> ImageJob:
    """How an image of a manifest (see :func:`is_rebuilt`) is built again under its own name.

    Raises BuildError when the package does not have its Dockerfile.
    """
    dockerfile = find_dockerfiles(package, image.text("dockerfile"))[0]
    vendor = image.text("gpu_vendor") or settings.gpu_vendor or ""
    job = plan_image(
        card,
        dockerfile,
        settings,
        package,
        gpu_vendor=vendor,
        architecture=image.text("gpu_architecture"),
        credentials=credentials,
    )
    return replace(job, request=replace(job.request, tag=image.docker_image))


@contextmanager
def _one_per_machine(engine: ContainerEngine, reference: str) -> Iterator[None]:
    """One process of this user at a time asks the engine of this machine for this image, where that can be arranged."""
    folder = Path(tempfile.gettempdir()) / f"madengine-{os.getuid()}"
    with ExitStack() as stack:
        with suppress(OSError, MADEngineError):
            folder.mkdir(mode=0o700, exist_ok=True)
            if folder.lstat().st_uid == os.getuid():  # else somebody was here first, and may keep us waiting for ever
                stack.enter_context(locked(folder / f"{engine.name}-{safe_name(reference)}"))
        yield


def _require_folder(archives: Path) -> None:
    try:
        archives.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExecutionError(
            f"the folder of image archives cannot be made: {error.strerror}", where=f"${ARCHIVES_VARIABLE}"
        ) from error


@dataclass(frozen=True)
class _Way:
    """The ways to an image that is in no registry. Each answers how it was had, or adds to ``failures`` why not."""

    reference: str
    engine: ContainerEngine
    output: Output
    failures: list[str]

    def by_archive(self, archive: Path, build: Builder | None) -> str | None:
        """Load the archive; without one that helps, build it here unless another does, and then load what that left."""
        _require_folder(archive.parent)
        tried = _identity(archive)
        how = self.loaded(archive)
        if how or build is None:
            return how
        lock = SharedLock(archive)
        with lock.held_unless(lambda: _identity(archive) not in (None, tried)) as alone:
            if alone:
                return self._built_for_all(archive, build, lock)
        return self.loaded(archive)

    def loaded(self, archive: Path) -> str | None:
        """From the archive, if there is one."""
        if not archive.is_file():
            return None
        try:
            self.engine.load(archive, output=self.output)
        except MADEngineError as error:
            self.failures.append(f"loading {archive}: {error}")
            return None
        if self.engine.image_facts(self.reference) is not None:
            return "loaded"
        self.failures.append(f"{archive} does not hold it")
        return None

    def built(self, build: Builder | None) -> str | None:
        """By building it here."""
        if build is None:
            return None
        try:
            build()
        except MADEngineError as error:
            self.failures.append(f"building: {error}")
            return None
        if self.engine.image_facts(self.reference) is not None:
            return "built"
        self.failures.append("the build did not leave it")
        return None

    def _built_for_all(self, archive: Path, build: Builder, lock: SharedLock) -> str | None:
        """Build and leave the archive; what has failed for another just now would fail here, too."""
        failure = lock.failure()
        if failure is not None:
            self.failures.append(f"building on {failure.host}: {failure.reason}")
            return None
        how = self.built(build)
        if how is None:
            lock.fail(self.failures[-1].removeprefix("building: "))
            return None
        try:
            self.engine.save(self.reference, archive)
        except (MADEngineError, OSError) as error:
            return f"{how}, and not kept for other nodes: {error}"
        return how


def _identity(archive: Path) -> tuple[int, int, int] | None:
    """What tells one archive from another that took its place; None without one."""
    try:
        facts = archive.stat()
    except OSError:
        return None
    return facts.st_ino, facts.st_size, facts.st_mtime_ns


def _pull(image: ImageRecord, engine: ContainerEngine, output: Output, failures: list[str]) -> str:
    name = image.text("registry_image") or image.docker_image
    try:
        engine.pull(name, output=output)
        if name != image.docker_image:
            engine.tag(name, image.docker_image)
    except MADEngineError as error:
        failures.append(f"pulling: {error}")
        raise ExecutionError(
            f"the image {image.docker_image} is not on this machine and cannot be had: {'; '.join(failures)}"
        ) from None
    return "pulled"
