"""Where the manifest of a run comes from when it is not a file: planned for a look ahead, or built."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from madengine.catalog.card import ModelCard
from madengine.config.manifest import BuildManifest, ImageRecord
from madengine.config.settings import Settings
from madengine.core.interruptions import Interruptions
from madengine.execution.engine import ContainerEngine
from madengine.orchestration.build import BuildView, build_images
from madengine.orchestration.image_plan import BuildFailure, BuildOptions, Fate, plan_images
from madengine.orchestration.prepare import Source
from madengine.verdict.evidence import Interruption, InterruptionKind


def planned_source(
    cards: Sequence[ModelCard], settings: Settings, engine: ContainerEngine | None, options: BuildOptions
) -> Source:
    """What would be run if every build went well. Nothing is built; what cannot even be planned is a failure."""
    plan = plan_images(cards, settings, engine, options, settings.gpu_vendor or "")
    images = {}
    for image in plan.images:
        record = image.record or ImageRecord({"model": image.card.name, "docker_image": image.key})
        images[image.key] = record
    models = {image.key: image.card for image in plan.images}
    return with_failures(BuildManifest(images, models), plan.failures, cards)


def built_source(
    cards: Sequence[ModelCard],
    settings: Settings,
    engine: ContainerEngine | None,
    options: BuildOptions,
    view: BuildView,
    *,
    interruptions: Interruptions | None = None,
) -> Source:
    """Build what is to be built, until an interruption."""
    result = build_images(cards, settings, engine, options, view, interruptions=interruptions)
    source = with_failures(result.manifest, result.failures, cards)
    return replace(source, build_failed=result.failed, built=result.manifest, interrupted=result.interrupted)


def with_failures(manifest: BuildManifest, failures: Iterable[BuildFailure], cards: Sequence[ModelCard]) -> Source:
    """The manifest with the models whose image is missing: they cannot run, and they leave a row that says why."""
    by_name = {card.name: card for card in cards}
    images, models, refusals = dict(manifest.images), dict(manifest.models), {}
    fates: dict[Fate, set[str]] = {fate: set() for fate in Fate}
    for failure in failures:
        key = _free_key(failure, models)
        images[key] = ImageRecord({"model": failure.model})
        models[key] = by_name[failure.model]
        log = f" (log: {failure.log_file})" if failure.log_file else ""
        refusals[key] = f"there is no image for it{log}: {failure.error}"
        fates[failure.fate].add(key)
    return Source(
        replace(manifest, images=images, models=models),
        refusals,
        bool(refusals),
        cancelled=frozenset(fates[Fate.INTERRUPTED]),
        not_started=frozenset(fates[Fate.NOT_STARTED]),
    )


def broken_off(source: Source) -> dict[str, Interruption]:
    """By key, what became of the models whose build came to a bad end before all was broken off."""
    kinds = {True: InterruptionKind.CANCELLED, False: InterruptionKind.REFUSED}
    return {
        key: Interruption(kinds[key in source.cancelled], sentence)
        for key, sentence in source.refusals.items()
        if key not in source.not_started
    }


def _free_key(failure: BuildFailure, taken: Mapping[str, ModelCard]) -> str:
    """A key that no other entry has: a card can miss several images, one for each of its Dockerfiles."""
    key = f"{failure.model} (not built)"
    if key in taken and failure.image:
        key = f"{failure.model} (not built: {failure.image})"
    number = 2
    while key in taken:
        key, number = f"{failure.model} (not built, {number})", number + 1
    return key
