"""The build manifest as a value: which image belongs to which model, and how they are to be run.

Its contract is ``schemas/build_manifest.schema.json``; it is checked when written and when read. The user's file is
never rewritten.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from madengine.catalog.card import ModelCard


@dataclass(frozen=True)
class ImageRecord:
    """One entry of ``built_images``; ``raw`` keeps every key as written."""

    raw: Mapping[str, Any]

    def text(self, key: str) -> str:
        """A string field (``docker_image``, ``dockerfile``, ``base_docker``, ...), empty when absent or null."""
        value = self.raw.get(key)
        return "" if value is None else str(value)

    @property
    def docker_image(self) -> str:
        """The image to run; empty for a model that runs without a container."""
        return self.text("docker_image")

    @property
    def local_image(self) -> bool:
        """Whether the image is to be ensured on each node instead of being pulled from a registry."""
        return bool(self.raw.get("local_image"))

    @property
    def build_duration(self) -> float:
        """Seconds the build took, 0 when nothing was built."""
        value = self.raw.get("build_duration")
        return float(value) if isinstance(value, (int, float)) else 0.0


@dataclass(frozen=True)
class BuildManifest:
    """A build manifest. ``images`` and ``models`` share their keys; ``source`` is the file it was read from."""

    images: Mapping[str, ImageRecord]
    models: Mapping[str, ModelCard]
    context: Mapping[str, Any] = field(default_factory=dict)
    deployment_config: Mapping[str, Any] = field(default_factory=dict)
    credentials_required: tuple[str, ...] = ()
    summary: Mapping[str, Any] = field(default_factory=dict)
    source: Path | None = None

    def to_dict(self) -> dict[str, Any]:
        """The document as it is written to disk."""
        return {
            "built_images": {key: dict(image.raw) for key, image in self.images.items()},
            "built_models": {key: card.to_manifest() for key, card in self.models.items()},
            "context": dict(self.context),
            "credentials_required": list(self.credentials_required),
            "summary": dict(self.summary),
            "deployment_config": dict(self.deployment_config),
        }
