"""Which images a Dockerfile builds upon, read from its text.

Only what decides the base is understood: parser directives, comments, continuation lines, here-documents, ARG and FROM
with ``$NAME``, ``${NAME}`` and the forms with ``-`` and ``+``
(https://docs.docker.com/reference/dockerfile/#environment-replacement).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

BASE_ARGUMENT = "BASE_DOCKER"

MAX_VALUE = 4096  # characters of an expanded value; no image name is longer, and `ARG B=$A$A` may not explode

_PREDEFINED = {
    f"{side}{part}" for side in ("BUILD", "TARGET") for part in ("PLATFORM", "OS", "OSVERSION", "ARCH", "VARIANT")
}
_DIRECTIVE = re.compile(r"^#\s*(\w+)\s*=\s*(\S+)\s*$")
_HEREDOC = re.compile(r"(?:^|\s)\d*<<-?(['\"]?)([A-Za-z_]\w*)\1(?=\s|$)")
_VARIABLE = re.compile(r"\$\{(\w+)(?:(:?[-+?])((?:[^{}$]|\$(?!\{))*))?\}|\$(\w+)")


@dataclass(frozen=True)
class Instruction:
    """One instruction: the line it starts on, its keyword in upper case, the rest on one line."""

    line: int
    keyword: str
    rest: str


@dataclass(frozen=True)
class Bases:
    """What a Dockerfile builds upon.

    ``base_docker`` is the base that results name. ``images`` are the images that all its stages come from, in order,
    without ``scratch``. ``arguments`` are all declared build arguments with their default, None when they have none.
    ``unset`` are ``(line, text)`` of FROM instructions whose image is empty because an argument has no value.
    """

    base_docker: str = ""
    images: tuple[str, ...] = ()
    arguments: Mapping[str, str | None] = field(default_factory=dict)
    unset: tuple[tuple[int, str], ...] = ()


def instructions(text: str) -> Iterator[Instruction]:
    """The instructions of a Dockerfile."""
    lines = text.removeprefix("\ufeff").splitlines()
    escape = _escape_character(lines)
    number = 0
    while number < len(lines):
        start = number
        parts: list[str] = []
        while number < len(lines):
            line = lines[number]
            number += 1
            if _is_comment(line) or not line.strip():
                start = start if parts else number
                continue
            stripped = line.rstrip()
            parts.append(stripped.removesuffix(escape))
            if not stripped.endswith(escape):
                break
        words = "".join(parts).split(None, 1)
        if words:
            rest = words[1].strip() if len(words) > 1 else ""
            yield Instruction(start + 1, words[0].upper(), rest)
            number = _after_heredocs(lines, number, words[0].upper(), rest)


def bases(text: str, build_args: Mapping[str, str]) -> Bases:
    """Read the bases of a Dockerfile as they are with these build arguments."""
    reader = _Reader(build_args)
    for instruction in instructions(text):
        if instruction.keyword == "ARG":
            reader.declare(instruction.rest)
        elif instruction.keyword == "FROM":
            reader.enter_stage(instruction)
    return reader.result()


class _Reader:
    """Follows the arguments and stages of one Dockerfile from top to bottom."""

    def __init__(self, build_args: Mapping[str, str]) -> None:
        self._given = build_args
        self._values: dict[str, str] = {}  # arguments that FROM instructions see
        self._defaults: dict[str, str | None] = {}
        self._stages: set[str] = set()
        self._count = 0
        self._last_base = ""
        self._images: list[str] = []
        self._unset: list[tuple[int, str]] = []

    def declare(self, rest: str) -> None:
        for word in _words(rest):
            if word.startswith("#"):
                return
            name, equals, default = word.partition("=")
            if equals or name not in self._defaults:
                self._defaults.setdefault(name, None)
                if equals and self._defaults[name] is None:
                    self._defaults[name] = expand(default, {**self._values, **self._given})
            if self._count == 0:
                self._declare_global(name, default if equals else None)

    def _declare_global(self, name: str, default: str | None) -> None:
        if name in self._given:
            self._values[name] = self._given[name]
        elif default is not None:
            self._values[name] = expand(default, self._values)

    def enter_stage(self, instruction: Instruction) -> None:
        words = [word for word in instruction.rest.split() if not word.startswith("--")]
        written = words[0] if words else ""
        image = expand(written, self._values).strip("\"'")
        self._count += 1
        if image.lower() not in self._stages:
            self._enter_image(instruction, written, image)
        if len(words) >= 3 and words[1].upper() == "AS":
            self._stages.add(words[2].lower())

    def _enter_image(self, instruction: Instruction, written: str, image: str) -> None:
        if _uses_predefined(written):
            image = ""
        elif not image or image.startswith(":") or image.endswith((":", "/")):
            self._unset.append((instruction.line, written))
            image = ""
        self._last_base = image or self._last_base
        if image and image != "scratch" and image not in self._images:
            self._images.append(image)

    def result(self) -> Bases:
        named = self._given.get(BASE_ARGUMENT) or self._values.get(BASE_ARGUMENT) or self._defaults.get(BASE_ARGUMENT)
        return Bases(named or self._last_base, tuple(self._images), dict(self._defaults), tuple(self._unset))


def expand(text: str, values: Mapping[str, str]) -> str:
    """Replace variables as the builder does; an unknown one is empty, a value that grows too long too."""
    for _ in range(4):  # `${A:-${B}}`: the innermost first
        changed = _VARIABLE.sub(lambda match: _value(match, values), text)
        if changed == text or len(changed) > MAX_VALUE:
            break
        text = changed
    return changed if len(changed) <= MAX_VALUE else ""


def _value(match: re.Match[str], values: Mapping[str, str]) -> str:
    name, operator, word = match[1] or match[4], match[2] or "", match[3] or ""
    value = values.get(name)
    present = bool(value) if operator.startswith(":") else value is not None
    if operator.endswith("-"):
        return value or "" if present else word
    if operator.endswith("+"):
        return word if present else ""
    return value or ""


def _uses_predefined(written: str) -> bool:
    return any((match[1] or match[4]) in _PREDEFINED for match in _VARIABLE.finditer(written))


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def _escape_character(lines: list[str]) -> str:
    for line in lines:
        match = _DIRECTIVE.match(line.strip())
        if not match:
            break
        if match[1].lower() == "escape" and match[2] in ("\\", "`"):
            return match[2]
    return "\\"


def _after_heredocs(lines: list[str], number: int, keyword: str, rest: str) -> int:
    """The line after the bodies of an instruction's here-documents; a body without an end is none."""
    if keyword not in ("RUN", "COPY", "ADD"):
        return number
    for match in _HEREDOC.finditer(rest):
        end = next((at for at in range(number, len(lines)) if lines[at].strip() == match[2]), None)
        number = number if end is None else end + 1
    return number
