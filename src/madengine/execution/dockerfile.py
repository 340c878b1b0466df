"""Which Dockerfile of a package a card means, and which of them fit the context.

A card names a prefix: ``docker/x`` means ``docker/x.Dockerfile`` and ``docker/x.<os>.<vendor>.Dockerfile``. Prefixes
may hold dots themselves, so ``docker/x.glm.ubuntu.amd.Dockerfile`` belongs to the card that says ``docker/x.glm``;
only when nothing else is there every ``docker/x.*.Dockerfile`` counts. A Dockerfile may say in one of its first five
lines for what it is made: ``# CONTEXT {'gpu_vendor': 'AMD', 'guest_os': 'UBUNTU'}``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from madengine.core.errors import BuildError

SUFFIX = ".Dockerfile"
HEADER_LINES = 5
HEADER_LENGTH = 4096  # characters; a header is a line that a person wrote
DOCKERFILE_LIMIT = 4 * 1024 * 1024  # bytes

_WORD = "[A-Za-z0-9_-]+"
_HEADER = re.compile(r"^\s*#\s*CONTEXT\b\s*(.*?)\s*$")


@dataclass(frozen=True)
class Header:
    """What a Dockerfile says it is made for. ``line`` is 0 without a header; ``problem`` says why it is unreadable."""

    values: Mapping[str, Any] = field(default_factory=dict)
    line: int = 0
    problem: str = ""


@dataclass(frozen=True)
class Dockerfile:
    """A Dockerfile of the package. ``name`` is its path below the package's root."""

    path: Path
    name: str
    text: str = field(repr=False)
    header: Header = Header()

    @property
    def stem(self) -> str:
        """The file's name without ``.Dockerfile``, as it stands in image names."""
        return self.path.name.removesuffix(SUFFIX)


@dataclass(frozen=True)
class Selection:
    """The Dockerfiles that fit, and the reasons why others could not be judged."""

    chosen: tuple[Dockerfile, ...]
    broken: tuple[BuildError, ...] = ()


def candidate_names(prefix: str, names: Iterable[str]) -> tuple[str, ...]:
    """Those of a folder's file names that a card's prefix (without its folder) means."""
    known = sorted(names)
    if prefix.endswith("Dockerfile") and prefix in known:
        return (prefix,)
    exact = re.compile(rf"{re.escape(prefix)}(\.{_WORD}\.{_WORD})?{re.escape(SUFFIX)}")
    return tuple(name for name in known if exact.fullmatch(name)) or tuple(
        name for name in known if name.startswith(f"{prefix}.") and name.endswith(SUFFIX)
    )


def find_dockerfiles(package: Path, prefix: str) -> tuple[Dockerfile, ...]:
    """The Dockerfiles that a card's ``dockerfile`` means, read and with their headers.

    Raises BuildError naming what lies near when there is none, ConfigurationError when one cannot be read as text.
    """
    relative = inside_package(prefix)
    folder = package / relative.parent
    names = _file_names(folder)
    found = candidate_names(relative.name, names)
    if not found:
        stems = [name.removesuffix(SUFFIX) for name in names if "Dockerfile" in name]
        raise BuildError(
            f"dockerfile {prefix!r}: the package has neither {relative}{SUFFIX} nor {relative}.<os>.<vendor>{SUFFIX}",
            hint=_near(relative, stems, folder),
        )
    return tuple(read_dockerfile(folder / name, (relative.parent / name).as_posix()) for name in found)


def read_dockerfile(path: Path, name: str) -> Dockerfile:
    """Read a Dockerfile. Raises ConfigurationError when it is no text."""
    from madengine.core.documents import read_text

    text = read_text(path, what="Dockerfile", limit=DOCKERFILE_LIMIT)
    return Dockerfile(path=path, name=name, text=text, header=parse_header(text))


def parse_header(text: str) -> Header:
    """The CONTEXT header in the first five lines of a Dockerfile."""
    for number, line in enumerate(text.split("\n", HEADER_LINES)[:HEADER_LINES], start=1):
        if match := _HEADER.match(line):
            values, problem = _read_literal(match[1])
            return Header(values=values, line=number, problem=problem)
    return Header()


