"""What ``madengine run`` does with its options: prepare, build, run, show."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from madengine.cli import views
from madengine.cli.build_progress import BuildProgress
from madengine.cli.build_request import BuildWords, read_build_request
from madengine.cli.constants import ExitCode
from madengine.cli.outputs import MANIFEST_MARKS, SUMMARY_MARKS, refuse_unwritable, write_document
from madengine.cli.run_progress import RunNarrator, RunProgress
from madengine.cli.run_view import report_document, show_report, tell_github
from madengine.config.context import load_settings
from madengine.config.manifest_io import read_manifest, write_manifest
from madengine.config.settings import Settings
from madengine.core.errors import ConfigurationError, MADEngineError
from madengine.core.interruptions import Interruptions, counted_interruptions
from madengine.core.later import Later
from madengine.deployment.local import LocalTarget
from madengine.execution.engine import ContainerEngine
from madengine.execution.gpu import GpuInventory
from madengine.execution.select_engine import choose_engine
from madengine.orchestration.effective import effective_manifest
from madengine.orchestration.images_here import ImageKeeper
from madengine.orchestration.plan import Plan, RunOptions
from madengine.orchestration.prepare import (
    RunRequest,
    Source,
    for_this_machine,
    inventory_for,
    make_runs_folder,
    prepare_runs,
)
from madengine.orchestration.recorder import CommandFacts, FileRecorder
from madengine.orchestration.run import RunReport, check_all, record_broken_off, run_all
from madengine.orchestration.sources import broken_off, built_source, planned_source
from madengine.reporting.git_state import git_state
from madengine.reporting.perf_entry import DEFAULT_OUTPUT, PerfFiles, check_perf_files, perf_files
from madengine.reporting.run_record import this_machine
from madengine.verdict.exit_code import exit_code_for


@dataclass(frozen=True)
class RunWords:
    """The options of ``madengine run`` as they were typed; see their help texts."""

    model_dir: Path
    tags: Sequence[str]
    ignore_deprecated: bool
    manifest_file: Path | None
    manifest_output: Path | None
    additional_context: Sequence[str] = field(repr=False)
    additional_context_file: Sequence[Path]
    engine: str | None
    registry: str | None
    clean_docker_cache: bool
    target_archs: Sequence[str]
    use_image: str | None
    batch_manifest: Path | None
    timeout: float | None
    keep_alive: bool
    keep_model_dir: bool
    skip_model_run: bool
    disable_skip_gpu_arch: bool
    data_config: Path | None
    tools_config: Path | None
    output: Path
    summary_output: Path | None
    cleanup_perf: bool
    sys_env_details: bool
    dry_run: bool
    strict: bool
    live_output: bool
    as_json: bool
    verbose: bool

    def run_options(self) -> RunOptions:
        """The part that concerns running."""
        return RunOptions(
            self.timeout,
            self.keep_alive,
            self.keep_model_dir,
            self.skip_model_run,
            self.disable_skip_gpu_arch,
            self.sys_env_details,
        )


@dataclass(frozen=True)
class _Bench:
    """What one command works with."""

    words: RunWords
    settings: Settings
    engine: ContainerEngine
    inventory: GpuInventory
    request: RunRequest

    def plan(self, source: Source) -> Plan:
        return prepare_runs(source, self.request, self.engine, self.inventory)


def carry_out(words: RunWords, environ: Mapping[str, str]) -> int:
    """The whole command; returns its exit code. Raises ``MADEngineError`` before anything is started."""
    refuse_contradictions(words)
    provenance = Later(lambda: (this_machine(), git_state(words.model_dir.absolute())))
    bench = _bench(words, environ)
    source, build = _planned(bench, environ)
    plan = bench.plan(source)
    request = replace(bench.request, environ=plan.environ)
    keeper = ImageKeeper(request, bench.engine, effective_manifest(source.manifest, bench.settings).context)
    target = LocalTarget(bench.engine, lambda _: RunProgress(live=words.live_output, verbose=words.verbose), keeper)
    check_all(target, plan.specs)
    if words.dry_run:
        return _show_plan(plan, target, as_json=words.as_json, build_failed=source.build_failed)
    files = perf_files(Path.cwd(), words.output)
    _refuse_unusable_outputs(words, files)
    make_runs_folder()
    with counted_interruptions() as interruptions:
        if build is not None:
            source = build(interruptions)
            plan = bench.plan(source)
        for warning in plan.warnings:
            views.warn(warning)
        machine, package_git = provenance.get()
        facts = CommandFacts(
            files=files,
            manifest=effective_manifest(source.manifest, bench.settings),
            command=tuple(sys.argv),
            machine=machine,
            package_git=package_git,
            digest_of=keeper.digest_of,
            environ=plan.environ,
        )
        recorder = FileRecorder(facts)
        report = _carried_out(plan, source, target, recorder, interruptions)
        recorder.finish(unwanted=_unwanted(words, files))
    exit_code = _told(report, source, recorder, words)
    tell_github(report, environ)
    return exit_code


def refuse_contradictions(words: RunWords) -> None:
    """Options that exclude each other are an error before anything else happens."""
    if words.manifest_file and (words.manifest_output or BuildWords.of(words) != BuildWords()):
        raise ConfigurationError("--manifest-file says what to run, so it goes with no option that selects or builds")
    if not (words.manifest_file or words.tags or words.batch_manifest):
        raise ConfigurationError(
            "nothing says which models to run", hint="pass --tags (see `madengine discover`) or --manifest-file"
        )


def _bench(words: RunWords, environ: Mapping[str, str]) -> _Bench:
    settings = load_settings(words.additional_context, words.additional_context_file, environ)
    for warning in settings.warnings:
        views.warn(warning)
    inventory = inventory_for(settings)
    settings = for_this_machine(settings, inventory)
    engine, sentence = choose_engine(words.engine, environ=environ)
    views.say(sentence)
    request = RunRequest(
        package=words.model_dir.absolute(),
        settings=settings,
        options=words.run_options(),
        data_config=words.data_config,
        tools_config=words.tools_config,
        environ=environ,
    )
    return _Bench(words, settings, engine, inventory, request)


def _planned(bench: _Bench, environ: Mapping[str, str]) -> tuple[Source, Any]:
    """What would be run, and the function that builds it (None when a manifest says that it is built)."""
    words = bench.words
    if words.manifest_file:
        manifest, warnings = read_manifest(words.manifest_file)
        for warning in warnings:
            views.warn(warning)
        return Source(manifest), None
    cards, options = read_build_request(bench.request.package, BuildWords.of(words), environ)
    planned = planned_source(cards, bench.settings, bench.engine, options)

    def build(interruptions: Interruptions) -> Source:
        progress = BuildProgress(live=words.live_output)
        try:
            source = built_source(cards, bench.settings, bench.engine, options, progress, interruptions=interruptions)
        finally:
            progress.close()
        if words.manifest_output and source.built:
            write_manifest(source.built, words.manifest_output)
            views.say(f"manifest: {words.manifest_output}")
        return source

    return planned, build


def _refuse_unusable_outputs(words: RunWords, files: PerfFiles) -> None:
    """Find out before hours of work that a result could not be written."""
    refuse_unwritable(words.output)
    refuse_unwritable(words.summary_output, SUMMARY_MARKS)
    refuse_unwritable(words.manifest_output, MANIFEST_MARKS)
    check_perf_files(files)


def _unwanted(words: RunWords, files: PerfFiles) -> tuple[Path, ...]:
    """The files of this command alone that --cleanup-perf removes: all but one that --output names."""
    named = Path.cwd() / words.output if words.output != Path(DEFAULT_OUTPUT) else None
    return tuple(path for path in files.entries if path != named) if words.cleanup_perf else ()


def _show_plan(plan: Plan, target: LocalTarget, *, as_json: bool, build_failed: bool) -> int:
    """Print the plan; the exit code is not 0 when the command without --dry-run would fail for what is known now."""
    renderings = [target.render(spec) for spec in plan.specs]
    if as_json:
        views.print_json({"dry_run": True, "runs": [dict(rendering.facts) for rendering in renderings]})
    else:
        for rendering in renderings:
            for text in rendering.files.values():
                views.show(text)
    for warning in plan.warnings:
        views.warn(warning)
    refused = [spec for spec in plan.specs if spec.refusal and not spec.skip]
    for spec in refused:
        views.fail(f"{spec.card.name} would not run: {spec.refusal}")
    count = len(renderings)
    views.say(f"dry run: {count} run{'s' if count != 1 else ''} planned, nothing was started")
    if build_failed:
        return ExitCode.BUILD_FAILURE
    return ExitCode.RUN_FAILURE if refused else ExitCode.SUCCESS


def _carried_out(
    plan: Plan, source: Source, target: LocalTarget, recorder: FileRecorder, interruptions: Interruptions
) -> RunReport:
    """Run everything; after builds that were interrupted only what these came to is recorded."""
    if source.interrupted:
        return record_broken_off(plan.specs, broken_off(source), recorder, RunNarrator())
    return run_all(plan.specs, target, recorder, RunNarrator(), interruptions)


def _told(report: RunReport, source: Source, recorder: FileRecorder, words: RunWords) -> int:
    """Show what is on record; returns the exit code."""
    exit_code = exit_code_for(
        report.verdicts, strict=words.strict, build_failed=source.build_failed, interrupted=report.interrupted
    )
    if recorder.problems and exit_code == ExitCode.SUCCESS:
        exit_code = ExitCode.FAILURE
    document = report_document(report, recorder.files.perf_csv, exit_code)

    def show() -> None:
        if words.as_json:
            views.print_json(document)
        else:
            show_report(report, recorder.files.perf_csv, verbose=words.verbose)

    shown = views.show_done(exit_code, show)
    for remark in recorder.remarks:
        views.warn(remark)
    for problem in dict.fromkeys(recorder.problems):
        views.fail(problem)
    if words.summary_output and (problem := _unwritten(words.summary_output, document)):
        views.fail(problem)
        return shown or ExitCode.FAILURE
    return shown


def _unwritten(path: Path, document: Mapping[str, Any]) -> str:
    """Write the summary; what kept it from being written, since the runs have their own exit code by now."""
    try:
        write_document(path, document)
    except MADEngineError as error:
        return str(error)
    return ""
