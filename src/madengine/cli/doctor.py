"""``madengine doctor``: what works on this machine, and what to do about the rest."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from madengine.cli import views
from madengine.cli.constants import ExitCode
from madengine.cli.options import package_option


@click.command()
@package_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output, for machines.")
def doctor(*, model_dir: Path, as_json: bool) -> int:
    """Say what works on this machine and what to do about the rest.

    Looks at git, container engines, GPUs, the current directory and the model package. Starts nothing. Exits 4 when
    something must be mended before models can run here.
    """
    from madengine.execution.gpu import detect
    from madengine.execution.select_engine import load_engine
    from madengine.orchestration.doctor import examine

    findings = examine(model_dir.absolute(), load_engine, detect)
    if as_json:
        views.print_json({"findings": [asdict(finding) for finding in findings]})
    else:
        views.table(("what", "state", "found"), [[f.subject, f.state, f.detail] for f in findings], styles=("bold",))
        for finding in findings:
            if finding.remedy:
                views.say(f"{finding.subject}: {finding.remedy}")
    return ExitCode.INVALID_ARGS if any(f.state == "problem" for f in findings) else ExitCode.SUCCESS
