"""The violations of a schema, in the order in which a reader of the document meets them.

The compiled validator says within microseconds whether a document is valid, but it reports in the order of the schema,
all at once (a gigabyte for a file full of errors), and its paths lose empty keys. So it only decides; what is wrong is
found by walking the document along the schema, lazily, so that the first violation costs no more than reaching it.
The walk knows the keywords that the schemas here use, and a test holds it to the validator's opinion.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from madengine.core.json_positions import parts_of, pointer_of
from madengine.schemas import wording
from madengine.schemas.loader import shared_schema, validator
from madengine.schemas.problems import Problem

Path = tuple[str | int, ...]

KEYWORDS = frozenset(
    {"$ref", "type", "enum", "minimum", "maximum", "minLength", "pattern", "required", "properties", "items"}
    | {"additionalProperties", "propertyNames"}
)
"""The keywords of JSON Schema that the walk knows."""


@dataclass(frozen=True)
class Violation:
    """A place in a document that breaks its contract: what stands there and what may."""

    code: str
    path: Path
    message: str
    found: str = ""
    allowed: str = ""
    hint: str | None = None

    @property
    def pointer(self) -> str:
        """The RFC 6901 JSON pointer of the place."""
        return pointer_of(self.path)

    def problem(self) -> Problem:
        """The violation as an error in a list of problems."""
        return Problem("error", self.code, self.pointer, None, self.message, self.hint)


def object_at(place: Any, *keys: str) -> dict[str, Any]:
    """The object at a path of keys, empty when there is none: for checks of documents that may be invalid elsewhere."""
    for key in keys:
        place = place.get(key) if isinstance(place, dict) else None
    return place if isinstance(place, dict) else {}


def is_valid(name: str, document: Any) -> bool:
    """Whether a document keeps to a schema: the fast way that valid documents take."""
    try:
        return validator(name).is_valid(document)
    except (TypeError, ValueError):  # a set, a key that is no string: values that no JSON file holds
        return False


def violations(name: str, document: Any) -> Iterator[Violation]:
    """The violations of a schema in document order: by keys and items as they stand, an object before its members."""
    if not is_valid(name, document):
        schema = shared_schema(name)
        yield from _walk(_Rules(schema), schema, document, ())


@dataclass(frozen=True)
class _Rules:
    root: Mapping[str, Any]

    def resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """The subschema that a ``$ref`` leads to."""
        while "$ref" in schema:
            place: Any = self.root
            for part in parts_of(schema["$ref"][1:]):
                place = place[part]
            schema = place
        return schema


def _walk(rules: _Rules, schema: Mapping[str, Any], value: Any, path: Path) -> Iterator[Violation]:
    schema = rules.resolved(schema)
    code = _own_violation(schema, value)
    if code:
        yield _mismatch(code, path, wording.found(value, secret=_is_secret(path)), wording.allowed(schema))
    elif isinstance(value, dict):
        for key in schema.get("required", ()):
            if key not in value:
                yield _missing(path, key, value, schema)
        yield from _walk_members(rules, schema, value, path)
    elif isinstance(value, (list, tuple)) and "items" in schema:
        for index, item in enumerate(value):
            yield from _walk(rules, schema["items"], item, (*path, index))


def _walk_members(
    rules: _Rules, schema: Mapping[str, Any], value: Mapping[str, Any], path: Path
) -> Iterator[Violation]:
    known, others = schema.get("properties", {}), schema.get("additionalProperties")
    names = schema.get("propertyNames", {})
    for key, item in value.items():
        if not isinstance(key, str) or _own_violation(names, key):
            yield _mismatch("name", (*path, key), f"the key {wording.quoted(key)}", wording.allowed(names))
        inner = known.get(key, others)
        if inner is not None:
            yield from _walk(rules, inner, item, (*path, key))


def _own_violation(schema: Mapping[str, Any], value: Any) -> str | None:
    """The code of what is wrong with a value itself, its members left aside."""
    types = schema.get("type", ())
    if types and not any(_is(value, kind) for kind in ([types] if isinstance(types, str) else types)):
        return "type"
    if "enum" in schema and value not in schema["enum"]:
        return "enum"
    if isinstance(value, str):
        if len(value) < schema.get("minLength", 0):
            return "range"
        return "format" if "pattern" in schema and not _pattern(schema["pattern"]).search(value) else None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        too_small = "minimum" in schema and value < schema["minimum"]
        return "range" if too_small or ("maximum" in schema and value > schema["maximum"]) else None
    return None


def _is(value: Any, kind: str) -> bool:
    if kind == "integer":
        return (isinstance(value, int) and not isinstance(value, bool)) or (
            isinstance(value, float) and value.is_integer()
        )
    if kind == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, _PYTHON_TYPES[kind])


_PYTHON_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "boolean": bool,
    "object": dict,
    "array": (list, tuple),
    "null": type(None),
}


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    """A pattern of a schema, whose ``$`` does not match before a final line end as Python's does."""
    return re.compile(re.sub(r"\$$", r"\\Z", pattern))


def _mismatch(code: str, path: Path, found: str, allowed: str) -> Violation:
    return Violation(code, path, f"found {found}, allowed: {allowed}", found, allowed)


def _missing(path: Path, key: str, holder: Mapping[str, Any], schema: Mapping[str, Any]) -> Violation:
    from difflib import get_close_matches

    unknown = [other for other in holder if isinstance(other, str) and other not in schema.get("properties", {})]
    close = get_close_matches(key, unknown[:100], n=1)
    hint = f"there is a key {wording.quoted(close[0])}: is it misspelt?" if close else None
    found = f"an object without {json.dumps(key)}"
    allowed = "an object with " + wording.listed([json.dumps(name) for name in schema["required"]], "and")
    return Violation("required", path, f"found {found}, allowed: {allowed}", found, allowed, hint)


def _is_secret(path: Path) -> bool:
    from madengine.core.redact import is_secret_name

    return any(is_secret_name(part) for part in path if isinstance(part, str))
