"""Evidence as JSON and back, so that another process can judge what this one saw.

Reading is strict: every key must be there and none besides, since evidence that lost a part would be judged better than
it was. The shape follows the dataclasses of :mod:`madengine.verdict.evidence`; a change to them is a new ``version``.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Any

from madengine.core.errors import ValidationError
from madengine.verdict.evidence import Evidence

KIND = "madengine-evidence"
VERSION = 2

# JSON has no way to write these, so they travel as text.
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_SCALARS: dict[type, str] = {str: "a string", int: "an integer", bool: "true or false", float: "a number"}


def to_json(evidence: Evidence) -> dict[str, Any]:
    """Evidence as plain JSON values: ``{"kind", "version"}`` and one key per field."""
    return {"kind": KIND, "version": VERSION, **_plain(evidence)}


def from_json(document: object, source: str | None = None) -> Evidence:
    """Evidence from what :func:`to_json` wrote; ``source`` names the file in errors.

    Raises :class:`ValidationError` for anything else: a foreign document, one of another version, one that lacks a key
    or holds a value of the wrong type.
    """
    if not isinstance(document, Mapping):
        raise _wrong("", document, "an object", source)
    for key, allowed in (("kind", KIND), ("version", VERSION)):
        if document.get(key) != allowed or isinstance(document.get(key), bool):
            raise _wrong(f"/{key}", document.get(key), repr(allowed), source)
    body = {key: value for key, value in document.items() if key not in ("kind", "version")}
    return typing.cast(Evidence, _object(Evidence, body, "", source))


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


@cache
def _fields(kind: type) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _object(kind: type, value: object, at: str, source: str | None) -> object:
    if not isinstance(value, Mapping):
        raise _wrong(at, value, "an object", source)
    fields = _fields(kind)
    for name in fields:
        if name not in value:
            raise _error(f"'{name}' is missing", f"{at}/{name}", source, found="nothing", allowed="every field")
    for name in value:
        if name not in fields:
            raise _error(
                f"{_shortened(name)} is no field of evidence",
                at,
                source,
                found=_shortened(name),
                allowed=", ".join(fields),
            )
    return kind(**{name: _read(hint, value[name], f"{at}/{name}", source) for name, hint in fields.items()})


def _read(hint: Any, value: object, at: str, source: str | None) -> object:
    """A value of the type that ``hint`` describes."""
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        if value is None:
            return None
        (hint,) = (kind for kind in typing.get_args(hint) if kind is not type(None))
    if typing.get_origin(hint) is tuple:
        return _tuple(typing.get_args(hint), value, at, source)
    if dataclasses.is_dataclass(hint):
        return _object(typing.cast(type, hint), value, at, source)
    if issubclass(hint, Enum):
        return _choice(hint, value, at, source)
    return _scalar(hint, value, at, source)


def _tuple(kinds: tuple[Any, ...], value: object, at: str, source: str | None) -> tuple[object, ...]:
    if not isinstance(value, list):
        raise _wrong(at, value, "an array", source)
    if kinds[-1] is ...:
        kinds = (kinds[0],) * len(value)
    if len(value) != len(kinds):
        raise _wrong(at, value, f"an array of {len(kinds)}", source)
    return tuple(_read(kinds[i], item, f"{at}/{i}", source) for i, item in enumerate(value))


def _choice(kind: type[Enum], value: object, at: str, source: str | None) -> Enum:
    for member in kind:
        if member.value == value:
            return member
    raise _wrong(at, value, " or ".join(repr(member.value) for member in kind), source)


def _scalar(kind: type, value: object, at: str, source: str | None) -> object:
    """A string, number or boolean; Python takes True for an integer, JSON does not. No count or code needs 64 bits."""
    if kind is float:
        return _number(value, at, source)
    if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)) and not _is_huge(value):
        return value
    raise _wrong(at, value, _SCALARS[kind], source)


def _number(value: object, at: str, source: str | None) -> float:
    if isinstance(value, str) and value in _NOT_FINITE:
        return _NOT_FINITE[value]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise _wrong(at, value, "a finite number, or 'nan', 'inf', '-inf'", source)


def _wrong(at: str, value: object, allowed: str, source: str | None) -> ValidationError:
    found = "nothing" if value is None else _shortened(value)
    return _error(f"found {found} where {allowed} belongs", at, source, found=found, allowed=allowed)


def _is_huge(value: object) -> bool:
    return isinstance(value, int) and value.bit_length() >= 64


def _shortened(value: object) -> str:
    """A value in few words; a container by its kind alone, since it may be as large as the document."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list):
        return f"an array of {len(value)}"
    if _is_huge(value):
        return "a huge integer"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _error(message: str, at: str, source: str | None, *, found: str, allowed: str) -> ValidationError:
    hint = "this is not evidence that this version of madengine wrote; run the model again"
    return ValidationError(message, source=source, pointer=at, found=found, allowed=allowed, hint=hint)
