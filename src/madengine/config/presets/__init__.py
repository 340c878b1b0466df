"""Defaults that a cluster's jobs begin with, and named profiles of clusters.

A preset is a JSON object with ``description``, ``slurm`` (as in a manifest's ``deployment_config``) and ``env_vars``.
The built-in ones lie beside this file; a person's own lie in ``~/.config/madengine/slurm/``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from madengine.config.context import env_map, load_context_file
from madengine.core.errors import ConfigurationError, ValidationError

BUILT_IN = Path(__file__).parent
PROFILES = "profiles"


@dataclass(frozen=True)
class Preset:
    """Values that are applied where nobody configured others. ``origin`` names the preset for people."""

    origin: str
    values: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


def built_in(kind: str, name: str, origin: str) -> Preset:
    """A preset that madengine brings; ``kind`` is a target's folder. One that it does not bring is empty."""
    path = BUILT_IN / kind / f"{name}.json"
    return _read(path, kind, origin) if path.is_file() else Preset(origin)


def profile(kind: str, name: str, environ: Mapping[str, str] = os.environ) -> Preset:
    """The profile of that name: a person's own before a built-in one.

    Raises ``ConfigurationError`` when there is none, naming those there are, or when its file is broken.
    """
    folders = (own_folder(kind, environ), BUILT_IN / kind / PROFILES)
    if Path(name).name == name:
        for folder in folders:
            path = folder / f"{name}.json"
            if os.path.lexists(path):
                return _read(path, kind, f"profile {name} ({path})" if folder == folders[0] else f"profile {name}")
    known = sorted({path.stem for folder in folders for path in folder.glob("*.json")})
    raise ConfigurationError(
        f"there is no cluster profile {name!r}",
        where=f"{kind}.cluster_profile",
        hint=f"known profiles: {', '.join(known)}; your own go to {folders[0]}",
    )


def own_folder(kind: str, environ: Mapping[str, str] = os.environ) -> Path:
    """The folder of a person's own profiles (XDG Base Directory Specification)."""
    base = environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(base).expanduser() / "madengine" / kind


def _read(path: Path, kind: str, origin: str) -> Preset:
    from madengine.schemas import validate_additional_context

    document = load_context_file(path)
    stray = next((key for key in document if key not in (kind, "env_vars", "description")), None)
    if stray is not None:
        allowed = f"a profile holds: description, {kind}, env_vars"
        raise ValidationError(f"{stray!r} does not belong here", source=str(path), pointer=f"/{stray}", hint=allowed)
    checked = {key: value for key, value in document.items() if key != "description"}
    errors = [problem for problem in validate_additional_context(checked, str(path)) if problem.is_error]
    if errors:
        raise ValidationError(errors[0].message, source=str(path), pointer=errors[0].pointer, hint=errors[0].hint)
    return Preset(origin, dict(document.get(kind) or {}), env_map(document.get("env_vars")))
