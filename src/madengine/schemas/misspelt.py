"""Keys that are unknown where they stand but nearly spell one that is known there.

Unknown keys are allowed everywhere, so a typo would pass in silence and its setting would be missing an hour later on
64 nodes. A document is walked along the keys that its schema describes; maps whose keys are free (variables, mounts,
build arguments) are not described and not looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from madengine.core.json_positions import parts_of, pointer_of
from madengine.schemas.problems import PROBLEM_LIMIT, Problem

CODE = "misspelt-key"
CLOSE = 0.8  # difflib's ratio from which two words are nearly the same: one wrong letter in five
LONGEST = 60  # characters of a key that is compared; no known key comes near
COMPARED = 1000  # different unknown keys of one document that are compared, which takes a quarter of a second
OWN_WORD = 3  # letters from which what is put before or after a known key is a word that makes it another key
_REMARKS = ("_", "#", "/", "$")  # how keys begin that are meant for people or editors

Path = tuple[str | int, ...]
Strange = tuple[Path, frozenset[str]]


@dataclass(frozen=True)
class Shape:
    """The keys that a schema describes: ``known`` of the object itself, and where further objects lie.

    ``members`` are those known keys below which keys are described, ``others`` is the shape below every other key,
    ``items`` that of the entries of a list.
    """

    known: frozenset[str]
    members: tuple[tuple[str, Shape], ...] = ()
    others: Shape | None = None
    items: Shape | None = None


def shape_of(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Shape | None:
    """The shape of a schema, None when it describes no key. ``root`` is what a ``$ref`` is looked up in."""
    while "$ref" in schema:
        place: Any = root
        for part in parts_of(schema["$ref"][1:]):
            place = place[part]
        schema = place
    known = schema.get("properties", {})
    members = [(key, shape_of(inner, root)) for key, inner in known.items()]
    below = (schema.get(word) for word in ("additionalProperties", "items"))
    others, items = (None if inner is None else shape_of(inner, root) for inner in below)
    deeper = tuple((key, shape) for key, shape in members if shape is not None)
    return Shape(frozenset(known), deeper, others, items) if known or others or items else None


@cache
def schema_shape(name: str) -> Shape:
    """The shape of one of madengine's schemas, by its short name."""
    from madengine.schemas.loader import shared_schema

    schema = shared_schema(name)
    return shape_of(schema, schema) or Shape(frozenset())


def misspelt_keys(shape: Shape, document: Any, path: Path = ()) -> list[Problem]:
    """A warning for each misspelt key of a document, which lies at ``path`` of its file. No value is quoted."""
    strange: list[Strange] = []
    _collect(shape, document, path, strange)
    return _told(strange) if strange else []


def _told(strange: list[Strange]) -> list[Problem]:
    meant: dict[tuple[str, frozenset[str]], str | None] = {}
    found: list[Problem] = []
    for place, known in strange:
        question = (str(place[-1]), known)
        if question not in meant and len(meant) < COMPARED:
            meant[question] = closest(*question)
        if (close := meant.get(question)) and len(found) < PROBLEM_LIMIT:
            found.append(_problem(place, close))
    return found


def _problem(place: Path, close: str) -> Problem:
    from madengine.schemas.wording import quoted

    message = f"unknown key {quoted(place[-1])}"
    return Problem("warning", CODE, pointer_of(place), None, message, f'did you mean "{close}"?')


def _collect(shape: Shape, value: Any, path: Path, strange: list[Strange]) -> None:
    """Gather the unknown keys. Called for every object of a manifest, so usual objects cost one comparison of sets."""
    if isinstance(value, dict):
        if shape.known and not value.keys() <= shape.known:
            strange += [((*path, key), shape.known) for key in value if key not in shape.known]
        for key, inner in shape.members:
            if member := value.get(key):
                _collect(inner, member, (*path, key), strange)
        if shape.others:
            for key, member in value.items():
                if key not in shape.known:
                    _collect(shape.others, member, (*path, key), strange)
    elif isinstance(value, list) and shape.items:
        for index, item in enumerate(value):
            _collect(shape.items, item, (*path, index), strange)


def closest(key: str, known: Collection[str]) -> str | None:
    """The known key that ``key`` is nearly, None when there is none.

    Nearly: the same letters in another order, or a ratio of ``CLOSE``; case and separators do not count. A known key
    with a word of its own before or after it (``base_docker_sha``) is another key.
    """
    if key.startswith(_REMARKS) or len(key) > LONGEST:
        return None
    flat = _flat(key)
    names = {_flat(name): name for name in sorted(known) if not _is_extended(key, name)}
    for same, name in names.items():
        if sorted(same) == sorted(flat):
            return name
    candidates = [name for name in names if _may_be_close(flat, name)]
    if not candidates:
        return None
    from difflib import get_close_matches

    return next((names[name] for name in get_close_matches(flat, candidates, n=1, cutoff=CLOSE)), None)


def _flat(key: str) -> str:
    return "".join(letter for letter in key.casefold() if letter not in "-_ .")


def _may_be_close(key: str, name: str) -> bool:
    """Whether the letters in common allow the ratio at all: most keys fail this, and then difflib is not loaded."""
    common = sum(min(key.count(letter), name.count(letter)) for letter in set(key))
    return 2 * common >= CLOSE * (len(key) + len(name))


def _is_extended(key: str, name: str) -> bool:
    added = len(key) - len(name)
    return added > OWN_WORD and (key.startswith(f"{name}_") or key.endswith(f"_{name}"))
