"""Additional context against its schema."""

from __future__ import annotations

from itertools import islice
from typing import Any

from madengine.schemas.cards import nodes_violations
from madengine.schemas.misspelt import misspelt_keys, schema_shape
from madengine.schemas.problems import PROBLEM_LIMIT, Problem
from madengine.schemas.violations import object_at, violations


def validate_additional_context(document: Any, source: str | None = None) -> list[Problem]:  # noqa: ARG001
    """What is wrong with an additional context, in document order, then what its fields say against each other, then
    warnings of misspelt keys.

    ``source`` names the file or option.
    """
    found = list(islice(violations("additional_context", document), PROBLEM_LIMIT))
    found += nodes_violations(document, ())
    found += nodes_violations(object_at(document, "deployment_config"), ("deployment_config",))
    misspelt = misspelt_keys(schema_shape("additional_context"), document)
    return [violation.problem() for violation in found] + misspelt
