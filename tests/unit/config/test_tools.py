"""Tools: definitions by name, stacked as prefixes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from madengine.config.tools import Hook, hooks, load_tools, stack_tools
from madengine.core.errors import ConfigurationError

KNOWN: dict[str, dict[str, Any]] = {
    "trace": {"cmd": "bash trace.sh", "env_vars": {"T": "1"}, "pre_scripts": [{"path": "a.sh", "args": "x y"}]},
    "prof": {"cmd": "prof --fast", "post_scripts": ["b.sh"]},
    "same": {"cmd": "prof --fast"},
}


def test_commands_stack_in_order_and_a_repeated_one_counts_once() -> None:
    stack = stack_tools([{"name": "prof"}, {"name": "trace"}, {"name": "same"}], KNOWN)
    assert stack.commands == ("prof --fast", "bash trace.sh")


def test_the_context_replaces_a_command_and_adds_variables() -> None:
    stack = stack_tools([{"name": "trace", "cmd": "mine", "env_vars": {"U": 2}}], KNOWN)
    assert stack.commands == ("mine",)
    assert stack.environment == {"T": "1", "U": "2"}


def test_hooks_keep_their_arguments() -> None:
    stack = stack_tools([{"name": "trace"}, {"name": "prof"}], KNOWN)
    assert stack.pre_scripts == (Hook("a.sh", "x y"),)
    assert stack.post_scripts == (Hook("b.sh"),)


def test_an_unknown_tool_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match=r"no tool named 'rocprof'.*prof, same, trace"):
        stack_tools([{"name": "rocprof"}], KNOWN)


@pytest.mark.parametrize("entry", [3, {}, {"args": "x"}, None])
def test_a_hook_without_a_path_is_an_error(entry: object) -> None:
    with pytest.raises(ConfigurationError):
        hooks([entry])


def test_a_later_file_replaces_a_tool_of_an_earlier_one(tmp_path: Path) -> None:
    first, second = tmp_path / "1.json", tmp_path / "2.json"
    first.write_text(json.dumps({"tools": {"a": {"cmd": "1"}, "b": {"cmd": "1"}}}))
    second.write_text(json.dumps({"tools": {"b": {"cmd": "2"}}}))
    assert load_tools([first, second]) == {"a": {"cmd": "1"}, "b": {"cmd": "2"}}


@pytest.mark.parametrize("document", [[], {}, {"tools": []}, {"tools": {"a": 3}}])
def test_a_tools_file_of_another_shape_is_refused_with_its_path(tmp_path: Path, document: object) -> None:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(document))
    with pytest.raises(ConfigurationError, match=r"tools\.json"):
        load_tools([path])
