"""Which names and paths a card may have."""

from __future__ import annotations

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from madengine.catalog.rules import all_plain, name_fault, package_path, path_fault, shown


@pytest.mark.parametrize(
    "name",
    [
        "pyt_llama-3.1-8b",
        "with space",
        'it\'s "quoted"',
        "$(touch canary)",
        "`id`; rm -rf x | y && z",
        "模型",
        "zero\u200dwidth",
        "..a",
        "a..b",
        "a/b",
        "-rf",
        "...",
    ],
)
def test_legal_names_are_accepted_as_they_are(name: str) -> None:
    assert name_fault(name) is None


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("", "empty"),
        ("   ", "empty"),
        ("..", "part"),
        (".", "part"),
        ("../x", "part"),
        ("a/../b", "part"),
        ("/etc/passwd", "part"),
        ("a/", "part"),
        ("a\nb", "control"),
        ("a\x00b", "control"),
        ("\x1b[31mred", "control"),
        ("a\u2028b", "control"),
        ("\ud800", "control"),
    ],
)
def test_names_that_cannot_be_shown_or_leave_their_folder_are_refused(name: str, word: str) -> None:
    fault = name_fault(name)
    assert fault is not None
    assert word in fault
    assert "\n" not in fault


@pytest.mark.parametrize(
    ("value", "base", "path"),
    [
        ("docker/x", "", "docker/x"),
        ("./docker//x/", "", "docker/x"),
        (".", "", "."),
        ("../../docker/x.glm5", "scripts/d", "docker/x.glm5"),
        (".", "scripts/d", "scripts/d"),
        ("run.sh", "scripts/d", "scripts/d/run.sh"),
        ("scripts/run.slurm", "scripts/d", "scripts/d/scripts/run.slurm"),
        ("../../scripts/other", "scripts/d", "scripts/other"),
        ("a/../b", "", "b"),
    ],
)
def test_paths_become_relative_to_the_package(value: str, base: str, path: str) -> None:
    assert package_path(value, base) == path


@pytest.mark.parametrize(
    ("value", "base", "word"),
    [
        ("../x", "", "leaves"),
        ("a/../../x", "", "leaves"),
        ("..", "", "leaves"),
        ("../../../x", "scripts/d", "leaves"),
        ("/etc/passwd", "", "absolute"),
        ("/x", "scripts/d", "absolute"),
        ("a\nb", "", "control"),
        ("a\x00b", "", "control"),
    ],
)
def test_paths_that_leave_the_package_are_refused_with_the_reason(value: str, base: str, word: str) -> None:
    assert package_path(value, base) is None
    assert word in path_fault(value)


@given(st.text(alphabet="ab./", max_size=12), st.sampled_from(["", "scripts/d"]))
def test_a_path_that_is_accepted_lies_inside_the_package(value: str, base: str) -> None:
    path = package_path(value, base)
    if path is not None:
        assert path == posixpath.normpath(posixpath.join(base, value)) or path == value == ""
        assert ".." not in path.split("/")


@given(st.lists(st.one_of(st.text(alphabet="ab./| ", max_size=6), st.text(max_size=5)), min_size=1, max_size=3))
def test_the_quick_test_of_many_texts_never_accepts_one_that_needs_work(texts: list[str]) -> None:
    if all_plain(texts):
        assert all(name_fault(text) is None and package_path(text, "") is text for text in texts)


def test_the_quick_test_accepts_usual_names_and_paths() -> None:
    assert all_plain(["pyt_llama-3.1-8b", "docker/x.glm5.1", "scripts/x y/run.sh", "模型"])


@pytest.mark.parametrize(
    ("text", "line"),
    [("a b", '"a b"'), ("a\nb\x1b", '"a\\nb\\x1b"'), ("\ud800", '"\\ud800"'), ("x" * 200, '"' + "x" * 100 + '..."')],
)
def test_shown_text_is_one_line_and_not_long(text: str, line: str) -> None:
    assert shown(text) == line
