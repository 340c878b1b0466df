"""What a file is, told from its content; its name decides only where the content leaves it open."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePath
from typing import Any, Literal

Kind = Literal["manifest", "overlay", "cards", "context", "env_file", "results_csv", "perf_csv", "unknown"]

NAMES: dict[Kind, str] = {
    "manifest": "build manifest",
    "overlay": "overlay of a build manifest",
    "cards": "model cards",
    "context": "additional context",
    "env_file": "env file",
    "results_csv": "results CSV",
    "perf_csv": "perf.csv",
    "unknown": "file",
}
"""Kind -> what people call it."""

_MANIFEST_KEYS = ("built_images", "built_models")
_OVERLAY_KEYS = {"context", "deployment_config", "summary", "credentials_required"}
_CARD_KEYS = {"name", "scripts", "dockerfile", "n_gpus", "tags"}
_ASSIGNMENT = re.compile(r"^[ \t]*(?:export[ \t]+)?[A-Za-z_][A-Za-z0-9_]*\+?=", re.MULTILINE)
_PERF_COLUMNS = {"model", "n_gpus", "docker_image", "machine_name", "status", "build_number"}


def kind_of_document(document: Any, name: str, context_keys: Iterable[str]) -> Kind:
    """The kind of a JSON document; ``context_keys`` are the known keys of an additional context."""
    stem = PurePath(name).name.lower()
    if isinstance(document, list):
        return "cards"
    if not isinstance(document, dict):
        return _kind_of_name(stem)
    if any(key in document for key in _MANIFEST_KEYS) or ("manifest" in stem and _is_about_builds(document)):
        return "manifest"
    if len(_CARD_KEYS & document.keys()) > 1 or stem == "models.json":
        return "cards"
    if _OVERLAY_KEYS & document.keys():
        return "overlay"
    return "context" if _is_context(document, stem, set(context_keys)) else "unknown"


def kind_of_text(text: str, name: str) -> Kind:
    """The kind of a text that is not JSON, or not whole JSON."""
    stem = PurePath(name).name.lower()
    start = text.lstrip()[:1]
    if start in {"{", "["} or stem.endswith(".json"):
        found = next((kind for key, kind in _MARKS if f'"{key}"' in text), None)
        return found or ("cards" if start == "[" else _kind_of_name(stem))
    if _ASSIGNMENT.search(text) or stem.endswith(".env"):
        return "env_file"
    first = text.lstrip().split("\n", 1)[0]
    return kind_of_columns(first.split(",")) if "," in first else _kind_of_name(stem)


def kind_of_columns(columns: Iterable[str]) -> Kind:
    """The kind of a CSV file by its header."""
    names = {column.strip().strip('"').lower() for column in columns}
    return "perf_csv" if names >= _PERF_COLUMNS else "results_csv"


_MARKS: tuple[tuple[str, Kind], ...] = (
    ("built_images", "manifest"),
    ("built_models", "manifest"),
    ("deployment_config", "overlay"),
    ("n_gpus", "cards"),
    ("docker_env_vars", "context"),
)


def _kind_of_name(stem: str) -> Kind:
    if stem.endswith(".env") or stem.startswith("mad.env"):
        return "env_file"
    if stem == "models.json":
        return "cards"
    if stem.endswith(".csv"):
        return "perf_csv" if stem == "perf.csv" else "results_csv"
    return "manifest" if "manifest" in stem else "context" if "context" in stem else "unknown"


def _is_about_builds(document: dict[str, Any]) -> bool:
    return not document or bool(_OVERLAY_KEYS & document.keys())


def _is_context(document: dict[str, Any], stem: str, known: set[str]) -> bool:
    """Whether an object is an additional context: it has a key of one; ``tools`` as an object is a tools.json."""
    keys = {key for key in document if not (key == "tools" and isinstance(document[key], dict))}
    return bool(keys & known) or "context" in stem or not document
