"""A run in words: what would run, in which image, with which mounts and which variable names.

This is what a dry run prints and what lies as ``plan.txt`` in the run directory. Of secrets it holds the names only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from madengine.core.errors import ConfigurationError, ExecutionError
from madengine.core.redact import Redactor, mask_argv
from madengine.core.shell import quote, split_words
from madengine.deployment.base import Rendering
from madengine.execution.clone import repository_folder
from madengine.execution.spec import RunSpec
from madengine.execution.workspace import RUN_DIRECTORY

PLAN = "plan.txt"
NO_LAUNCHER = ("docker", "native")  # what perf.csv calls a run without one


def describe(spec: RunSpec) -> Rendering:
    """The facts of a run, also as text."""
    hidden = Redactor(spec.hidden)
    facts = {name: _without_secrets(value, hidden) for name, value in _facts(spec).items()}
    return Rendering(files={PLAN: as_text(facts)}, facts=facts)


def _without_secrets(value: Any, hidden: Redactor) -> Any:
    if isinstance(value, list):
        return [hidden.text(str(item)) for item in value]
    return hidden.text(value) if isinstance(value, str) else value


def as_text(facts: dict[str, Any]) -> str:
    """One fact a line, lists joined; absent facts are left out."""
    lines = []
    for name, value in facts.items():
        shown = ", ".join(str(item) for item in value) if isinstance(value, (list, tuple)) else str(value)
        shown = shown.replace("\n", "\\n")  # a name cannot add a fact of its own
        if shown:
            lines.append(f"{name.replace('_', ' '):<18}{shown}")
    return "\n".join(lines) + "\n"


def _facts(spec: RunSpec) -> dict[str, Any]:
    return {
        "model": spec.card.name,
        "run": spec.run_id,
        "skipped": spec.skip or "",
        "refused": spec.refusal or "",
        "engine": spec.engine,
        "image": spec.image.docker_image or ("none: the script runs on this machine" if spec.engine == "host" else ""),
        "command": f"cd {_folder(spec)} && {command_line(spec)}",
        "timeout": "none" if spec.timeout is None else f"{spec.timeout:g} s",
        "gpus": _gpus(spec),
        "launcher": "" if spec.launcher in NO_LAUNCHER else spec.launcher,
        "mounts": [f"{m.source} -> {m.target}{' (read only)' if m.read_only else ''}" for m in spec.mounts],
        "variables": sorted(spec.environment),
        "secrets": sorted(spec.secrets),
        "engine_options": [quote(word) for word in mask_argv(spec.run_options, spec.secrets.values())],
        "pre_scripts": [f"{hook.path} {hook.args}".strip() for hook in spec.pre_scripts],
        "post_scripts": [f"{hook.path} {hook.args}".strip() for hook in spec.post_scripts],
        "results": spec.results_file or "a 'performance: <number> <metric>' line of the script's output",
        "expected_results": "" if spec.expected_results is None else spec.expected_results,
        "run_directory": str(spec.run_dir),
    }


def _folder(spec: RunSpec) -> str:
    """The folder of the workspace that the script runs in; an address that names none is refused when it is run."""
    url = spec.card.text("url")
    try:
        return repository_folder(url) if url else RUN_DIRECTORY
    except ExecutionError:
        return RUN_DIRECTORY


def command_line(spec: RunSpec) -> str:
    """The script's command as a person would type it, without the values of secrets."""
    words = (*spec.prefix, *spec.script.interpreter, spec.script.file)
    return f"{_shown_words(words, spec)} {_shown_args(spec)}".strip()


def _shown_args(spec: RunSpec) -> str:
    """The card's args as they are written, when they hold no secret."""
    args = spec.script.args
    try:
        words = split_words(args)
    except ConfigurationError:
        return mask_argv((args,), spec.secrets.values())[0]
    return args if mask_argv(words, spec.secrets.values()) == words else _shown_words(words, spec)


def _shown_words(words: Sequence[str], spec: RunSpec) -> str:
    return " ".join(quote(word) for word in mask_argv(words, spec.secrets.values()))


def _gpus(spec: RunSpec) -> str:
    if spec.gpus.vendor == "CPU":
        return "none: this run is on the CPU"
    granted = ",".join(str(index) for index in spec.gpus.indices)
    return f"{spec.gpus.vendor} {granted} of {spec.gpus.total} {spec.gpus.architecture}".strip()
