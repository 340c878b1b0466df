"""``madengine node``: one rank of a remote run. Job scripts give this command; people do not need it."""

from __future__ import annotations

import os
from pathlib import Path

import click


@click.command(hidden=True)
@click.argument("run_dir", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--rank", type=click.IntRange(min=0), required=True, help="Which node of the run this is.")
@click.option("--images-only", is_flag=True, help="Make the image available on this node, and run nothing.")
def node(*, run_dir: Path, rank: int, images_only: bool) -> int:
    """Run one rank of the run in RUN_DIR, which holds its job.json and manifest.json.

    Leaves its results in RUN_DIR/node_RANK. Exits with the script's own code when that is not 0, else 0 measured, 5
    measured nothing, 4 refused, 124 timed out, 125 image or engine, 143 told to end.
    """
    from madengine.cli import views
    from madengine.orchestration.node import make_image_available, run_node

    carry_out = make_image_available if images_only else run_node
    return carry_out(run_dir.absolute(), rank, os.environ, views.say)
