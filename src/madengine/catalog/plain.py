"""A quick yes for cards that obviously keep to their schema.

Loading the schema and its validator costs a third of the time in which ten thousand cards are listed, and usual cards
are texts and lists of texts. So only a file in which some card is not obviously fine is given to the validator. A test
holds this list against ``model_card.schema.json``: what passes here passes there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

TEXTS = frozenset(
    (
        "name",  # not empty: tested for the card as a whole
        "dockerfile",
        "dockercontext",
        "scripts",
        "url",
        "cred",
        "owner",
        "data",
        "training_precision",
        "args",
        "multiple_results",
        "skip_gpu_arch",
        "additional_docker_run_options",
    )
)
"""Keys whose value may be any text."""

_COUNTS = frozenset(map(str, range(-1, 129)))
_TEXT_ONLY = {str}


def _texts(value: Any) -> bool:
    return type(value) is list and set(map(type, value)) <= _TEXT_ONLY


def _variables(value: Any) -> bool:
    return type(value) is dict and set(map(type, value.values())) <= _TEXT_ONLY and all(map(_is_variable, value))


def _is_variable(name: str) -> bool:
    return name.isascii() and name.isidentifier()


def _is_plain_setting(setting: tuple[str, Any]) -> bool:
    key, value = setting
    if key == "launcher":
        return type(value) is str
    return key in ("nnodes", "nproc_per_node") and type(value) is int and 1 <= value <= 1024


TESTS: dict[str, Callable[[Any], bool]] = {
    "n_gpus": lambda value: value in _COUNTS if type(value) is str else type(value) is int and -1 <= value <= 128,
    "timeout": lambda value: type(value) is int and abs(value) <= 1_000_000_000,
    "tags": _texts,
    "env_vars": _variables,
    "deprecated": lambda value: type(value) is bool,
    "distributed": lambda value: type(value) is dict and all(map(_is_plain_setting, value.items())),
}
"""Key -> whether a value is obviously allowed for it."""

OTHERS = frozenset(
    (
        "expected_results",
        "docker_build_arg",
        "slurm",
        "log_error_pattern_scan",
        "log_error_benign_patterns",
        "log_error_patterns",
    )
)
"""Keys of the schema that always need the validator. Keys that the schema does not know may hold anything."""


def obviously_fine(documents: Sequence[Any]) -> bool:
    """Whether every document is a card that needs no closer look, neither at its values nor at its spelling.

    False says nothing.
    """
    unknown: set[str] = set()
    return all(_is_plain(card, unknown) for card in documents) and not (unknown and _has_misspelt(unknown))


def _has_misspelt(unknown: set[str]) -> bool:
    from madengine.schemas.misspelt import COMPARED, closest

    known = {*TEXTS, *TESTS, *OTHERS}
    return len(unknown) > COMPARED or any(closest(key, known) for key in unknown)


def _is_plain(card: Any, unknown: set[str]) -> bool:
    """Whether the values of a card are obviously allowed; gathers its keys that the schema does not know."""
    if type(card) is not dict or not card.get("name"):
        return False
    for key, value in card.items():
        if key in TEXTS:
            if type(value) is not str:
                return False
        elif key in TESTS:
            if not TESTS[key](value):
                return False
        elif key in OTHERS:
            return False
        else:
            unknown.add(key)
    return True
