"""What a schema allows and what a document holds, in words a person would use."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from madengine.core.documents import printable

_TYPES = {
    "string": "a string",
    "object": "an object",
    "array": "a list",
    "null": "null",
    "number": "a number",
    "integer": "an integer",
}
_MANY = {"string": "strings", "object": "objects", "integer": "integers", "number": "numbers"}
SHOWN = 60  # characters of a value that an error quotes


def found(value: Any, *, secret: bool = False) -> str:
    """A value as an error quotes it: what it is, and for short scalars what it says. Secrets are not quoted."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return f"the number {printable(value, SHOWN)}"
    if isinstance(value, str):
        return "a string" if secret else f"a string {quoted(value)}"
    if isinstance(value, (list, tuple)):
        return "a list"
    return "an object" if isinstance(value, dict) else f"a Python {type(value).__name__}"


def quoted(text: object) -> str:
    """A text in double quotes on one line, cut to a readable length."""
    return f'"{printable(text, SHOWN)}"'


def allowed(schema: Mapping[str, Any]) -> str:
    """What a subschema allows: its own words (``x-allowed``), its values, or its types with their limits."""
    if "x-allowed" in schema:
        return str(schema["x-allowed"])
    if "enum" in schema:
        return listed([json.dumps(value) for value in schema["enum"]])
    types = schema.get("type", [])
    kinds = [types] if isinstance(types, str) else types
    return listed([word for kind in kinds for word in _words(kind, schema)])


def _words(kind: str, schema: Mapping[str, Any]) -> tuple[str, ...]:
    """A type as items of a list; a boolean is two, for an "or" of its own would stand beside the list's."""
    return ("true", "false") if kind == "boolean" else (_type(kind, schema),)


def _type(kind: str, schema: Mapping[str, Any]) -> str:
    if kind in {"integer", "number"}:
        return _TYPES[kind] + _limits(schema)
    if kind == "string" and schema.get("minLength"):
        return "a string that is not empty"
    if kind == "array":
        many = _MANY.get(str(schema.get("items", {}).get("type")))
        return f"a list of {many}" if many else "a list"
    return _TYPES[kind]


def _limits(schema: Mapping[str, Any]) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and most is not None:
        return f" from {least} to {most}"
    if least is not None:
        return f" >= {least}"
    return ""


def listed(items: Sequence[str], joint: str = "or") -> str:
    """``a, b or c``."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {joint} {items[-1]}"
