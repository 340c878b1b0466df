"""The violations of a schema, in the order in which a reader of the document meets them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from madengine.core.json_positions import pointer_of
from madengine.schemas import wording
from madengine.schemas.loader import shared_schema, validator
from madengine.schemas.problems import Problem

if TYPE_CHECKING:
    import jsonschema_rs

Path = tuple[str | int, ...]


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


def violations(name: str, document: Any) -> list[Violation]:
    """All violations of a schema in document order: by the order of keys and items, an object before its members."""
    schema = shared_schema(name)
    try:
        errors = list(validator(name).iter_errors(document))
    except (TypeError, ValueError) as error:
        return [Violation("type", (), f"holds a value that JSON does not know: {error}")]
    return in_document_order(document, [_violation(schema, error) for error in errors])


def in_document_order(document: Any, unordered: Iterable[Violation]) -> list[Violation]:
    """Violations by their place in the document; two at the same place keep their order."""
    order = _Order(document)
    return sorted(unordered, key=lambda violation: order.of(violation.path))


class _Order:
    """Turns paths into tuples of ordinals, so that keys and indices compare as they stand in the document."""

    def __init__(self, document: Any) -> None:
        self._document = document
        self._ordinals: dict[int, dict[str, int]] = {}

    def of(self, path: Path) -> tuple[int, ...]:
        return tuple(self._walk(path))

    def _walk(self, path: Path) -> Iterator[int]:
        place = self._document
        for part in path:
            if isinstance(place, list) and isinstance(part, int):
                yield part
                place = place[part] if part < len(place) else None
            elif isinstance(place, dict):
                ordinals = self._ordinals.setdefault(id(place), {})
                if not ordinals:
                    ordinals.update({key: number for number, key in enumerate(place)})
                yield ordinals.get(str(part), len(ordinals))
                place = place.get(part)


def _violation(schema: Mapping[str, Any], error: jsonschema_rs.ValidationError) -> Violation:
    path: Path = tuple(error.instance_path)
    kind: Any = error.kind
    rules = _subschema(schema, error.schema_path)
    if kind.name == "required":
        return _missing(path, str(kind.property), error.instance, rules)
    if kind.name == "propertyNames":
        key = str(kind.error.instance)
        return _mismatch("name", (*path, key), f"the key {wording.quoted(key)}", wording.allowed(rules))
    found = wording.found(error.instance, secret=_is_secret(path))
    return _mismatch(_CODES.get(kind.name, kind.name), path, found, wording.allowed(rules))


_CODES = {"minimum": "range", "maximum": "range", "minLength": "range", "pattern": "format"}


def _mismatch(code: str, path: Path, found: str, allowed: str) -> Violation:
    return Violation(code, path, f"found {found}, allowed: {allowed}", found, allowed)


def _missing(path: Path, key: str, holder: Any, rules: Mapping[str, Any]) -> Violation:
    close = get_close_matches(key, [other for other in holder if other not in rules.get("properties", {})], n=1)
    hint = f"there is a key {wording.quoted(close[0])}: is it misspelt?" if close else None
    found = f"an object without {json.dumps(key)}"
    allowed = "an object with " + wording.listed([json.dumps(name) for name in rules["required"]], "and")
    return Violation("required", path, f"found {found}, allowed: {allowed}", found, allowed, hint)


def _subschema(schema: Any, path: Iterable[str | int]) -> Mapping[str, Any]:
    """The subschema whose keyword (the last part of the path) failed."""
    parts = list(path)
    for part in parts[:-1]:
        schema = schema[part]
    rules: Mapping[str, Any] = schema
    return rules


def _is_secret(path: Path) -> bool:
    from madengine.core.redact import is_secret_name

    return any(is_secret_name(part) for part in path if isinstance(part, str))
