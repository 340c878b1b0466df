"""Options that several commands share, spelled and explained once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])
FILE = click.Path(path_type=Path, readable=False)


def _stacked(*decorators: Callable[[Command], Command]) -> Callable[[Command], Command]:
    def apply(command: Command) -> Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return apply


def package_option(command: Command) -> Command:
    """``--model-dir``: the model package."""
    return click.option(
        "--model-dir",
        type=FILE,
        envvar="MODEL_DIR",
        default=Path(),
        show_default="$MODEL_DIR, else this folder",
        metavar="FOLDER",
        help="The model package: a folder with models.json and scripts/. Read in place, never written to.",
    )(command)


def tags_options(command: Command) -> Command:
    """``--tags`` and ``--ignore-deprecated``."""
    return _stacked(
        click.option(
            "--tags",
            "-t",
            multiple=True,
            metavar="TAG",
            help="Which models: a tag, a model's name, 'all', SCOPE/TAG for scripts/SCOPE, or NAME:key=value:flag to "
            "add arguments. Repeatable; commas and blanks separate.",
        ),
        click.option("--ignore-deprecated", is_flag=True, help="Take deprecated models, too."),
    )(command)


def context_options(command: Command) -> Command:
    """``--additional-context`` and its file form."""
    return _stacked(
        click.option(
            "--additional-context",
            "-c",
            multiple=True,
            metavar="JSON",
            help="Settings as JSON or a Python dict literal; beats the files. `madengine schema additional_context` "
            "explains each.",
        ),
        click.option(
            "--additional-context-file",
            "-f",
            multiple=True,
            type=FILE,
            metavar="FILE",
            help="Settings from a JSON file. Repeatable; a later file beats an earlier one.",
        ),
    )(command)


def engine_option(command: Command) -> Command:
    """``--engine``."""
    return click.option(
        "--engine",
        type=click.Choice(["docker", "podman", "host"]),
        show_default="$MAD_CONTAINER_ENGINE, else the first that works",
        help="What runs the scripts: containers, or 'host' for this machine as it is.",
    )(command)


def build_options(command: Command) -> Command:
    """How images come to be, for ``build`` and for a ``run`` that builds."""
    return _stacked(
        click.option("--registry", "-r", metavar="HOST", help="Push what was built to this registry."),
        click.option("--clean-docker-cache", is_flag=True, help="Build from scratch, without the engine's cache."),
        click.option(
            "--target-archs",
            "-a",
            multiple=True,
            metavar="ARCH",
            help="GPU architectures to build for, one image each (gfx942,gfx950). Repeatable; commas separate.",
        ),
        click.option(
            "--use-image", metavar="IMAGE", help="Take this image instead of building; 'auto' takes the card's own."
        ),
        click.option("--batch-manifest", type=FILE, metavar="FILE", help="A list saying which models to build anew."),
    )(command)


def output_options(command: Command) -> Command:
    """``--live-output``, ``--json``, ``--verbose``."""
    return _stacked(
        click.option("--live-output", "-l", is_flag=True, help="Show what builds and scripts print, as they print it."),
        report_options,
    )(command)


def report_options(command: Command) -> Command:
    """``--json``, ``--verbose``."""
    return _stacked(
        click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output, for machines."),
        click.option("--verbose", "-v", is_flag=True, help="Say more on standard error."),
    )(command)
