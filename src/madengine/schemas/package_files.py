"""Whether a package has the files that a manifest names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeGuard

from madengine.core.json_positions import pointer_of
from madengine.schemas.problems import Problem
from madengine.schemas.unfilled import templates_in
from madengine.schemas.violations import object_at
from madengine.schemas.wording import quoted

_SCRIPT_SUFFIXES = {".sh", ".py", ".slurm", ".sbatch"}
NO_DOCKERFILE = "N/A"  # begins the note that a manifest of a ready-made image holds instead of a Dockerfile


def is_package(folder: Path) -> bool:
    """Whether a folder is a whole model package, Dockerfiles and scripts included, and not only its cards."""
    try:
        return (folder / "docker").is_dir() and any(
            entry.suffix in _SCRIPT_SUFFIXES for pattern in ("*", "*/*") for entry in (folder / "scripts").glob(pattern)
        )
    except OSError:
        return False


def missing_files(manifest: Any, package: Path) -> list[Problem]:
    """Warnings for Dockerfiles and scripts of a manifest that the package does not have."""
    return list(_missing(manifest, package))


def _missing(manifest: Any, package: Path) -> Iterator[Problem]:
    for block in ("built_images", "built_models"):
        for key, entry in object_at(manifest, block).items():
            named = object_at(entry).get("dockerfile")
            if _is_path(named) and not named.startswith(NO_DOCKERFILE) and not _has_dockerfile(package, named):
                yield _problem("missing-dockerfile", (block, key, "dockerfile"), named, package)
            script = object_at(entry).get("scripts")
            if block == "built_models" and _is_path(script) and not _exists(package / script):
                yield _problem("missing-scripts", (block, key, "scripts"), script, package)


def _problem(code: str, path: tuple[str, ...], value: str, package: Path) -> Problem:
    message = f"the package {quoted(str(package))} has no {quoted(value)}"
    return Problem("warning", code, pointer_of(path), None, message)


def _is_path(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and bool(value.strip()) and not templates_in(value)


def _has_dockerfile(package: Path, prefix: str) -> bool:
    """Whether a Dockerfile has this name, or this name with an ending: manifests write both."""
    wanted = package / prefix
    try:
        return any(
            entry.name.startswith(wanted.name) and "Dockerfile" in entry.name for entry in wanted.parent.iterdir()
        )
    except (OSError, ValueError):
        return False


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False
