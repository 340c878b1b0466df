"""The batch manifest: which models of a package are to be built and which come from a registry.

A JSON list of ``{"model_name", "build_new": false, "registry", "registry_image"}``. A model that is not built needs the
``registry_image`` that it is to run in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from madengine.core.errors import ValidationError

_KEYS: Mapping[str, type] = {"model_name": str, "build_new": bool, "registry": str, "registry_image": str}


@dataclass(frozen=True)
class BatchEntry:
    """One model of a batch. ``registry`` and ``registry_image`` are empty when not given."""

    model_name: str
    build_new: bool = False
    registry: str = ""
    registry_image: str = ""


def load_batch_manifest(path: Path) -> tuple[BatchEntry, ...]:
    """Read and check a batch manifest. Raises ConfigurationError with the file and the JSON pointer."""
    from madengine.core.documents import load_json

    document = load_json(path, what="batch manifest")
    if not isinstance(document, list) or not document:
        raise ValidationError(
            "a batch manifest is a list with at least one model",
            source=str(path),
            hint='[{"model_name": "...", "build_new": true}]',
        )
    entries = tuple(_entry(item, str(path), f"/{index}") for index, item in enumerate(document))
    _refuse_repeats(entries, str(path))
    return entries


def _entry(item: Any, source: str, pointer: str) -> BatchEntry:
    if not isinstance(item, dict):
        raise ValidationError("an entry of a batch manifest is an object", source=source, pointer=pointer)
    values = {key: value for key, value in item.items() if value is not None and not key.startswith("_")}
    for key, value in values.items():
        if key not in _KEYS:
            raise ValidationError(
                f"unknown key {key!r}", source=source, pointer=pointer, hint=f"known are {', '.join(_KEYS)}"
            )
        if not isinstance(value, _KEYS[key]):
            wanted = "true or false" if _KEYS[key] is bool else "text"
            raise ValidationError(f"{key} must be {wanted}", source=source, pointer=f"{pointer}/{key}")
    if not values.get("model_name", "").strip():
        raise ValidationError("model_name is missing", source=source, pointer=f"{pointer}/model_name")
    entry = BatchEntry(**values)
    if not entry.build_new and not entry.registry_image:
        raise ValidationError(
            f"{entry.model_name} is not built, so it needs the image that it is to run in",
            source=source,
            pointer=f"{pointer}/registry_image",
            hint='give "registry_image", or "build_new": true',
        )
    return entry


def _refuse_repeats(entries: Sequence[BatchEntry], source: str) -> None:
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        if entry.model_name in seen:
            raise ValidationError(f"{entry.model_name} is there twice", source=source, pointer=f"/{index}/model_name")
        seen.add(entry.model_name)
