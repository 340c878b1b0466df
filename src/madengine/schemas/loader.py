"""The schema files, their validators, and the columns of perf.csv."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from madengine.core.errors import ConfigurationError

if TYPE_CHECKING:
    import jsonschema_rs

SUFFIX = ".schema.json"

SCHEMA_NAMES = ("build_manifest", "model_card", "additional_context", "perf_csv")
"""Short names of the schemas; the files are called ``<short name>.schema.json``."""


def schema_text(name: str) -> str:
    """The text of a schema file, by its file name or short name. Raises ConfigurationError naming the known ones."""
    short = name.removesuffix(SUFFIX)
    if short not in SCHEMA_NAMES:
        from difflib import get_close_matches

        close = get_close_matches(short, SCHEMA_NAMES, n=1)
        meant = f'did you mean "{close[0]}"? ' if close else ""
        raise ConfigurationError(
            f"there is no schema named {json.dumps(name[:80])}", hint=f"{meant}known are {', '.join(SCHEMA_NAMES)}"
        )
    return (Path(__file__).parent / f"{short}{SUFFIX}").read_text(encoding="utf-8")


def load_schema(name: str = "build_manifest.schema.json") -> dict[str, Any]:
    """A schema as a document of the caller's own. Raises ConfigurationError for a name that does not exist."""
    schema: dict[str, Any] = json.loads(schema_text(name))
    return schema


@cache
def shared_schema(name: str) -> dict[str, Any]:
    """A schema that is read once and must not be changed."""
    return load_schema(name)


@cache
def validator(name: str) -> jsonschema_rs.Draft202012Validator:
    """The compiled validator of a schema."""
    import jsonschema_rs

    return jsonschema_rs.Draft202012Validator(shared_schema(name))


@cache
def perf_csv_columns() -> tuple[str, ...]:
    """The columns of perf.csv in their order."""
    return tuple(shared_schema("perf_csv")["properties"])


def perf_csv_header() -> str:
    """The first line of perf.csv, without a line end."""
    return ",".join(perf_csv_columns())


def unknown_perf_columns(row: Iterable[str]) -> list[str]:
    """The keys of a row that are no columns of perf.csv, in their order."""
    known = frozenset(perf_csv_columns())
    return [key for key in row if key not in known]
