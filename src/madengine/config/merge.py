"""Merging documents the way people merge overlays: objects merge, everything else is replaced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def merged(base: Mapping[str, Any], overlay: Mapping[str, Any]) -> dict[str, Any]:
    """``base`` with ``overlay`` on top; neither is changed."""
    result = dict(base)
    for key, value in overlay.items():
        below = result.get(key)
        both_objects = isinstance(below, Mapping) and isinstance(value, Mapping)
        result[key] = merged(below, value) if both_objects else value  # type: ignore[arg-type]
    return result
