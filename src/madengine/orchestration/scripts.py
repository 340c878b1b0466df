"""Finding a card's script in its package."""

from __future__ import annotations

import os
from pathlib import Path

from madengine.catalog.card import ModelCard
from madengine.core.errors import DiscoveryError
from madengine.execution.spec import ScriptPlan

INTERPRETERS = {".py": ("python3",)}
FOLDER_SCRIPT = "run.sh"  # what a folder means


def script_plan(card: ModelCard, package: Path) -> ScriptPlan:
    """The script, its folder and what runs it. Raises ``DiscoveryError`` when the package does not have it."""
    written = card.text("scripts")
    if not written:
        raise DiscoveryError(f"the card of {card.name} names no script", hint='add "scripts": "scripts/.../run.sh"')
    root = package.resolve()
    path = _inside(root, written, card.name)
    if path.is_dir():
        path = path / FOLDER_SCRIPT
    if not os.path.isfile(path):  # noqa: PTH113 - Path.is_file raises where it may not look
        raise DiscoveryError(f"the package has no {path.relative_to(root)}", hint=_near(path, root))
    return ScriptPlan(path.parent, path.name, INTERPRETERS.get(path.suffix, ("bash",)), card.text("args"))


def _inside(root: Path, written: str, model: str) -> Path:
    """The script's path, links followed. Raises ``DiscoveryError`` for one that is no path or leaves the package."""
    try:
        path = Path(os.path.realpath(root / written))  # Path.resolve raises for links in a circle
        path.is_dir()
    except (OSError, ValueError) as error:
        raise DiscoveryError(f"the script of {model} is no path of a file: {written[:100]!r}") from error
    if not path.is_relative_to(root):
        raise DiscoveryError(f"the script of {model} lies outside its package: {written}")
    return path


def _near(path: Path, root: Path) -> str:
    """What lies where the script should be, so that a typo shows."""
    from difflib import get_close_matches

    folder = path.parent
    if not folder.is_dir():
        return f"there is no folder {folder.relative_to(root)} in {root}"
    names = sorted(entry.name for entry in folder.iterdir())
    close = get_close_matches(path.name, names, n=3) or names[:5]
    return f"{folder.relative_to(root)} holds: {', '.join(close) or 'nothing'}"
