"""``madengine run``: models run, judged and recorded."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from madengine.cli.options import (
    FILE,
    build_options,
    context_options,
    engine_option,
    output_options,
    package_option,
    tags_options,
)

EPILOG = """\b
Examples:
  madengine run --tags primes --engine host
  madengine run --tags pyt_vllm_llama --timeout 0 --live-output
  madengine run --manifest-file build_manifest.json --strict
  madengine run --manifest-file on_slurm.json --detach
  madengine run --tags all --dry-run
"""


def _seconds(context: click.Context, parameter: click.Parameter, value: float | None) -> float | None:  # noqa: ARG001
    """``nan`` and ``inf`` pass for numbers, and are no time limit."""
    if value is not None and value - value != 0:
        raise click.BadParameter("is no number of seconds; 0 means no limit")
    return value


@click.command(epilog=EPILOG)
@package_option
@tags_options
@click.option(
    "--manifest-file",
    "-m",
    type=FILE,
    metavar="FILE",
    help="Run what this manifest holds; nothing is built. Without it, --tags selects, builds and runs.",
)
@click.option("--manifest-output", type=FILE, metavar="FILE", help="Keep the manifest of what was built here.")
@context_options
@engine_option
@build_options
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    callback=_seconds,
    metavar="SECONDS",
    help="Time limit of each model; 0 for none. Beats the card's own; the default is 7200.",
)
@click.option("--keep-alive", is_flag=True, help="Leave each container running after its model has ended.")
@click.option("--keep-model-dir", is_flag=True, help="Keep each workspace also after a success.")
@click.option("--skip-model-run", is_flag=True, help="Build, but do not run: every model gets a SKIPPED row.")
@click.option("--disable-skip-gpu-arch", is_flag=True, help="Run models also on architectures that their card skips.")
@click.option("--data-config", type=FILE, metavar="FILE", help="Data sources; default: data.json of the package.")
@click.option("--tools-config", type=FILE, metavar="FILE", help="Tools beside madengine's and the package's own.")
@click.option(
    "--output",
    "-o",
    type=FILE,
    metavar="FILE",
    default=Path("perf_entry.csv"),
    show_default=True,
    help="Where the rows of this command alone are written.",
)
@click.option("--summary-output", "-s", type=FILE, metavar="FILE", help="Write what --json prints to this file, too.")
@click.option(
    "--cleanup-perf",
    is_flag=True,
    help="Remove perf_entry files at the end, but for a file that --output names; perf.csv has all rows.",
)
@click.option("--sys-env-details", is_flag=True, help="Record each run's system environment in <model>_env.csv.")
@click.option(
    "--max-jobs",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    metavar="N",
    help="How many jobs a scheduler has at a time. On this machine models run one after the other.",
)
@click.option(
    "--detach",
    is_flag=True,
    help="Submit the jobs, print their run ids and return; `madengine collect` finishes the story from any shell.",
)
@click.option("--skip-preflight", is_flag=True, help="Submit without looking first whether the cluster will take it.")
@click.option("--dry-run", is_flag=True, help="Print what would run, with names of variables only; start nothing.")
@click.option("--strict", is_flag=True, help="Exit 3 also when a run measured but something did not finish.")
@output_options
def run(**options: Any) -> int:
    """Run models and say honestly what happened.

    Selects cards by --tags, builds their images and runs them, or runs what a manifest holds. Rows go to perf.csv in
    this directory, everything else about a run to runs/<run id>/.
    """
    from madengine.cli.run_command import carry_out
    from madengine.cli.run_words import RunWords

    return carry_out(RunWords(**options), dict(os.environ))
