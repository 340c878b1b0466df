"""The story of a build: cards in, a manifest with what could be built out, and a failure for each of the others."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from madengine.catalog.card import ModelCard
from madengine.config.manifest import BuildManifest, ImageRecord
from madengine.config.manifest_context import ManifestContext, manifest_context, without_secrets
from madengine.config.settings import Settings
from madengine.core.errors import DiscoveryError, MADEngineError
from madengine.core.interruptions import Interruptions
from madengine.execution import registry
from madengine.execution.engine import ContainerEngine
from madengine.execution.images import BuiltImage, ImageJob, build_image
from madengine.orchestration.image_plan import BuildFailure, BuildOptions, Fate, ImagePlan, PlannedImage, plan_images

DEFAULT_GPU_VENDOR = "AMD"


class BuildView(Protocol):
    """Who watches a build."""

    def say(self, text: str) -> None:
        """A remark."""

    def warn(self, text: str) -> None:
        """A remark that something may not be as it was meant."""

    def started(self, number: int, total: int, image: str) -> None:
        """The ``number``-th of ``total`` builds begins."""

    def finished(self, number: int, total: int, image: str, seconds: float, error: str) -> None:
        """It ended; ``error`` is empty when it went well."""

    def output(self, chunk: bytes) -> None:
        """What the builder prints, already without secrets."""


@dataclass(frozen=True)
class BuildResult:
    """The manifest of what is there to run, and what failed. ``push_failures`` are images that stayed here.

    ``interrupted``: it was broken off; what was not built because of that stands among the failures.
    """

    manifest: BuildManifest
    failures: tuple[BuildFailure, ...] = ()
    push_failures: tuple[BuildFailure, ...] = ()
    interrupted: bool = False

    @property
    def failed(self) -> bool:
        """Whether the command has to end with exit code 2."""
        return bool(self.failures or self.push_failures) or not self.manifest.images


def build_images(
    cards: Sequence[ModelCard],
    settings: Settings,
    engine: ContainerEngine | None,
    options: BuildOptions,
    view: BuildView,
    *,
    interruptions: Interruptions | None = None,
) -> BuildResult:
    """Build, or otherwise settle, the image of every card.

    ``engine`` may be None when no image is built (``--use-image``). The caller counts ``interruptions``: one ends the
    build that is under way, and no other begins; before the first build it raises ``KeyboardInterrupt``. Raises
    DiscoveryError when there are no cards, and ConfigurationError or BuildError when nothing can be started at all.
    """
    if not cards:
        raise DiscoveryError("no model was selected, so there is nothing to build", hint="see madengine discover")
    builds = engine is not None and engine.needs_image and not options.use_image
    vendor = _vendor(settings, view, aloud=builds)
    workshop = _Workshop(engine, options, view, interruptions or Interruptions())
    with workshop.interruptions.raised():
        plan = plan_images(cards, settings, engine, options, vendor)
        for text in plan.warnings:
            view.warn(text)
        if engine is not None:
            _log_in(plan, engine, options, view)
    for image in plan.images:
        workshop.settle(image, total=plan.builds)
    blocks = manifest_context(settings, vendor)
    for note in (*blocks.notes, *_args_with_secrets(cards, settings.secrets)):
        view.warn(note)
    return _result(cards, settings.secrets, blocks, plan, workshop)


def _vendor(settings: Settings, view: BuildView, *, aloud: bool) -> str:
    """The vendor to build for; defaults are said aloud, because a wrong one builds the wrong image."""
    if aloud and not settings.gpu_vendor:
        view.say(f"gpu_vendor is not given: building for {DEFAULT_GPU_VENDOR}")
    if aloud and not settings.context.get("guest_os"):
        view.say(f"guest_os is not given: building for {settings.guest_os}")
    return settings.gpu_vendor or (DEFAULT_GPU_VENDOR if aloud else "")


def _log_in(plan: ImagePlan, engine: ContainerEngine, options: BuildOptions, view: BuildView) -> None:
    """Log in before anything is built: hours of building are lost when the result cannot be pushed."""
    for name in dict.fromkeys(image.push_to for image in plan.images if image.push_to):
        if not registry.login(engine.name, name, registry.credential_of(name, options.credentials)):
            view.say(f"no user and password for {name} are known: pushing with what {engine.name} has")


def _args_with_secrets(cards: Sequence[ModelCard], secrets: Mapping[str, str]) -> list[str]:
    """Args are not expanded in a run, so a secret that is taken out of them does not come back."""
    named = (card.name for card in cards if without_secrets(card.text("args"), secrets) != card.text("args"))
    return [f"the args of {name} hold a secret, which is left out: let the script read its variable" for name in named]


class _Workshop:
    """Turns planned images into entries of the manifest, one after the other, and keeps what came of each."""

    def __init__(
        self,
        engine: ContainerEngine | None,
        options: BuildOptions,
        view: BuildView,
        interruptions: Interruptions,
    ) -> None:
        self._engine = engine
        self.interruptions = interruptions
        self._logs = options.logs
        self._view = view
        self._built: dict[str, ImageRecord | None] = {}
        self.images: dict[str, ImageRecord] = {}
        self.models: dict[str, ModelCard] = {}
        self.failures: list[BuildFailure] = []
        self.push_failures: list[BuildFailure] = []
        self.successes: list[Mapping[str, Any]] = []
        self.pushed: list[str] = []
        self.seconds = 0.0

    def settle(self, image: PlannedImage, *, total: int) -> None:
        """Build the image unless its record is ready, or another card has had the same one built."""
        record = image.record
        if image.job is not None and self._engine is not None:
            tag = image.job.request.tag
            if tag not in self._built:
                self._built[tag] = self._build(image, image.job, self._engine, (len(self._built) + 1, total))
            record = self._built[tag]
        if record is not None:
            self.images[image.key] = record
            self.models[image.key] = image.card

    def _build(
        self, image: PlannedImage, job: ImageJob, engine: ContainerEngine, count: tuple[int, int]
    ) -> ImageRecord | None:
        tag = job.request.tag
        if self.interruptions.count:
            self.failures.append(_broken_off(image.card.name, Fate.NOT_STARTED, tag))
            return None
        log = self._logs / f"{tag}.build.live.log"
        self._view.started(*count, tag)
        started = time.monotonic()
        try:
            with self.interruptions.raised():
                built = build_image(job, engine, log=log, output=self._view.output)
        except (MADEngineError, KeyboardInterrupt) as error:
            seconds = time.monotonic() - started
            self.seconds += seconds
            failure = BuildFailure(image.card.name, str(error), tag)
            if isinstance(error, KeyboardInterrupt):
                failure = _broken_off(image.card.name, Fate.INTERRUPTED, tag)
            self.failures.append(replace(failure, log_file=str(log), seconds=seconds))
            self._view.finished(*count, tag, seconds, failure.error)
            return None
        self.seconds += built.seconds
        self.successes.append({"model": image.card.name, "image": tag, "build_duration": round(built.seconds, 3)})
        self._view.finished(*count, tag, built.seconds, "")
        return self._pushed(image, built, engine).record()

    def _pushed(self, image: PlannedImage, built: BuiltImage, engine: ContainerEngine) -> BuiltImage:
        """The image after its push, when there is one to be made; a failed push leaves a local image."""
        if not image.push_name:
            return built
        self._view.say(f"pushing {image.push_name}")
        try:
            with self.interruptions.raised():
                registry.push(engine, built.job.request.tag, image.push_name, output=self._view.output)
        except (MADEngineError, KeyboardInterrupt) as error:
            failure = BuildFailure(image.card.name, str(error), image.push_name)
            if isinstance(error, KeyboardInterrupt):
                failure = _broken_off(image.card.name, Fate.INTERRUPTED, image.push_name)
            self._view.warn(f"{image.push_name} was not pushed: {failure.error}")
            self.push_failures.append(replace(failure, log_file=built.log_file))
            return built
        self.pushed.append(image.push_name)
        return replace(built, registry=image.push_to, registry_image=image.push_name)


def _broken_off(model: str, fate: Fate, image: str) -> BuildFailure:
    return BuildFailure(model, fate.value, image, fate=fate)


def _result(
    cards: Sequence[ModelCard],
    secrets: Mapping[str, str],
    blocks: ManifestContext,
    plan: ImagePlan,
    workshop: _Workshop,
) -> BuildResult:
    failures = (*plan.failures, *workshop.failures)
    models = {
        key: ModelCard(without_secrets(card.to_manifest(), secrets), card.origin, card.scope)
        for key, card in workshop.models.items()
    }
    manifest = BuildManifest(
        images=workshop.images,
        models=models,
        context=blocks.context,
        deployment_config=blocks.deployment_config,
        credentials_required=tuple(sorted({card.text("cred") for card in cards} - {""})),
        summary=without_secrets(_summary(workshop, failures, blocks.secret_names), secrets),
    )
    return BuildResult(manifest, failures, tuple(workshop.push_failures), workshop.interruptions.count > 0)


def _summary(workshop: _Workshop, failures: Sequence[BuildFailure], secret_names: Sequence[str]) -> dict[str, Any]:
    """The block that says what happened. Durations are in seconds; ``secrets_from_environment`` are names."""
    return {
        "successful_builds": workshop.successes,
        "failed_builds": _failures(failures),
        "total_build_time": round(workshop.seconds, 3),
        "successful_pushes": workshop.pushed,
        "failed_pushes": _failures(workshop.push_failures),
        "secrets_from_environment": list(secret_names),
    }


def _failures(failures: Iterable[BuildFailure]) -> list[dict[str, str]]:
    return [
        {"model": item.model, "image": item.image, "error": item.error, "log_file": item.log_file} for item in failures
    ]
