"""The configuration that a model ran with: the file that its args name with ``--config``, as plain JSON values.

It goes to perf_super beside the numbers. A file that is missing or cannot be read never fails a run: there is no
configuration then, and a note that says why.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from madengine.core.documents import parse_json, printable, read_text
from madengine.core.errors import ConfigurationError
from madengine.core.redact import MASK, is_secret_name
from madengine.core.shell import split_words

LIMIT = 1 << 20  # bytes of a file; it is repeated with every row
MAX_VALUES = 50_000  # YAML can say a lot in few bytes
_MAX_DEPTH = 50
_WHAT = "configuration of the model"


@dataclass(frozen=True)
class Configs:
    """``value`` is a list of objects for a CSV, whatever the document is for JSON and YAML, None when there is none.

    ``note`` says why there is none although args name a file; empty otherwise.
    """

    value: Any = None
    note: str = ""


class _TooMuchError(ConfigurationError):
    """The document is larger than it looks."""


def load_configs(args: str, script_folder: Path, package: Path, *, redact: Callable[[str], str] = str) -> Configs:
    """Read the file that ``--config`` names in a card's ``args``.

    It is looked for below the script's folder, in its ``configs``, then from the package's root; nothing outside the
    package is read. ``redact`` goes over every text, and values under a secret's name are masked.
    """
    try:
        name = config_name(args)
        if not name:
            return Configs()
        path = _find(name, script_folder, package)
        if path is None:
            return Configs(note=f"--config {printable(name)} names no file in {script_folder}")
        return Configs(_Plain(redact).of(_read(path)))
    except ConfigurationError as error:
        return Configs(note=f"the file of --config was not taken over: {error}")


def config_name(args: str) -> str:
    """The last value of ``--config`` in ``args``, empty when there is none."""
    words = split_words(args)
    name = ""
    for index, word in enumerate(words):
        if word == "--config" and index + 1 < len(words):
            name = words[index + 1]
        elif word.startswith("--config="):
            name = word.partition("=")[2]
    return name


def _find(name: str, script_folder: Path, package: Path) -> Path | None:
    root = package.resolve()
    for place in (script_folder / name, script_folder / "configs" / name, package / name):
        try:
            path = place.resolve()
            if path.is_relative_to(root) and path.is_file():
                return path
        except (OSError, ValueError, RuntimeError):  # a name that is no path, a loop of links
            continue
    return None


def _read(path: Path) -> Any:
    text = read_text(path, what=_WHAT, limit=LIMIT)
    kind = path.suffix.lower()
    if kind == ".json":
        return parse_json(text, source=str(path), what=_WHAT)
    if kind == ".csv":
        return _rows(text, path)
    if kind in (".yaml", ".yml"):
        return _yaml(text, path)
    raise ConfigurationError("is no CSV, JSON or YAML file by its name", where=str(path))


def _rows(text: str, path: Path) -> list[dict[str, str]]:
    """The rows by column; blank lines are skipped, and cells without a column stand under ``unnamed``."""
    try:
        reader = csv.DictReader(io.StringIO(text, newline=""), restkey="unnamed", restval="")
        return [{name.strip(): value for name, value in row.items()} for row in reader if any(row.values())]
    except csv.Error as error:
        raise ConfigurationError(f"cannot be read as CSV: {error}", where=str(path)) from error


def _yaml(text: str, path: Path) -> Any:
    try:
        import yaml
    except ImportError:
        hint = "pip install 'madengine[yaml]'"
        raise ConfigurationError("is YAML, and PyYAML is not installed", where=str(path), hint=hint) from None
    try:
        return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:
        reason = " ".join(str(error).split())
        raise ConfigurationError(f"cannot be read as YAML: {printable(reason)}", where=str(path)) from error


class _Plain:
    """Turns a document into what JSON can say, within bounds and without secrets."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        self._redact = redact
        self._left = MAX_VALUES

    def of(self, value: Any, depth: int = 0) -> Any:
        """The value as dicts with text keys, lists, texts, finite numbers, booleans and None."""
        self._left -= 1
        if self._left < 0 or depth > _MAX_DEPTH:
            raise _TooMuchError(f"holds more than {MAX_VALUES} values or is nested more than {_MAX_DEPTH} deep")
        if isinstance(value, Mapping):
            return dict(self._members(value, depth))
        if isinstance(value, (list, tuple, set, frozenset)):
            return [self.of(item, depth + 1) for item in value]
        if value is None or isinstance(value, (bool, int)) or (isinstance(value, float) and math.isfinite(value)):
            return value
        return self._redact(value.isoformat() if isinstance(value, date) else str(value))

    def _members(self, value: Mapping[Any, Any], depth: int) -> Iterator[tuple[str, Any]]:
        for key, member in value.items():
            name = self._redact(str(key))
            yield name, MASK if member and is_secret_name(name) else self.of(member, depth + 1)
