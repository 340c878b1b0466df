"""Data sources: where a model's input data comes from.

``data.json`` maps a data name to its providers, ``{NAME: {"local": {"path": ..., "home": ...}}}`` (or the same under
``data_sources``). A name without a provider - MAD's ``{"huggingface": {}}`` - needs nothing from us: the script
fetches its data itself.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from madengine.core.errors import ConfigurationError

PROVIDERS = ("custom", "local", "minio", "nas", "aws")


@dataclass(frozen=True)
class DataSource:
    """One resolved data source. ``path`` is a folder of this machine that is mounted at ``home``."""

    name: str
    provider: str = ""
    path: Path | None = None
    home: str = ""


def load_data_config(path: Path) -> Mapping[str, Any]:
    """The data sources of a ``data.json``. Raises ``ConfigurationError``."""
    from madengine.core.documents import load_json

    document = load_json(path, what="data configuration")
    if not isinstance(document, dict):
        raise ConfigurationError("a data configuration is an object of data names", where=str(path))
    inner = document.get("data_sources", document)
    if not isinstance(inner, dict):
        raise ConfigurationError("data_sources must be an object of data names", where=f"{path}#/data_sources")
    return inner


def resolve_data(names: str, sources: Mapping[str, Any]) -> tuple[DataSource, ...]:
    """The sources of a card's ``data`` (comma-separated names), each with its first usable provider.

    Raises ``ConfigurationError`` for a name that the configuration does not know or whose data is not there.
    """
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    return tuple(_resolve(name, index, sources) for index, name in enumerate(wanted))


def _resolve(name: str, index: int, sources: Mapping[str, Any]) -> DataSource:
    if name not in sources:
        known = ", ".join(sorted(sources)) or "none"
        raise ConfigurationError(f"data.json has no data named {name!r}", hint=f"it has: {known}")
    providers = sources[name] or {}
    if not isinstance(providers, dict):
        raise ConfigurationError(f"the providers of data {name!r} must be an object")
    local = providers.get("local")
    if isinstance(local, dict):
        return _local(name, index, local)
    offered = [provider for provider in PROVIDERS if provider in providers]
    if offered:
        raise ConfigurationError(
            f"data {name!r} is offered by {', '.join(offered)}, and only local folders can be used",
            hint=f'copy the data here and add "local": {{"path": ...}} to {name!r} in data.json',
        )
    return DataSource(name)


def _local(name: str, index: int, local: Mapping[str, Any]) -> DataSource:
    path = Path(str(local.get("path") or ""))
    if not local.get("path") or not os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises for a name that is too long
        raise ConfigurationError(f"the local data of {name!r} is not there: {local.get('path') or 'no path given'}")
    return DataSource(name, "local", path.resolve(), str(local.get("home") or f"/data_dlm_{index}"))
