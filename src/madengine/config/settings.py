"""What a person configured, merged once from all its sources into one frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Settings:
    """The additional context after merging (command line over files) and validation.

    ``context`` keeps the merged document; the typed fields are read from it. ``gpu_vendor`` is None when nobody named
    one. ``secrets`` are the ``MAD_SECRETS_*`` variables (name -> value). ``warnings`` say, each with its source and
    pointer, what in the sources can hardly be meant.
    """

    context: Mapping[str, Any] = field(default_factory=dict)
    gpu_vendor: str | None = None
    guest_os: str = "UBUNTU"
    target: str = "local"
    docker_env_vars: Mapping[str, str] = field(default_factory=dict)
    docker_build_arg: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    warnings: tuple[str, ...] = ()
