"""One model card: what a package says about a model, read through typed properties.

The card keeps the document as it was written, unknown keys included, and reads its fields on demand, so that ten
thousand cards cost little more than parsing them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

_BOM = "\ufeff"  # a blank to the \\s of the schema, but not to int()

DEFAULT_TIMEOUT = 7200.0  # seconds, for a card that says nothing


class CardOrigin(NamedTuple):
    """Where a card was written: the file (or the script that generated it), and its place in the array there."""

    file: Path
    position: int | None = None


@dataclass(frozen=True)
class ModelCard:
    """A validated model card.

    ``raw`` is the document of the card with ``name``, ``scripts`` and ``dockerfile`` already relative to the
    package's root. ``scope`` is the folder under ``scripts/`` that the card came from, empty for the root file.
    """

    raw: Mapping[str, Any]
    origin: CardOrigin | None = None
    scope: str = ""

    @property
    def name(self) -> str:
        """Full name, ``<dir>/<name>`` for a card of ``scripts/<dir>/``."""
        return str(self.raw["name"])

    @property
    def short_name(self) -> str:
        """The name without the folder in front."""
        return self.name.rsplit("/", 1)[-1]

    @property
    def tags(self) -> tuple[str, ...]:
        """Tags; a comma-separated string counts as a list."""
        return _words(self.raw.get("tags"))

    @property
    def n_gpus(self) -> int:
        """Number of GPUs asked for; -1 means all there are, 0 none."""
        value = self.raw.get("n_gpus")
        return -1 if value is None or value == "" else int(str(value).replace(_BOM, ""))

    @property
    def timeout(self) -> float | None:
        """Seconds the run may take, None for no limit (0 or negative in the card); absent or null is 7200."""
        value = self.raw.get("timeout")
        if value is None:
            return DEFAULT_TIMEOUT
        return float(value) if float(value) > 0 else None

    @property
    def skip_gpu_arch(self) -> tuple[str, ...]:
        """GPU architectures on which the model is not to run."""
        return _words(self.raw.get("skip_gpu_arch"))

    @property
    def env_vars(self) -> Mapping[str, str]:
        """Variables for the container, on every target."""
        return {str(k): _env_text(v) for k, v in (self.raw.get("env_vars") or {}).items()}

    @property
    def deprecated(self) -> bool:
        """Whether the package marks the card as deprecated."""
        return bool(self.raw.get("deprecated"))

    def text(self, key: str) -> str:
        """The value of a string field (``args``, ``url``, ``data``, ...), empty when absent or null."""
        value = self.raw.get(key)
        return "" if value is None else str(value)

    def block(self, key: str) -> Mapping[str, Any]:
        """The value of an object field (``distributed``, ``slurm``), empty when absent or null."""
        value = self.raw.get(key)
        return value if isinstance(value, Mapping) else {}

    def with_fields(self, **fields: Any) -> ModelCard:
        """A copy with these raw fields replaced."""
        return replace(self, raw={**self.raw, **fields})

    def to_manifest(self) -> dict[str, Any]:
        """The card as it stands in ``built_models`` of a manifest: every key kept."""
        return dict(self.raw)


def _words(value: str | list[str] | None) -> tuple[str, ...]:
    if value is None:
        return ()
    # no loop of Python here: this runs for every card of a package that is listed
    words = tuple(map(str.strip, value.split(",") if isinstance(value, str) else value))
    return words if all(words) else tuple(filter(None, words))


def _env_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
