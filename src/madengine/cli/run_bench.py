"""What ``madengine run`` works with: the manifest that was given or will be built, the settings, engine and GPUs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from madengine.cli import views
from madengine.cli.build_progress import BuildProgress
from madengine.cli.build_request import BuildWords, read_build_request
from madengine.cli.run_progress import RunProgress
from madengine.cli.run_words import RunWords
from madengine.config.context import load_settings
from madengine.config.manifest import BuildManifest
from madengine.config.manifest_io import read_manifest, write_manifest
from madengine.config.settings import Settings
from madengine.core.interruptions import Interruptions
from madengine.execution.gpu import GpuInventory
from madengine.execution.select_engine import CONTAINERS, VARIABLE, choose_engine
from madengine.orchestration.image_plan import CONTEXT_IMAGE
from madengine.orchestration.images_here import ImageKeeper
from madengine.orchestration.keep_images import keep_for_nodes
from madengine.orchestration.prepare import (
    Means,
    Prepared,
    RunRequest,
    Source,
    for_this_machine,
    inventory_for,
    prepare_runs,
    target_of,
)
from madengine.orchestration.sources import built_source, planned_source


@dataclass(frozen=True)
class Bench:
    """What one command works with."""

    words: RunWords
    settings: Settings
    means: Means
    request: RunRequest

    def keep_for_nodes(self, source: Source, prepared: Prepared) -> None:
        """Leave images that were built here for nodes elsewhere that cannot pull them."""
        engine = self.means.engine
        if prepared.target.remote and engine is not None and source.built is not None and not source.interrupted:
            keep_for_nodes(source.built, engine, prepared.plan.environ, views.say)

    def prepare(self, source: Source) -> Prepared:
        return prepare_runs(source, self.request, self.means)


def given_manifest(words: RunWords) -> BuildManifest | None:
    """The manifest that --manifest-file names."""
    if not words.manifest_file:
        return None
    manifest, warnings = read_manifest(words.manifest_file)
    for warning in warnings:
        views.warn(warning)
    return manifest


def bench_of(words: RunWords, given: BuildManifest | None, environ: Mapping[str, str]) -> Bench:
    settings = load_settings(words.additional_context, words.additional_context_file, environ)
    for warning in settings.warnings:
        views.warn(warning)
    kind = target_of(given or BuildManifest({}, {}), settings)
    means = _means_elsewhere(words, settings, given, environ) if kind.remote else _means_here(words, settings, environ)
    if not kind.remote:
        settings = for_this_machine(settings, means.inventory)
    request = RunRequest(
        package=words.model_dir.absolute(),
        settings=settings,
        options=words.run_options(),
        data_config=words.data_config,
        tools_config=words.tools_config,
        engine=words.engine or environ.get(VARIABLE, ""),
        command=tuple(sys.argv),
        output=str(words.output),
        environ=environ,
    )
    return Bench(words, settings, means, request)


def _means_here(words: RunWords, settings: Settings, environ: Mapping[str, str]) -> Means:
    """This machine's GPUs, and the engine that runs the models on them."""
    inventory = inventory_for(settings)
    engine, sentence = choose_engine(words.engine, environ=environ)
    views.say(sentence)
    return Means(
        engine,
        inventory,
        observer_for=lambda _: RunProgress(live=words.live_output, verbose=words.verbose),
        keeper_of=lambda request, manifest: ImageKeeper(request, engine, manifest.context),
    )


def _means_elsewhere(
    words: RunWords, settings: Settings, given: BuildManifest | None, environ: Mapping[str, str]
) -> Means:
    """No engine but the one that builds; the nodes' GPUs are known by what is asked for."""
    inventory = GpuInventory(vendor=settings.gpu_vendor or "GPU")
    if given is not None or words.use_image or settings.context.get(CONTEXT_IMAGE):
        return Means(None, inventory)
    engine, sentence = choose_engine(words.engine, order=CONTAINERS, environ=environ)
    views.say(sentence)
    return Means(engine, inventory)


def planned(bench: Bench, given: BuildManifest | None, environ: Mapping[str, str]) -> tuple[Source, Any]:
    """What would be run, and the function that builds it (None when a manifest says that it is built)."""
    words, engine = bench.words, bench.means.engine
    if given is not None:
        return Source(given), None
    cards, options = read_build_request(bench.request.package, BuildWords.of(words), environ)
    planned = planned_source(cards, bench.settings, engine, options)

    def build(interruptions: Interruptions) -> Source:
        progress = BuildProgress(live=words.live_output)
        try:
            source = built_source(cards, bench.settings, engine, options, progress, interruptions=interruptions)
        finally:
            progress.close()
        if words.manifest_output and source.built:
            write_manifest(source.built, words.manifest_output)
            views.say(f"manifest: {words.manifest_output}")
        return source

    return planned, build
