"""Finding the line of a JSON pointer in the text it came from."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from madengine.core import json_positions as positions

TEXT = """{
  "a": {"x": 1, "y": [
      1,
      {"z": "[{\\"a\\": 1"},
      "}"
  ]},
  "b/c~d": 5,
  "\\u0065": [
    [], [7]
  ], "f": null
}"""


@pytest.mark.parametrize(
    ("pointer", "line"),
    [
        ("", 1),
        ("/a", 2),
        ("/a/x", 2),
        ("/a/y/0", 3),
        ("/a/y/1", 4),
        ("/a/y/1/z", 4),
        ("/a/y/2", 5),
        ("/b~1c~0d", 7),
        ("/e", 8),
        ("/e/1", 9),
        ("/e/1/0", 9),
        ("/f", 10),
        ("/a/y/1/missing/deep", 4),
        ("/nowhere", 1),
    ],
)
def test_a_pointer_leads_to_its_line(pointer: str, line: int) -> None:
    assert positions.lines_of(TEXT, [pointer]) == {pointer: line}


def test_many_pointers_are_found_in_one_pass() -> None:
    assert positions.lines_of(TEXT, iter(["/f", "/a/x", "/f"])) == {"/f": 10, "/a/x": 2}


@pytest.mark.parametrize(
    ("parts", "pointer"),
    [((), ""), (("a", 0, "b"), "/a/0/b"), (("a/b", "c~d", "~1"), "/a~1b/c~0d/~01"), (("",), "/")],
)
def test_pointers_escape_as_rfc_6901_says(parts: tuple[str | int, ...], pointer: str) -> None:
    assert positions.pointer_of(parts) == pointer
    assert positions.parts_of(pointer) == tuple(str(part) for part in parts)


@pytest.mark.parametrize("text", ["", "{", '{"a', '{"a": [', "]]", '{"a": }', '"\\', "{]", ",,"])
def test_broken_text_gives_lines_without_an_error(text: str) -> None:
    assert positions.lines_of(text, ["/a/0", "/b"]).keys() == {"/a/0", "/b"}


def _pointers(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    members: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] + [deeper for key, inside in members for deeper in _pointers(inside, (*path, key))]


@given(
    st.recursive(
        st.none() | st.text() | st.integers(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=15,
    )
)
def test_in_an_indented_document_every_place_is_found_in_the_order_of_the_text(document: Any) -> None:
    text = json.dumps(document, indent=1)
    places = [positions.pointer_of(path) for path in _pointers(document)]
    lines = positions.lines_of(text, places)
    ascending = [lines[place] for place in places]
    assert ascending == sorted(ascending)
    assert len(set(ascending)) == len(ascending)  # one place a line, since each has a line of its own


def test_offsets_are_found_without_being_misled_by_strings() -> None:
    text = '{"a": "NaN", "b": ["\\\\", NaN]}'
    assert positions.find_scalar(text, "NaN") == text.rindex("NaN")
    assert positions.find_scalar(text, "Infinity") is None
    assert positions.find_depth('["[[", [[]]]', 2) == 8
    assert positions.find_depth("[[]]", 2) is None
    assert positions.find_duplicate('[{"a": {"a": 1}}, {"a": 1, "b": 2, "\\u0061": 3}]', "a") == (19, 35)
    assert positions.find_duplicate('{"b": 1, "a": 1, "a": 2}', "a") == (9, 17)
    assert positions.find_duplicate('{"a": ["a", "a"]}', "a") is None
