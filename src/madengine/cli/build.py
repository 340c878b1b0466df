"""``madengine build``: the images of the selected models, and the manifest that a run starts from."""

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
def build(**options: Any) -> int:
    """Build the images of the selected models and write a build manifest.

    A failed build does not stop the others: the manifest holds what succeeded and, in its summary, what did not, and
    the command ends with exit code 2.
    """
    from madengine.cli.build_command import BuildCommand, carry_out

    return carry_out(BuildCommand(**options), os.environ)
