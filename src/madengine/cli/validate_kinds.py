"""What a file is, told from its content; its name decides only where the content leaves it open."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any, Literal

from madengine.config.data import PROVIDERS
from madengine.reporting.run_record import KIND as RUN_KIND
from madengine.verdict.evidence_json import KIND as EVIDENCE_KIND

Kind = Literal[
    "manifest",
    "overlay",
    "cards",
    "context",
    "batch_manifest",
    "data",
    "tools",
    "credentials",
    "env_file",
    "results_csv",
    "perf_csv",
    "perf_entry",
    "perf_super",
    "run_record",
    "evidence",
    "unknown",
]

NAMES: dict[Kind, str] = {
    "manifest": "build manifest",
    "overlay": "overlay of a build manifest",
    "cards": "model cards",
    "context": "additional context",
    "batch_manifest": "batch manifest",
    "data": "data sources",
    "tools": "tools",
    "credentials": "credentials",
    "env_file": "env file",
    "results_csv": "results CSV",
    "perf_csv": "perf.csv",
    "perf_entry": "rows of perf.csv",
    "perf_super": "rows of perf_super",
    "run_record": "run record",
    "evidence": "evidence",
    "unknown": "file",
}
"""Kind -> what people call it."""

_MANIFEST_KEYS = ("built_images", "built_models")
_OVERLAY_KEYS = {"context", "deployment_config", "summary", "credentials_required"}
_CARD_KEYS = {"name", "scripts", "dockerfile", "n_gpus", "tags"}
_ASSIGNMENT = re.compile(r"^[ \t]*(?:export[ \t]+)?[A-Za-z_][A-Za-z0-9_]*\+?=", re.MULTILINE)
_BATCH_KEYS = {"model_name", "build_new", "registry_image"}
_CREDENTIAL_KEYS = {"username", "password", "ssh_key_file"}
_FILE_NAMES: Mapping[str, Kind] = {
    "models.json": "cards",
    "data.json": "data",
    "tools.json": "tools",
    "credential.json": "credentials",
    "credentials.json": "credentials",
}
"""How the files of a package are called."""
_OWN_KINDS: Mapping[str, Kind] = {RUN_KIND: "run_record", EVIDENCE_KIND: "evidence"}
"""What madengine's own documents say of themselves under ``kind``."""
_PERF_COLUMNS = {"model", "n_gpus", "docker_image", "machine_name", "status", "build_number"}
_SUPER_KEYS = {"configs", "multi_results"}


def kind_of_document(document: Any, name: str, context_keys: Iterable[str]) -> Kind:
    """The kind of a JSON document; ``context_keys`` are the known keys of an additional context.

    What is called credential.json is that, whatever it holds: other kinds of files are quoted in remarks.
    """
    stem = PurePath(name).name.lower()
    if _FILE_NAMES.get(stem) == "credentials":
        return "credentials"
    if isinstance(document, list):
        if rows := _kind_of_rows(document, stem):
            return rows
        return "batch_manifest" if _is_batch(document, stem) else _FILE_NAMES.get(stem, "cards")
    return _kind_of_object(document, stem, set(context_keys)) if isinstance(document, dict) else _kind_of_name(stem)


def _kind_of_object(document: dict[str, Any], stem: str, context_keys: set[str]) -> Kind:
    if own := _OWN_KINDS.get(str(document.get("kind"))):
        return own
    if any(key in document for key in _MANIFEST_KEYS) or ("manifest" in stem and _is_about_builds(document)):
        return "manifest"
    if stem in _FILE_NAMES:
        return _FILE_NAMES[stem]
    if len(_CARD_KEYS & document.keys()) > 1:
        return "cards"
    if _OVERLAY_KEYS & document.keys():
        return "overlay"
    return "context" if _is_context(document, stem, context_keys) else _kind_of_named_entries(document)


def kind_of_text(text: str, name: str) -> Kind:
    """The kind of a text that is not JSON, or not whole JSON."""
    stem = PurePath(name).name.lower()
    start = text.lstrip()[:1]
    if start in {"{", "["} or stem.endswith(".json"):
        if stem in _FILE_NAMES:
            return _FILE_NAMES[stem]
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
    *_OWN_KINDS.items(),
    ("built_images", "manifest"),
    ("built_models", "manifest"),
    ("deployment_config", "overlay"),
    ("multi_results", "perf_super"),
    ("deployment_type", "perf_entry"),
    ("n_gpus", "cards"),
    ("docker_env_vars", "context"),
    ("model_name", "batch_manifest"),
    ("data_sources", "data"),
    ("password", "credentials"),
)


def _kind_of_name(stem: str) -> Kind:
    if stem.endswith(".env") or stem.startswith("mad.env"):
        return "env_file"
    if stem in _FILE_NAMES:
        return _FILE_NAMES[stem]
    if stem.endswith(".csv"):
        return "perf_csv" if stem == "perf.csv" else "results_csv"
    if _is_called_batch(stem):
        return "batch_manifest"
    return "manifest" if "manifest" in stem else "context" if "context" in stem else "unknown"


def _kind_of_rows(entries: list[Any], stem: str) -> Kind | None:
    """Rows of perf.csv as JSON, by their columns; a list without any by its name."""
    first = next((entry for entry in entries if isinstance(entry, dict)), None)
    if first is not None and first.keys() >= _PERF_COLUMNS:
        return "perf_super" if _SUPER_KEYS & first.keys() else "perf_entry"
    if entries or not stem.startswith("perf_"):
        return None
    return "perf_super" if "super" in stem else "perf_entry"


def _is_called_batch(stem: str) -> bool:
    return "batch" in stem and "manifest" in stem


def _is_batch(entries: list[Any], stem: str) -> bool:
    keys = {key for entry in entries if isinstance(entry, dict) for key in entry}
    return bool(_BATCH_KEYS & keys) or (_is_called_batch(stem) and "name" not in keys)


def _kind_of_named_entries(document: dict[str, Any]) -> Kind:
    """The kind of an object whose keys are names of a person's own, told from what the names stand for."""
    if isinstance(document.get("tools"), dict):
        return "tools"
    entries = [value for value in document.values() if isinstance(value, dict)]
    if any(_CREDENTIAL_KEYS & entry.keys() for entry in entries):
        return "credentials"
    return (
        "data" if "data_sources" in document or any(entry.keys() & set(PROVIDERS) for entry in entries) else "unknown"
    )


def _is_about_builds(document: dict[str, Any]) -> bool:
    return not document or bool(_OVERLAY_KEYS & document.keys())


def _is_context(document: dict[str, Any], stem: str, known: set[str]) -> bool:
    """Whether an object is an additional context: it has a key of one; ``tools`` as an object is a tools.json."""
    keys = {key for key in document if not (key == "tools" and isinstance(document[key], dict))}
    return bool(keys & known) or "context" in stem or not document
