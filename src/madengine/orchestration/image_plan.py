"""Which image each selected card is to get: one that is built, one that was named, one from a registry, or none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from madengine.catalog.card import ModelCard
from madengine.config.credentials import Credentials
from madengine.config.manifest import ImageRecord
from madengine.config.settings import Settings
from madengine.core.errors import BuildError, ConfigurationError, MADEngineError
from madengine.execution.engine import ContainerEngine, ImageFacts
from madengine.execution.image_names import hashed_name, is_reference
from madengine.execution.images import ImageJob, given_image, no_image, plan_image, registry_record
from madengine.execution.registry import push_name
from madengine.orchestration.scripts import script_plan

if TYPE_CHECKING:
    from madengine.config.batch_manifest import BatchEntry
    from madengine.execution.dockerfile import Dockerfile

AUTO = "auto"
IMAGE_VARIABLE = "DOCKER_IMAGE_NAME"  # in a card's env_vars: the image it is meant to run in
CONTEXT_IMAGE = "MAD_CONTAINER_IMAGE"  # in the context: a local image for all selected models


@dataclass(frozen=True)
class BuildOptions:
    """What the command line says about a build.

    ``logs`` is the folder for this build's logs. ``use_image`` is an image, ``auto``, or empty. ``batch`` says per full
    model name what the batch manifest wants.
    """

    package: Path
    logs: Path
    registry: str = ""
    credentials: Credentials = field(default_factory=dict, repr=False)
    no_cache: bool = False
    target_archs: tuple[str, ...] = ()
    use_image: str = ""
    batch: Mapping[str, BatchEntry] = field(default_factory=dict)


class Fate(Enum):
    """Why there is no image: its build failed, or all was broken off while it was built or before that."""

    FAILED = "failed"
    INTERRUPTED = "interrupted"
    NOT_STARTED = "not started"


@dataclass(frozen=True)
class BuildFailure:
    """A card without its image, and why. ``image`` and ``log_file`` are empty when it did not come to a build."""

    model: str
    error: str
    image: str = ""
    log_file: str = ""
    seconds: float = 0.0
    fate: Fate = Fate.FAILED


@dataclass(frozen=True)
class PlannedImage:
    """One entry of the manifest to be: either a ``job`` to build or a finished ``record``.

    ``push_to`` is the registry that the built image goes to, ``push_name`` its name there; both empty for none.
    """

    key: str
    card: ModelCard
    job: ImageJob | None = None
    record: ImageRecord | None = None
    push_to: str = ""
    push_name: str = ""


@dataclass(frozen=True)
class ImagePlan:
    """The images in the order of the cards, and the cards for which there can be none."""

    images: tuple[PlannedImage, ...]
    failures: tuple[BuildFailure, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def builds(self) -> int:
        """How many images will be built."""
        return len({image.job.request.tag for image in self.images if image.job})


def plan_images(
    cards: Sequence[ModelCard],
    settings: Settings,
    engine: ContainerEngine | None,
    options: BuildOptions,
    gpu_vendor: str,
) -> ImagePlan:
    """Decide every card's image. What is wrong with one card becomes its failure.

    Raises ConfigurationError for what is wrong with the command: an image that was named and is none, a registry that
    cannot be pushed to.
    """
    planner = _Planner(settings, engine, options, gpu_vendor, named_images(cards, settings, options))
    for card in cards:
        planner.add(card)
    return planner.plan()


def named_images(cards: Sequence[ModelCard], settings: Settings, options: BuildOptions) -> dict[str, str]:
    """The images that were named instead of built, by full model name; empty when nothing was named.

    Raises ConfigurationError listing every card whose image is none.
    """
    wanted = options.use_image or str(settings.context.get(CONTEXT_IMAGE) or "")
    if not wanted:
        return {}
    if wanted != AUTO:
        _require_reference(wanted, "--use-image" if options.use_image else CONTEXT_IMAGE)
        return {card.name: wanted for card in cards}
    images = {card.name: card.env_vars.get(IMAGE_VARIABLE, "") for card in cards}
    wrong = [f"{name} says {image!r}" if image else f"{name} has none" for name, image in images.items()]
    wrong = [text for text, image in zip(wrong, images.values(), strict=True) if not is_reference(image)]
    if wrong:
        raise ConfigurationError(
            f"--use-image auto needs an image in each card's env_vars.{IMAGE_VARIABLE}: {'; '.join(wrong)}",
            hint="name the image: --use-image IMAGE",
        )
    return images


def _with_image(card: ModelCard, image: str) -> ModelCard:
    """The card whose ``DOCKER_IMAGE_NAME`` names the image it gets, where a template value still stands for it."""
    written = card.env_vars.get(IMAGE_VARIABLE)
    if not image or written is None or is_reference(written):
        return card
    return card.with_fields(env_vars={**card.block("env_vars"), IMAGE_VARIABLE: image})


def _require_reference(image: str, where: str) -> None:
    if not is_reference(image):
        raise ConfigurationError(f"{image!r} is no name of an image", where=where, hint="for example rocm/vllm:latest")


class _Planner:
    """Collects the plan, card by card."""

    def __init__(
        self,
        settings: Settings,
        engine: ContainerEngine | None,
        options: BuildOptions,
        gpu_vendor: str,
        named: Mapping[str, str],
    ) -> None:
        self._settings = settings
        self._engine = engine
        self._options = options
        self._vendor = gpu_vendor
        self._named = named
        self._context: Mapping[str, Any] = {
            **settings.context,
            "gpu_vendor": gpu_vendor,
            "guest_os": settings.guest_os,
        }
        self._images: dict[str, PlannedImage] = {}
        self._facts: dict[str, ImageFacts | None] = {}
        self._owners: dict[str, tuple[str, str, str]] = {}
        self._failures: list[BuildFailure] = []
        self._warnings: list[str] = []

    def plan(self) -> ImagePlan:
        return ImagePlan(tuple(self._images.values()), tuple(self._failures), tuple(self._warnings))

    def add(self, card: ModelCard) -> None:
        try:
            script_plan(card, self._options.package)
            record = self._record(card)
            if record is not None:
                self._keep(PlannedImage(card.name, _with_image(card, record.docker_image), record=record))
                return
            from madengine.execution.dockerfile import find_dockerfiles, select_dockerfiles

            selection = select_dockerfiles(
                find_dockerfiles(self._options.package, card.text("dockerfile")), self._context
            )
        except MADEngineError as error:
            self._failures.append(BuildFailure(card.name, str(error)))
            return
        self._failures += [BuildFailure(card.name, str(error)) for error in selection.broken]
        for dockerfile, architecture in self._variants(selection.chosen):
            self._add_job(card, dockerfile, architecture)

    def _record(self, card: ModelCard) -> ImageRecord | None:
        """The finished entry of a card for which nothing is built, None for one that is."""
        entry = self._options.batch.get(card.name)
        if card.name in self._named:
            return self._given(card.name, self._named[card.name])
        if entry is not None and not entry.build_new:
            _require_reference(entry.registry_image, f"registry_image of {card.name}")
            return registry_record(card.name, entry.registry_image, entry.registry, self._vendor)
        if self._engine is not None and not self._engine.needs_image:
            return no_image(card.name, self._vendor)
        if self._engine is None:
            raise BuildError("its image has to be built, and no container engine was chosen", hint="pass --engine")
        return None

    def _given(self, model: str, image: str) -> ImageRecord:
        if self._engine is None or not self._engine.needs_image:
            return given_image(model, image, self._vendor)
        if image not in self._facts:
            self._facts[image] = self._engine.image_facts(image)
            if self._facts[image] is None:
                self._warnings.append(f"{image} is not on this machine; a run will have to fetch it")
        facts = self._facts[image]
        return given_image(model, image, self._vendor, digest=facts.digest if facts else "")

    def _variants(self, dockerfiles: Sequence[Dockerfile]) -> Iterator[tuple[Dockerfile, str]]:
        for dockerfile in dockerfiles:
            for architecture in self._options.target_archs or ("",):
                yield dockerfile, architecture

    def _add_job(self, card: ModelCard, dockerfile: Dockerfile, architecture: str) -> None:
        try:
            job = plan_image(
                card,
                dockerfile,
                self._settings,
                self._options.package,
                gpu_vendor=self._vendor,
                architecture=architecture,
                credentials=self._options.credentials,
                no_cache=self._options.no_cache,
            )
        except MADEngineError as error:
            self._failures.append(BuildFailure(card.name, str(error)))
            return
        job = self._apart(job, (card.name, dockerfile.name, architecture), dockerfile.stem)
        self._warnings += [text for text in job.warnings if text not in self._warnings]
        registry, name = self._push_target(card, job.request.tag)
        self._keep(PlannedImage(job.request.tag, card, job=job, push_to=registry, push_name=name))

    def _apart(self, job: ImageJob, identity: tuple[str, str, str], stem: str) -> ImageJob:
        """Two models whose names differ only in case or in ``/`` and ``_`` do not share an image."""
        if self._owners.setdefault(job.request.tag, identity) == identity:
            return job
        name = hashed_name(identity[0], stem, identity[2])
        return replace(job, request=replace(job.request, tag=name))

    def _push_target(self, card: ModelCard, image: str) -> tuple[str, str]:
        entry = self._options.batch.get(card.name)
        registry = (entry.registry if entry else "") or self._options.registry
        if not registry:
            return "", ""
        if entry and entry.registry_image:
            _require_reference(entry.registry_image, f"registry_image of {card.name}")
            return registry, entry.registry_image
        return registry, push_name(image, registry, self._options.credentials)

    def _keep(self, image: PlannedImage) -> None:
        """A card that was selected twice, with other args, has two entries with one image."""
        key, number = image.key, 2
        while key in self._images:
            key, number = f"{image.key}-{number}", number + 1
        self._images[key] = replace(image, key=key)
