"""What is wrong with a package: one value per broken card, file or script."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from madengine.catalog.card import ModelCard
from madengine.core.json_positions import parts_of


class ProblemKind(Enum):
    """What a problem costs."""

    FILE = "file"  # none of the file's cards can be listed
    CARD = "card"  # this card cannot be listed
    DUPLICATE = "duplicate"  # this card is hidden by an earlier one with the same name
    REMARK = "remark"  # the card is listed all the same


@dataclass(frozen=True)
class CardProblem:
    """Something wrong in a package.

    ``file`` is the file (or folder) at fault, ``pointer`` the JSON pointer into it. ``position`` (``:12:3``) stands for
    a pointer when the file is not even a document. ``card`` is what can be told of a broken card (its name and tags),
    so that asking for it can be answered with what is wrong with it. ``scope`` is the folder under ``scripts/`` that
    the file belongs to.
    """

    kind: ProblemKind
    file: Path
    message: str
    pointer: str = ""
    line: int | None = None
    hint: str | None = None
    card: ModelCard | None = None
    scope: str = ""
    position: str = ""

    @property
    def is_error(self) -> bool:
        """Whether something is not listed because of it."""
        return self.kind is not ProblemKind.REMARK

    @property
    def where(self) -> str:
        """``models.json[3].n_gpus (line 40)``, the file relative to the current directory when it lies below it."""
        line = f" (line {self.line})" if self.line is not None else ""
        return f"{short_path(self.file)}{self.position}{place_of(self.pointer)}{line}"

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}"
        return f"{text} ({self.hint})" if self.hint else text


def short_path(path: Path) -> str:
    """``path`` as a person in the current directory would type it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def place_of(pointer: str) -> str:
    """The readable place of a JSON pointer into an array of cards: ``/3/env_vars/A`` gives ``[3].env_vars.A``."""
    return "".join(f"[{part}]" if part.isdecimal() else f".{part}" for part in parts_of(pointer))


def index_of(pointer: str) -> int | None:
    """The index of the card that a JSON pointer into an array of cards leads to, None when it leads to none."""
    first = pointer.split("/")[1:2]
    return int(first[0]) if first and first[0].isdecimal() and len(first[0]) < 10 else None
