"""Additional context against its schema."""

from __future__ import annotations

from typing import Any

from madengine.schemas.cards import nodes_violations
from madengine.schemas.problems import Problem
from madengine.schemas.violations import in_document_order, is_valid, violations


def validate_additional_context(document: Any, source: str | None = None) -> list[Problem]:  # noqa: ARG001
    """What is wrong with an additional context, in document order. ``source`` names the file or option."""
    if not is_valid("additional_context", document):
        return [violation.problem() for violation in violations("additional_context", document)]
    found = list(nodes_violations(document, ()))
    found += nodes_violations(document.get("deployment_config") or {}, ("deployment_config",))
    return [violation.problem() for violation in in_document_order(document, found)]
