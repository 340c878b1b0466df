"""The contracts of the files that go in and out, as JSON Schemas, and what checks documents against them.

The schemas lie beside this file and travel in the wheel. Importing this package is cheap: its parts are loaded when a
name of theirs is first asked for (most runs need the columns of perf.csv and nothing else), the validator with the
first document.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from madengine.schemas.cards import validate_model_cards
    from madengine.schemas.context import validate_additional_context
    from madengine.schemas.loader import (
        SCHEMA_NAMES,
        load_schema,
        perf_csv_columns,
        perf_csv_header,
        unknown_perf_columns,
    )
    from madengine.schemas.manifest import migrate_top_level_deployment_blocks, validate_build_manifest
    from madengine.schemas.problems import Problem
    from madengine.schemas.unfilled import unfilled_values

__all__ = [
    "SCHEMA_NAMES",
    "Problem",
    "load_schema",
    "migrate_top_level_deployment_blocks",
    "perf_csv_columns",
    "perf_csv_header",
    "unfilled_values",
    "unknown_perf_columns",
    "validate_additional_context",
    "validate_build_manifest",
    "validate_model_cards",
]

if not TYPE_CHECKING:
    _HOMES = {
        "Problem": "problems",
        "migrate_top_level_deployment_blocks": "manifest",
        "unfilled_values": "unfilled",
        "validate_additional_context": "context",
        "validate_build_manifest": "manifest",
        "validate_model_cards": "cards",
    }

    def __getattr__(name: str) -> object:
        """A name of this package, from the part that it lives in (PEP 562)."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(f"{__name__}.{_HOMES.get(name, 'loader')}"), name)
        globals()[name] = value
        return value
