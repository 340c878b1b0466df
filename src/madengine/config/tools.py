"""Tools that wrap a model's command: profilers, tracers, environment recorders.

``tools.json`` (madengine's own, a package's, or ``--tools-config``) defines each by name:
``{"tools": {NAME: {"cmd", "env_vars", "pre_scripts", "post_scripts"}}}``. The context's ``tools`` list picks some and
may replace ``cmd`` and add ``env_vars``. Commands stack as prefixes in the order of the list, each distinct one once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from madengine.config.context import env_map
from madengine.core.errors import ConfigurationError


@dataclass(frozen=True)
class Hook:
    """A script before or after the model: its path under ``/myworkspace`` and arguments as shell text."""

    path: str
    args: str = ""


@dataclass(frozen=True)
class ToolStack:
    """What the chosen tools add to a run, in the order they were chosen."""

    commands: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    pre_scripts: tuple[Hook, ...] = ()
    post_scripts: tuple[Hook, ...] = ()


def load_tools(files: Sequence[Path]) -> dict[str, Mapping[str, Any]]:
    """Definitions by name; a later file replaces a tool of an earlier one. Raises ``ConfigurationError``."""
    from madengine.core.documents import load_json

    known: dict[str, Mapping[str, Any]] = {}
    for path in files:
        document = load_json(path, what="tools file")
        tools = document.get("tools") if isinstance(document, dict) else None
        if not isinstance(tools, dict) or not all(isinstance(tool, dict) for tool in tools.values()):
            raise ConfigurationError('a tools file holds {"tools": {NAME: {...}}}', where=str(path))
        for name, tool in tools.items():
            _refuse_other_shapes(tool, ("tools", name), path)
        known.update(tools)
    return known


_SHAPES: Mapping[str, tuple[type, str]] = {
    "cmd": (str, "text"),
    "env_vars": (dict, "an object of variables"),
    "pre_scripts": (list, "a list"),
    "post_scripts": (list, "a list"),
}


def _refuse_other_shapes(tool: Mapping[str, Any], parts: tuple[str, ...], path: Path) -> None:
    from madengine.core.json_positions import pointer_of

    def refusal(message: str, *below: str) -> ConfigurationError:
        return ConfigurationError(message, where=f"{path}#{pointer_of((*parts, *below))}")

    for key, (kind, words) in _SHAPES.items():
        if tool.get(key) is not None and not isinstance(tool[key], kind):
            raise refusal(f"{key} of a tool must be {words}", key)
    for name, value in (tool.get("env_vars") or {}).items():
        if not isinstance(value, (str, int, float)):
            raise refusal("a variable of a tool must be text, a number or a boolean", "env_vars", name)
    for key in ("pre_scripts", "post_scripts"):
        try:
            hooks(tool.get(key))
        except ConfigurationError as error:
            raise refusal(error.message, key) from None


def stack_tools(chosen: Sequence[Mapping[str, Any]], known: Mapping[str, Mapping[str, Any]]) -> ToolStack:
    """Resolve the context's ``tools`` list against the definitions. Raises ``ConfigurationError`` naming the tool."""
    definitions = [_definition(tool, known) for tool in chosen]
    return ToolStack(
        commands=tuple(dict.fromkeys(str(d["cmd"]).strip() for d in definitions if d.get("cmd"))),
        environment={name: value for d in definitions for name, value in env_map(d.get("env_vars")).items()},
        pre_scripts=tuple(hook for d in definitions for hook in hooks(d.get("pre_scripts"))),
        post_scripts=tuple(hook for d in definitions for hook in hooks(d.get("post_scripts"))),
    )


def hooks(entries: Any) -> tuple[Hook, ...]:
    """Pre- or post-scripts as they are written: ``[{"path": ..., "args": ...}]`` or bare paths."""
    found = []
    for entry in entries or ():
        path = entry if isinstance(entry, str) else entry.get("path") if isinstance(entry, dict) else None
        if not path:
            raise ConfigurationError('a pre- or post-script is {"path": "scripts/...", "args": "..."}')
        args = "" if isinstance(entry, str) else str(entry.get("args") or "")
        found.append(Hook(str(path), args))
    return tuple(dict.fromkeys(found))


def _definition(tool: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    name = str(tool.get("name", ""))
    if name not in known:
        raise ConfigurationError(
            f"there is no tool named {name!r}", hint=f"known tools: {', '.join(sorted(known)) or 'none'}"
        )
    base = dict(known[name])
    if tool.get("cmd"):
        base["cmd"] = tool["cmd"]
    base["env_vars"] = {**(base.get("env_vars") or {}), **(tool.get("env_vars") or {})}
    return base
