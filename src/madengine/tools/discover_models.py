"""The older import path of :class:`CustomModel`, which packages in the field still use."""

from __future__ import annotations

from madengine.utils.discover_models import CustomModel

__all__ = ["CustomModel"]
