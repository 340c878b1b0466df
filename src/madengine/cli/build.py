"""``madengine build``: the images of the selected models, and the manifest that a run starts from."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from madengine.cli import views
from madengine.cli.constants import ExitCode
from madengine.cli.options import (
    FILE,
    build_options,
    context_options,
    engine_option,
    output_options,
    package_option,
    tags_options,
)
from madengine.cli.outputs import MANIFEST_MARKS, SUMMARY_MARKS, refuse_unwritable, write_document
from madengine.core.errors import ConfigurationError

if TYPE_CHECKING:
    from madengine.orchestration.build import BuildResult


@click.command()
@package_option
@tags_options
@context_options
@build_options
@engine_option
@click.option(
    "--manifest-output",
    type=FILE,
    metavar="FILE",
    default=Path("build_manifest.json"),
    show_default=True,
    help="Where the manifest is written.",
)
@click.option("--summary-output", "-s", type=FILE, metavar="FILE", help="Write what --json prints to this file, too.")
@output_options
def build(
    *,
    model_dir: Path,
    tags: Sequence[str],
    ignore_deprecated: bool,
    additional_context: Sequence[str],
    additional_context_file: Sequence[Path],
    registry: str | None,
    clean_docker_cache: bool,
    target_archs: Sequence[str],
    use_image: str | None,
    batch_manifest: Path | None,
    engine: str | None,
    manifest_output: Path,
    summary_output: Path | None,
    live_output: bool,
    as_json: bool,
    verbose: bool,
) -> int:
    """Build the images of the selected models and write a build manifest.

    A failed build does not stop the others: the manifest holds what succeeded and, in its summary, what did not, and
    the command ends with exit code 2.
    """
    from madengine.catalog.discovery import package_root
    from madengine.cli.build_progress import BuildProgress
    from madengine.cli.build_request import BuildWords, builds_nothing, read_build_request
    from madengine.config.context import load_settings
    from madengine.config.manifest_io import write_manifest
    from madengine.execution.select_engine import CONTAINERS, choose_engine
    from madengine.orchestration.build import build_images

    refuse_unwritable(manifest_output, MANIFEST_MARKS)
    refuse_unwritable(summary_output, SUMMARY_MARKS)
    settings = load_settings(additional_context, additional_context_file, os.environ)
    for warning in settings.warnings:
        views.warn(warning)
    words = BuildWords(tags, ignore_deprecated, registry, clean_docker_cache, target_archs, use_image, batch_manifest)
    cards, options = read_build_request(package_root(model_dir, os.environ), words, os.environ)
    chosen = None
    if engine or not builds_nothing(options, settings):
        # The host is taken only when it is asked for: a build that made no image must not look like a success.
        chosen, sentence = choose_engine(engine, order=CONTAINERS)
        views.say(sentence)
    if registry and chosen is not None and not chosen.needs_image:
        raise ConfigurationError(
            f"the engine {chosen.name} builds no image, so nothing can go to --registry {registry}"
        )
    if verbose:
        views.say(f"selected: {', '.join(card.name for card in cards)}; logs: {options.logs}")
    progress = BuildProgress(live=live_output)
    try:
        result = build_images(cards, settings, chosen, options, progress)
    finally:
        progress.close()
    write_manifest(result.manifest, manifest_output)
    document = summary_document(result, manifest_output)
    if summary_output:
        write_document(summary_output, document)
    if as_json:
        views.print_json(document)
    else:
        show_images(result)
    _closing_words(result, manifest_output)
    return ExitCode.BUILD_FAILURE if result.failed else ExitCode.SUCCESS


def summary_document(result: BuildResult, manifest: Path) -> dict[str, Any]:
    """What ``--json`` prints: the manifest's path, its images, and the summary (durations in seconds)."""
    images = {key: dict(image.raw) for key, image in result.manifest.images.items()}
    return {"manifest": str(manifest), "built_images": images, "summary": dict(result.manifest.summary)}


def show_images(result: BuildResult) -> None:
    """One row per image and one per failure."""
    rows = [
        [
            image.text("model"),
            "ready",
            image.docker_image or "none needed",
            _seconds(image.build_duration),
            image.text("log_file"),
        ]
        for image in result.manifest.images.values()
    ]
    rows += [[item.model, "FAILED", item.image, _seconds(item.seconds), item.log_file] for item in result.failures]
    rows += [[item.model, "NOT PUSHED", item.image, "", item.log_file] for item in result.push_failures]
    views.table(["MODEL", "STATUS", "IMAGE", "DURATION", "LOG"], rows, styles=("bold", "", "cyan", "", "dim"))


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if value else ""


def _closing_words(result: BuildResult, manifest: Path) -> None:
    """What failed and why, and what to do next."""
    for item in (*result.failures, *result.push_failures):
        views.fail(f"{item.model}: {item.error}" + (f" - log: {item.log_file}" if item.log_file else ""))
    if not result.manifest.images:
        views.fail(f"nothing was built; {manifest} says why and holds nothing to run")
    else:
        views.say(f"manifest: {manifest}; next: madengine run --manifest-file {manifest}")
