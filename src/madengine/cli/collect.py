"""``madengine collect``: finish the story of runs that were submitted before."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from madengine.cli.options import report_options

EPILOG = """\b
Examples:
  madengine collect                     all runs of this folder that are not recorded yet
  madengine collect 4711                the run with this job id
  madengine collect 20261201T110342Z-m-cfe608 --no-wait
  madengine collect /shared/slurm_results/20261201T110342Z-m-cfe608
"""


@click.command(epilog=EPILOG)
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--no-wait", is_flag=True, help="Record what has ended, show where the rest stands, and return.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Wait no longer than this; the runs go on, and a later collect finishes them.",
)
@click.option("--strict", is_flag=True, help="Exit 3 also when a run measured but something did not finish.")
@report_options
def collect(
    *, runs: Sequence[str], no_wait: bool, timeout: float | None, strict: bool, as_json: bool, verbose: bool
) -> int:
    """Wait for runs that were submitted before, judge them and write their rows.

    RUN is a run id, its beginning or its end, a job id, or a run directory. Each run is recorded once, whoever
    collects it and however often; its rows go to perf.csv where it was submitted. A Ctrl-C ends the waiting, not the
    runs.
    """
    patience = 0.0 if no_wait else timeout
    return carry_out(runs, patience, dict(os.environ), strict=strict, as_json=as_json, verbose=verbose)


def carry_out(
    words: Sequence[str],
    patience: float | None,
    environ: Mapping[str, str],
    *,
    strict: bool,
    as_json: bool,
    verbose: bool,
) -> int:
    """The whole command; returns its exit code. Raises ``MADEngineError`` for names that mean no run."""
    from madengine.cli import views
    from madengine.cli.job_narrator import JobNarrator
    from madengine.cli.run_told import tell
    from madengine.core.interruptions import counted_interruptions
    from madengine.orchestration.collect import CollectingRecorder, collect_all, target_for
    from madengine.orchestration.runs_here import named_runs, open_runs
    from madengine.reporting.perf_entry import perf_files
    from madengine.verdict.exit_code import exit_code_for

    unreadable: list[str] = []
    found = named_runs(words, Path.cwd()) if words else open_runs(Path.cwd(), unreadable.append)
    for reason in unreadable:
        views.warn(reason)
    if not found:
        views.say("nothing to collect: every run of this folder is recorded")
        if as_json:
            views.print_json({"exit_code": 0, "runs": []})
        return 0
    recorder = CollectingRecorder(tuple(sys.argv))
    with counted_interruptions() as interruptions:
        target = target_for(found, environ)
        report = collect_all(found, target, recorder, JobNarrator(), interruptions, patience=patience)
        recorder.finish()
    exit_code = exit_code_for(report.verdicts, strict=strict, interrupted=report.interrupted, goes_on=bool(report.left))
    perf_csv = recorder.perf_csv or perf_files(Path(found[0].order.directory or Path.cwd())).perf_csv
    return tell(
        report,
        perf_csv,
        exit_code,
        remarks=recorder.all_remarks,
        problems=recorder.all_problems,
        as_json=as_json,
        verbose=verbose,
    )
