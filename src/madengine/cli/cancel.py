"""``madengine cancel``: end runs that were submitted before."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click

EPILOG = """\b
Examples:
  madengine cancel 4711
  madengine cancel 20261201T110342Z-m-cfe608
  madengine cancel --all
"""

HEADERS = ("run", "model", "outcome", "")


@click.command(epilog=EPILOG)
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--all", "every", is_flag=True, help="Every run of this folder that is not recorded yet.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output, for machines.")
def cancel(*, runs: Sequence[str], every: bool, as_json: bool) -> int:
    """End runs that were submitted before.

    RUN is a run id, its beginning or its end, a job id, or a run directory. What a run measured until then is not
    lost: `madengine collect` records it. A run that has ended stays as it is.
    """
    from madengine.cli import views
    from madengine.cli.constants import ExitCode
    from madengine.core.errors import ConfigurationError
    from madengine.orchestration.cancel import cancel_all
    from madengine.orchestration.runs_here import named_runs, open_runs

    if bool(runs) == every:
        raise ConfigurationError("say which runs to end", hint="name them, or pass --all")
    found = open_runs(Path.cwd(), views.warn) if every else named_runs(runs, Path.cwd())
    told = cancel_all(found, dict(os.environ))
    if as_json:
        keys = ("run_id", "model", "outcome", "detail")
        rows = [(item.run.order.run_id, item.run.order.model, item.outcome, item.detail) for item in told]
        views.print_json({"runs": [dict(zip(keys, row, strict=True)) for row in rows]})
    elif told:
        cells = [[item.run.order.run_id, item.run.order.model, item.outcome, item.detail] for item in told]
        views.table(HEADERS, cells, styles=("bold", "", "", "dim"), whole=True)
    else:
        views.say("nothing to cancel: every run of this folder is recorded")
    return ExitCode.FAILURE if any(item.outcome == "failed" for item in told) else ExitCode.SUCCESS
