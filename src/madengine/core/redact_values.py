"""Taking secrets out of frozen values: every text in a dataclass and in its tuples, however deep."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any, TypeVar

from madengine.core.redact import Redactor

Value = TypeVar("Value")


def without_secrets_in(value: Value, redactor: Redactor) -> Value:
    """``value`` with every secret in its texts replaced; the same object when there is none."""
    # One look at all of it settles the usual case; it may see a secret where two texts meet, never overlook one.
    everything = "\n".join(_texts(value))
    return value if redactor.text(everything) == everything else _cleaned(value, redactor)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Enum):
        return
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _texts(item)
    elif is_dataclass(value):
        for field in fields(value):
            yield from _texts(getattr(value, field.name))


def _cleaned(value: Any, redactor: Redactor) -> Any:
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return redactor.text(value)
    if isinstance(value, tuple):
        return tuple(_cleaned(item, redactor) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{f.name: _cleaned(getattr(value, f.name), redactor) for f in fields(value)})
    return value
