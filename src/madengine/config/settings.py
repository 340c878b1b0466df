"""What a person configured, merged once from all its sources into one frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Settings:
    """The additional context after merging (command line over files over defaults) and validation.

    ``context`` keeps the merged document; the typed fields are read from it. ``origins`` says for each value that was
    not given by the user where it came from, to be shown aloud. ``secrets`` are the ``MAD_SECRETS_*`` variables.
    """

    context: Mapping[str, Any] = field(default_factory=dict)
    gpu_vendor: str | None = None
    guest_os: str = "UBUNTU"
    target: str = "local"
    docker_env_vars: Mapping[str, str] = field(default_factory=dict)
    docker_mounts: Mapping[str, str] = field(default_factory=dict)
    docker_build_arg: Mapping[str, str] = field(default_factory=dict)
    docker_gpus: str = ""
    docker_cpus: str = ""
    env_vars: Mapping[str, str] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
