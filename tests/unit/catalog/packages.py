"""Small model packages on disk for the tests of the catalog."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent
from typing import Any


def card(name: str, **fields: Any) -> dict[str, Any]:
    """A card that is fine, with ``fields`` changed."""
    return {
        "name": name,
        "dockerfile": "docker/x",
        "scripts": "scripts/x/run.sh",
        "n_gpus": "-1",
        "tags": ["t"],
        **fields,
    }


def write_cards(package: Path, cards: Any, folder: str = "") -> Path:
    """``models.json`` of the root or of a folder under ``scripts/``."""
    path = package / (f"scripts/{folder}/models.json" if folder else "models.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(cards if isinstance(cards, str) else json.dumps(cards, indent=1), encoding="utf-8")
    return path


def write_script(package: Path, code: str, folder: str = "gen") -> Path:
    """``get_models_json.py`` of a folder under ``scripts/``."""
    path = package / "scripts" / folder / "get_models_json.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(code), encoding="utf-8")
    return path
