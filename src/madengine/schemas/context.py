"""Additional context against its schema."""

from __future__ import annotations

from typing import Any

from madengine.schemas.cards import nodes_violations
from madengine.schemas.problems import Problem
from madengine.schemas.violations import in_document_order, is_valid, object_at, violations


def validate_additional_context(document: Any, source: str | None = None) -> list[Problem]:  # noqa: ARG001
    """What is wrong with an additional context, in document order. ``source`` names the file or option."""
    found = [] if is_valid("additional_context", document) else violations("additional_context", document)
    found += nodes_violations(document, ())
    found += nodes_violations(object_at(document, "deployment_config"), ("deployment_config",))
    return [violation.problem() for violation in in_document_order(document, found)]
