"""``madengine doctor``: what works on this machine or on a cluster, and what to do about the rest."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from madengine.cli import views
from madengine.cli.constants import ExitCode
from madengine.cli.options import FILE, context_options, engine_option, package_option

EPILOG = """\b
Examples:
  madengine doctor
  madengine doctor --target slurm --manifest-file on_slurm.json
  madengine doctor --target slurm -c '{"slurm": {"partition": "gpu", "nodes": 4}}'
"""


@click.command(epilog=EPILOG)
@package_option
@click.option(
    "--target",
    metavar="TARGET",
    default="local",
    show_default=True,
    help="Where runs are to happen: local, or slurm, whose cluster and one of whose nodes are looked at, too.",
)
@click.option("--manifest-file", "-m", type=FILE, metavar="FILE", help="Look at what the jobs of this manifest need.")
@context_options
@engine_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output, for machines.")
def doctor(
    *,
    model_dir: Path,
    target: str,
    manifest_file: Path | None,
    additional_context: Sequence[str],
    additional_context_file: Sequence[Path],
    engine: str | None,
    as_json: bool,
) -> int:
    """Say what works here and what to do about the rest.

    Looks at git, container engines, GPUs, the current directory and the model package; for a cluster at its partitions,
    limits and accounts, and at what a node sees of the folders, madengine and the container engine. Exits 4 when
    something must be mended before models can run.
    """
    from madengine.config.context import load_settings
    from madengine.execution.gpu import detect
    from madengine.execution.select_engine import load_engine
    from madengine.orchestration.doctor import examine, examine_target

    environ, package = dict(os.environ), model_dir.absolute()
    settings = load_settings(additional_context, additional_context_file, environ)
    there = examine_target(target, settings, manifest_file, package=package, engine=engine or "", environ=environ)
    findings = (*examine(package, load_engine, detect), *there)
    if as_json:
        views.print_json({"findings": [asdict(finding) for finding in findings]})
    else:
        views.table(("what", "state", "found"), [[f.subject, f.state, f.detail] for f in findings], styles=("bold",))
        for finding in findings:
            if finding.remedy:
                views.say(f"{finding.subject}: {finding.remedy}")
    return ExitCode.INVALID_ARGS if any(f.state == "problem" for f in findings) else ExitCode.SUCCESS
