"""The build manifest against its contract: migration, schema, and what fields say about each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice
from typing import Any

from madengine.core.errors import ValidationError
from madengine.core.json_positions import pointer_of
from madengine.schemas.cards import nodes_violations
from madengine.schemas.misspelt import misspelt_keys, schema_shape
from madengine.schemas.problems import PROBLEM_LIMIT, Problem
from madengine.schemas.violations import Violation, object_at, violations
from madengine.schemas.wording import quoted

BLOCKS = ("slurm", "k8s", "kubernetes", "distributed")
"""Blocks that people write at the top of a manifest, and that belong under deployment_config."""


def validate_build_manifest(manifest: Any, source: str | None = None, migrate: bool = True) -> list[str]:
    """Check a manifest; returns warnings, each one sentence that begins with ``source`` and the JSON pointer.

    With ``migrate`` top-level deployment blocks are first moved under ``deployment_config``, in place. Raises
    ValidationError on the first violation in document order. ``source`` is what errors call the document.
    """
    name = source or "manifest"
    misspelt = misspelt_keys(schema_shape("build_manifest"), manifest)  # before keys are moved from where they stand
    moved = migration(manifest) if migrate else []
    _raise_first(chain(violations("build_manifest", manifest), contradictions(manifest)), source, moved)
    problems = [*moved, *_as_written(doubts(manifest), moved), *misspelt]
    return [problem.sentence(name) for problem in problems]


def migrate_top_level_deployment_blocks(manifest: Any) -> list[str]:
    """Move top-level ``slurm``, ``k8s``, ``kubernetes`` and ``distributed`` under ``deployment_config``, in place.

    Where both exist, the one under ``deployment_config`` wins and the other is dropped. Returns a warning for each.
    """
    return [problem.sentence("manifest") for problem in migration(manifest)]


def migration(manifest: Any) -> list[Problem]:
    """Carry out the migration; the warnings carry the pointers that the blocks had."""
    if not isinstance(manifest, dict):
        return []
    present = [block for block in BLOCKS if block in manifest]
    target = manifest.get("deployment_config")
    if not present or not (target is None or isinstance(target, dict)):
        return []
    if target is None:
        target = manifest["deployment_config"] = {}
    return [_move(manifest, target, block) for block in present]


def _move(manifest: dict[str, Any], target: dict[str, Any], block: str) -> Problem:
    value = manifest.pop(block)
    if target.get(block) is not None:
        message = f'"{block}" belongs under "deployment_config", which has one already: this one is ignored'
        return Problem("warning", "ignored-block", f"/{block}", None, message, "remove it")
    target[block] = value
    message = f'"{block}" belongs under "deployment_config" and is read as if it stood there'
    return Problem("warning", "belongs-under", f"/{block}", None, message, "move it")


def manifest_problems(manifest: Any) -> list[Problem]:
    """Everything that is wrong with a manifest: warnings of its migration, violations, contradictions, doubts,
    misspelt keys.

    The manifest is migrated in place; the pointers are those of the document as it was.
    """
    misspelt = misspelt_keys(schema_shape("build_manifest"), manifest)
    moved = migration(manifest)
    found = islice(chain(violations("build_manifest", manifest), contradictions(manifest)), PROBLEM_LIMIT)
    problems = [violation.problem() for violation in found] + doubts(manifest)
    return moved + _as_written(problems, moved) + misspelt


def _as_written(problems: Iterable[Problem], moved: Iterable[Problem]) -> list[Problem]:
    """Problems with the pointers that their places had before blocks were moved."""
    places = tuple(problem.pointer for problem in moved if problem.code == "belongs-under")
    return [replace(problem, pointer=_place_written(problem.pointer, places)) for problem in problems]


def _place_written(pointer: str, places: Iterable[str]) -> str:
    for before in places:
        now = f"/deployment_config{before}"
        if pointer == now or pointer.startswith(now + "/"):
            return before + pointer[len(now) :]
    return pointer


def contradictions(manifest: Any) -> Iterator[Violation]:
    """What fields of a manifest say against each other, in document order."""
    for block in manifest if isinstance(manifest, dict) else ():
        if block == "built_models":
            yield from _between_models_and_images(manifest)
        elif block == "deployment_config":
            yield from nodes_violations(manifest[block], (block,))


def _between_models_and_images(manifest: Mapping[str, Any]) -> Iterator[Violation]:
    images = object_at(manifest, "built_images")
    for key, model in object_at(manifest, "built_models").items():
        if key not in images:
            yield Violation(
                "model-without-image",
                ("built_models", key),
                f"the model {quoted(key)} has no image: built_images has no such key",
                found=f"the key {quoted(key)}",
                allowed="a key of built_images",
                hint="give the image and its model the same key",
            )
        if isinstance(model, dict) and "slurm" in model:
            yield from nodes_violations(model, ("built_models", key))


def doubts(manifest: Any) -> list[Problem]:
    """Warnings about a manifest: what can hardly be meant."""
    models = object_at(manifest, "built_models")
    found = [
        Problem(
            "warning",
            "image-without-model",
            pointer_of(("built_images", key)),
            None,
            f"no model runs in the image {quoted(key)}: built_models has no such key",
        )
        for key in object_at(manifest, "built_images")
        if key not in models
    ]
    deployment = object_at(manifest, "deployment_config")
    if deployment.get("target") == "slurm" and not deployment.get("slurm"):
        message = 'the target is "slurm", but there is no "slurm" block: every setting of the job is a default'
        found.append(Problem("warning", "slurm-without-block", "/deployment_config/target", None, message))
    return found


def _raise_first(found: Iterable[Violation], source: str | None, moved: Iterable[Problem]) -> None:
    for first in found:
        (problem,) = _as_written([first.problem()], moved)
        raise ValidationError(
            first.message,
            source=source,
            pointer=problem.pointer,
            found=first.found,
            allowed=first.allowed,
            hint=first.hint,
        )
