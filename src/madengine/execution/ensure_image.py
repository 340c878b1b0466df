"""Making an image available where a model is about to run: present, loaded from an archive, built, or pulled.

Several nodes of one run come here at the same time. On shared storage one of them builds and leaves an archive, the
others wait for it and load that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from madengine.catalog.card import ModelCard
from madengine.config.credentials import Credentials
from madengine.config.manifest import ImageRecord
from madengine.config.settings import Settings
from madengine.core.errors import ExecutionError, MADEngineError
from madengine.execution.dockerfile import find_dockerfiles
from madengine.execution.engine import ContainerEngine, Output
from madengine.execution.images import LOCAL_IMAGE_DOCKERFILE, ImageJob, build_image, plan_image

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
    if image.local_image or not image.text("registry_image"):
        archive = archives / archive_name(reference) if archives else None
        with _one_at_a_time(archive):
            how = _load(archive, reference, engine, output, failures)
            how = how or _build(archive, reference, engine, build, failures)
        if how:
            return how
    return _pull(image, engine, output, failures)


def archive_name(reference: str) -> str:
    """The file that an image is kept in: every run of characters outside ``[A-Za-z0-9_.-]`` is one ``_``."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", reference) + ".tar"


def archives_folder(environ: Mapping[str, str]) -> Path | None:
    """The folder of archives that the environment names, if it names one."""
    folder = environ.get(ARCHIVES_VARIABLE)
    return Path(folder) if folder else None


def rebuild_job(
    image: ImageRecord, card: ModelCard, settings: Settings, package: Path, credentials: Credentials
) -> ImageJob | None:
    """How an image of a manifest is built again under its own name; None when its Dockerfile is not known.

    Raises BuildError when the package does not have it.
    """
    written = image.text("dockerfile")
    if not written or written == LOCAL_IMAGE_DOCKERFILE:
        return None
    dockerfile = find_dockerfiles(package, written)[0]
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


def builder(job: ImageJob | None, engine: ContainerEngine, *, log: Path, output: Output) -> Builder | None:
    """The ``build`` argument of :func:`ensure_image` for a job."""
    if job is None:
        return None

    def build() -> None:
        build_image(job, engine, log=log, output=output)

    return build


@contextmanager
def _one_at_a_time(archive: Path | None) -> Iterator[None]:
    from madengine.core.files import locked

    if archive is None:
        yield
        return
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExecutionError(
            f"the folder of image archives cannot be made: {error.strerror}", where=f"${ARCHIVES_VARIABLE}"
        ) from error
    with locked(archive):
        yield


def _load(
    archive: Path | None, reference: str, engine: ContainerEngine, output: Output, failures: list[str]
) -> str | None:
    if archive is None or not archive.is_file():
        return None
    try:
        engine.load(archive, output=output)
    except MADEngineError as error:
        failures.append(f"loading {archive}: {error}")
        return None
    if engine.image_facts(reference) is not None:
        return "loaded"
    failures.append(f"{archive} does not hold it")
    return None


def _build(
    archive: Path | None, reference: str, engine: ContainerEngine, build: Builder | None, failures: list[str]
) -> str | None:
    if build is None:
        return None
    try:
        build()
        if archive is not None:
            engine.save(reference, archive)
    except MADEngineError as error:
        failures.append(f"building: {error}")
    return "built" if engine.image_facts(reference) is not None else None


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
