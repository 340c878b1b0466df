"""The contracts of the files that go in and out, as JSON Schemas, and what checks documents against them.

The schemas lie beside this file and travel in the wheel. Importing this package is cheap; the validator is loaded with
the first document.
"""

from __future__ import annotations

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
