"""What ``madengine build`` does with its options: select, build, write the manifest, show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from madengine.catalog.discovery import package_root
from madengine.cli import github, views
from madengine.cli.build_progress import BuildProgress
from madengine.cli.build_request import BuildWords, builds_nothing, read_build_request
from madengine.cli.constants import ExitCode
from madengine.cli.outputs import MANIFEST_MARKS, SUMMARY_MARKS, refuse_unwritable, write_document
from madengine.config.context import load_settings
from madengine.config.manifest_io import write_manifest
from madengine.core.errors import ConfigurationError
from madengine.core.interruptions import counted_interruptions
from madengine.execution.select_engine import CONTAINERS, choose_engine
from madengine.orchestration.build import build_images
from madengine.orchestration.image_plan import Fate

if TYPE_CHECKING:
    from madengine.config.settings import Settings
    from madengine.execution.engine import ContainerEngine
    from madengine.orchestration.build import BuildResult
    from madengine.orchestration.image_plan import BuildOptions

HEADERS = ("MODEL", "STATUS", "IMAGE", "DURATION", "LOG")


@dataclass(frozen=True)
class BuildCommand:
    """The options of ``madengine build`` as they were typed; see their help texts."""

    model_dir: Path
    tags: Sequence[str]
    ignore_deprecated: bool
    additional_context: Sequence[str] = field(repr=False)
    additional_context_file: Sequence[Path]
    registry: str | None
    clean_docker_cache: bool
    target_archs: Sequence[str]
    use_image: str | None
    batch_manifest: Path | None
    engine: str | None
    manifest_output: Path
    summary_output: Path | None
    live_output: bool
    as_json: bool
    verbose: bool


def carry_out(command: BuildCommand, environ: Mapping[str, str]) -> int:
    """The whole command; returns its exit code. Raises ``MADEngineError`` before anything is started."""
    refuse_unwritable(command.manifest_output, MANIFEST_MARKS)
    refuse_unwritable(command.summary_output, SUMMARY_MARKS)
    settings = load_settings(command.additional_context, command.additional_context_file, environ)
    for warning in settings.warnings:
        views.warn(warning)
    cards, options = read_build_request(package_root(command.model_dir, environ), BuildWords.of(command), environ)
    engine = _engine(command, options, settings, environ)
    if command.verbose:
        views.say(f"selected: {', '.join(card.name for card in cards)}; logs: {options.logs}")
    progress = BuildProgress(live=command.live_output)
    with counted_interruptions() as interruptions:
        try:
            result = build_images(cards, settings, engine, options, progress, interruptions=interruptions)
        finally:
            progress.close()
        write_manifest(result.manifest, command.manifest_output)
    exit_code = views.show_done(_exit_code(result), lambda: _show(result, command))
    _tell_github(result, environ)
    return exit_code


def _exit_code(result: BuildResult) -> int:
    if result.interrupted:
        return ExitCode.INTERRUPTED
    return ExitCode.BUILD_FAILURE if result.failed else ExitCode.SUCCESS


def _engine(
    command: BuildCommand, options: BuildOptions, settings: Settings, environ: Mapping[str, str]
) -> ContainerEngine | None:
    """The engine that builds, None when there is nothing to build.

    The host is taken only when it is asked for: a build that made no image must not look like a success.
    """
    if not command.engine and builds_nothing(options, settings):
        return None
    engine, sentence = choose_engine(command.engine, order=CONTAINERS, environ=environ)
    views.say(sentence)
    if command.registry and not engine.needs_image:
        raise ConfigurationError(
            f"the engine {engine.name} builds no image, so nothing can go to --registry {command.registry}"
        )
    return engine


def _show(result: BuildResult, command: BuildCommand) -> None:
    document = _summary_document(result, command.manifest_output)
    if command.summary_output:
        write_document(command.summary_output, document)
    if command.as_json:
        views.print_json(document)
    else:
        _show_images(result)
    _closing_words(result, command.manifest_output)


def _summary_document(result: BuildResult, manifest: Path) -> dict[str, Any]:
    """What ``--json`` prints: the manifest's path, its images, and the summary (durations in seconds)."""
    images = {key: dict(image.raw) for key, image in result.manifest.images.items()}
    return {"manifest": str(manifest), "built_images": images, "summary": dict(result.manifest.summary)}


def _show_images(result: BuildResult) -> None:
    views.table(HEADERS, _table_rows(result), styles=("bold", "", "cyan", "", "dim"))


def _tell_github(result: BuildResult, environ: Mapping[str, str]) -> None:
    """An annotation for each image that could not be built or pushed, and the table in the step's summary."""
    failed = [item for item in (*result.failures, *result.push_failures) if item.fate is Fate.FAILED]
    github.annotate((("error", f"{item.fate.value.upper()} {item.model}", item.error) for item in failed), environ)
    github.append_summary("madengine build", HEADERS, _table_rows(result), environ)


def _table_rows(result: BuildResult) -> list[list[str]]:
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
    rows += [
        [item.model, item.fate.value.upper(), item.image, _seconds(item.seconds), item.log_file]
        for item in result.failures
    ]
    rows += [[item.model, "NOT PUSHED", item.image, "", item.log_file] for item in result.push_failures]
    return rows


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if value else ""


def _closing_words(result: BuildResult, manifest: Path) -> None:
    """What failed and why, and what to do next."""
    for item in (*result.failures, *result.push_failures):
        if item.fate is Fate.FAILED:
            views.fail(f"{item.model}: {item.error}" + (f" - log: {item.log_file}" if item.log_file else ""))
    if result.interrupted:
        views.fail(_interruption_words(result))
    if not result.manifest.images:
        views.fail(f"nothing was built; {manifest} says why and holds nothing to run")
    else:
        views.say(f"manifest: {manifest}; next: madengine run --manifest-file {manifest}")


def _interruption_words(result: BuildResult) -> str:
    """What an interruption did to a build, by the names of the models."""
    clauses = {
        "not finished": [item.model for item in result.failures if item.fate is Fate.INTERRUPTED],
        "not pushed": [item.model for item in result.push_failures if item.fate is Fate.INTERRUPTED],
        "not started": [item.model for item in result.failures if item.fate is Fate.NOT_STARTED],
    }
    said = [f"{what}: {', '.join(dict.fromkeys(models))}" for what, models in clauses.items() if models]
    return "; ".join(["interrupted", *said])
