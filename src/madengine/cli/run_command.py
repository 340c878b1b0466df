"""What ``madengine run`` does with its options: prepare, build, run, show."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from madengine.cli import views
from madengine.cli.build_request import BuildWords
from madengine.cli.constants import ExitCode
from madengine.cli.job_narrator import JobNarrator
from madengine.cli.outputs import MANIFEST_MARKS, SUMMARY_MARKS, refuse_unwritable
from madengine.cli.run_bench import bench_of, given_manifest, planned
from madengine.cli.run_progress import RunNarrator
from madengine.cli.run_told import tell
from madengine.cli.run_view import tell_github
from madengine.cli.run_words import RunWords
from madengine.core.errors import ConfigurationError
from madengine.core.interruptions import Interruptions, counted_interruptions
from madengine.core.later import Later
from madengine.deployment.base import Target
from madengine.orchestration.prepare import Prepared, Source, make_runs_folder
from madengine.orchestration.recorder import CommandFacts, FileRecorder
from madengine.orchestration.recording import OnceRecorder
from madengine.orchestration.report import RunReport
from madengine.orchestration.run import check_all, record_broken_off, run_all, submit_all
from madengine.orchestration.sources import broken_off
from madengine.reporting.git_state import GitState, git_state
from madengine.reporting.perf_entry import DEFAULT_OUTPUT, PerfFiles, check_perf_files, perf_files
from madengine.reporting.run_record import Machine, this_machine
from madengine.verdict.exit_code import exit_code_for


def carry_out(words: RunWords, environ: Mapping[str, str]) -> int:
    """The whole command; returns its exit code. Raises ``MADEngineError`` before anything is started."""
    refuse_contradictions(words)
    provenance = Later(lambda: (this_machine(), git_state(words.model_dir.absolute())))
    given = given_manifest(words)
    bench = bench_of(words, given, environ)
    source, build = planned(bench, given, environ)
    prepared = bench.prepare(source)
    _refuse_detaching_from(prepared.target, words)
    if words.dry_run:
        shown = _show_plan(prepared, as_json=words.as_json, build_failed=source.build_failed)
        _check(prepared, words)
        return shown
    _check(prepared, words)
    if words.live_output and prepared.target.remote and build is None:
        views.warn("--live-output shows nothing of jobs: their output is in node_<rank>/logs/run.log of each run")
    files = perf_files(Path.cwd(), words.output)
    _refuse_unusable_outputs(words, files)
    make_runs_folder(prepared.target.runs_root(prepared.manifest.deployment_config))
    with counted_interruptions() as interruptions:
        if build is not None:
            source = build(interruptions)
            prepared = bench.prepare(source)
            bench.keep_for_nodes(source, prepared)
        for warning in prepared.plan.warnings:
            views.warn(warning)
        recorder = _recorder(prepared, files, provenance)
        report = _carried_out(prepared, source, recorder, words, interruptions)
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


def _check(prepared: Prepared, words: RunWords) -> None:
    if not words.skip_preflight:
        check_all(prepared.target, prepared.plan.specs)


def _refuse_detaching_from(target: Target, words: RunWords) -> None:
    if words.detach and not target.remote:
        raise ConfigurationError(
            f"--detach leaves runs to a scheduler, and the target {target.name} has none",
            hint="it goes with a manifest or a context that holds a slurm block",
        )


def _show_plan(prepared: Prepared, *, as_json: bool, build_failed: bool) -> int:
    """Print the plan; the exit code is not 0 when the command without --dry-run would fail for what is known now."""
    plan = prepared.plan
    renderings = [prepared.target.render(spec) for spec in plan.specs]
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


def _recorder(prepared: Prepared, files: PerfFiles, provenance: Later[tuple[Machine, GitState | None]]) -> FileRecorder:
    machine, package_git = provenance.get()
    facts = CommandFacts(
        files=files,
        manifest=prepared.manifest,
        command=tuple(sys.argv),
        machine=machine,
        package_git=package_git,
        digest_of=prepared.digest_of,
        environ=prepared.plan.environ,
    )
    return OnceRecorder(facts)


def _carried_out(
    prepared: Prepared, source: Source, recorder: FileRecorder, words: RunWords, interruptions: Interruptions
) -> RunReport:
    """Run everything; after builds that were interrupted only what these came to is recorded."""
    specs, target = prepared.plan.specs, prepared.target
    narrator = JobNarrator() if target.remote else RunNarrator()
    if source.interrupted:
        return record_broken_off(specs, broken_off(source), recorder, narrator)
    begin = submit_all if words.detach else run_all
    in_flight = words.max_jobs if target.remote else 1
    return begin(specs, target, recorder, narrator, interruptions, in_flight=in_flight)


def _told(report: RunReport, source: Source, recorder: FileRecorder, words: RunWords) -> int:
    """Show what is on record; returns the exit code."""
    exit_code = exit_code_for(
        report.verdicts,
        strict=words.strict,
        build_failed=source.build_failed,
        interrupted=report.interrupted,
        goes_on=bool(report.left),
    )
    return tell(
        report,
        recorder.files.perf_csv,
        exit_code,
        remarks=recorder.remarks,
        problems=recorder.problems,
        summary_output=words.summary_output,
        as_json=words.as_json,
        verbose=words.verbose,
    )