def select_dockerfiles(candidates: Sequence[Dockerfile], context: Mapping[str, Any]) -> Selection:
    """The candidates whose header contradicts nothing in the context.

    A Dockerfile with an unreadable header is no candidate; it is told in ``broken``. Raises BuildError when nothing
    fits: what was looked at, what the headers say, and what the context says.
    """
    broken = tuple(_broken(item) for item in candidates if item.header.problem)
    chosen = tuple(item for item in candidates if not item.header.problem and fits(item.header.values, context))
    if not chosen and not broken:
        raise BuildError(_nothing_fits(candidates, context), hint=_what_to_do(candidates[0], context))
    return Selection(chosen, broken)


def fits(header: Mapping[str, Any], context: Mapping[str, Any]) -> bool:
    """Whether every key that both sides have is equal."""
    return all(context[key] == value for key, value in header.items() if key in context)


def _broken(item: Dockerfile) -> BuildError:
    return BuildError(
        f"the CONTEXT header cannot be read: {item.header.problem}",
        where=f"{item.name}:{item.header.line}",
        hint="write it like # CONTEXT {'gpu_vendor': 'AMD', 'guest_os': 'UBUNTU'}",
    )


def _nothing_fits(candidates: Sequence[Dockerfile], context: Mapping[str, Any]) -> str:
    seen = "; ".join(f"{item.name} is for {_shown(item.header.values)}" for item in candidates)
    keys = {key for item in candidates for key in item.header.values}
    return f"no Dockerfile fits {_shown({key: context[key] for key in sorted(keys & context.keys())})}: {seen}"


def _what_to_do(nearest: Dockerfile, context: Mapping[str, Any]) -> str:
    """The two ways on: the script without an image, or an image that was made for something else."""
    import json

    other = {key: value for key, value in nearest.header.values.items() if context.get(key, value) != value}
    return (
        f"run its script without a container: --engine host; or build {nearest.name} all the same: "
        f"--additional-context '{json.dumps(other)}'"
    )


def _shown(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in values.items())


def _read_literal(text: str) -> tuple[Mapping[str, Any], str]:
    """A header's dict and, when it is not one, why."""
    import ast
    import warnings

    if len(text) > HEADER_LENGTH:
        return {}, f"longer than {HEADER_LENGTH} characters"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return {}, "not a dict literal"
    if not isinstance(value, dict):
        return {}, f"a {type(value).__name__} instead of a dict"
    wrong = [key for key, item in value.items() if not isinstance(key, str) or not isinstance(item, (str, int, float))]
    return ({}, f"{wrong[0]!r} is not a name with a plain value") if wrong else (value, "")


def inside_package(prefix: str) -> PurePosixPath:
    """A card's ``dockerfile`` as a normalised path. Raises BuildError when it is empty or leaves the package."""
    if not prefix.strip():
        raise BuildError("the card names no dockerfile", hint='add "dockerfile": "docker/..." or pass --use-image')
    normal = os.path.normpath(prefix)
    if "\0" in prefix or normal == ".." or normal.startswith(("/", "../")):
        raise BuildError(f"dockerfile {prefix!r} leads out of the package", hint="use a path relative to the package")
    return PurePosixPath(normal)


def _file_names(folder: Path) -> tuple[str, ...]:
    try:
        with os.scandir(folder) as entries:
            return tuple(sorted(entry.name for entry in entries if entry.is_file()))
    except (OSError, ValueError):
        return ()


def _near(relative: PurePosixPath, stems: Sequence[str], folder: Path) -> str:
    """What lies where the Dockerfile should be, so that a typo shows."""
    from difflib import get_close_matches

    if not os.path.isdir(folder):  # noqa: PTH112 - Path.is_dir raises for a name that is too long
        return f"there is no folder {relative.parent} in the package"
    close = get_close_matches(relative.name, stems, n=3, cutoff=0.5)
    return f"{relative.parent} has {', '.join(close)}" if close else f"{relative.parent} has no similar Dockerfile"
