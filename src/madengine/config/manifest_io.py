"""Reading and writing ``build_manifest.json``: checked by the same schema both ways, written whole or not at all."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from madengine.catalog.card import CardOrigin, ModelCard
from madengine.config.manifest import BuildManifest, ImageRecord
from madengine.core.errors import ConfigurationError, ValidationError

SHOWN_UNFILLED = 5  # template values that an error lists before it only counts


def read_manifest(path: Path) -> tuple[BuildManifest, list[str]]:
    """A manifest that can be run, and what its reader should be warned about.

    Raises ConfigurationError when the file is no manifest, breaks its contract, or still has template values: nothing
    may be started from it then.
    """
    from madengine.core.documents import load_json
    from madengine.schemas import validate_build_manifest

    document = load_json(path, what="build manifest", pipes=True)
    warnings = validate_build_manifest(document, source=str(path), migrate=True)
    _refuse_unfilled(document, str(path))
    return _manifest(document, path), warnings


def write_manifest(manifest: BuildManifest, path: Path) -> None:
    """Write a manifest atomically, creating its folder.

    Raises ValidationError when it would break the contract, MADEngineError when the place cannot be written.
    """
    from madengine.core.files import write_atomic
    from madengine.schemas import validate_build_manifest

    document = manifest.to_dict()
    validate_build_manifest(copy.deepcopy(document), source=str(path), migrate=True)
    text = json.dumps(document, indent=2, ensure_ascii=True) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"its folder cannot be made: {error.strerror}", where=str(path)) from error
    write_atomic(path, text)


def _refuse_unfilled(document: Mapping[str, Any], source: str) -> None:
    from madengine.schemas import unfilled_values

    unfilled = unfilled_values(document)
    if not unfilled:
        return
    shown = "; ".join(f"{pointer}: {value!r}" for pointer, value in unfilled[:SHOWN_UNFILLED])
    more = f"; and {len(unfilled) - SHOWN_UNFILLED} more" if len(unfilled) > SHOWN_UNFILLED else ""
    raise ValidationError(
        f"{len(unfilled)} template values are not filled in: {shown}{more}",
        source=source,
        pointer=unfilled[0][0],
        hint="replace them; `madengine validate` lists all with their lines",
    )


def _manifest(document: Mapping[str, Any], path: Path) -> BuildManifest:
    return BuildManifest(
        images={key: ImageRecord(raw) for key, raw in document["built_images"].items()},
        models={key: ModelCard(raw, CardOrigin(path)) for key, raw in document["built_models"].items()},
        context=document["context"],
        deployment_config=document.get("deployment_config") or {},
        credentials_required=tuple(document.get("credentials_required") or ()),
        summary=document.get("summary") or {},
        source=path,
    )
