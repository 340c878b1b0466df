"""Annotations and step summaries of GitHub Actions."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hostile import HOSTILE

from madengine.cli.github import annotate, append_summary, command, markdown

ON = {"GITHUB_ACTIONS": "true"}


@pytest.mark.parametrize(
    ("text", "title", "line"),
    [
        ("plain", "t", "::error title=t::plain"),
        ("a\r\nb 5%", "t", "::error title=t::a%0D%0Ab 5%25"),
        ("%0A", "t", "::error title=t::%250A"),
        ("x", "a:b,c%\n", "::error title=a%3Ab%2Cc%25%0A::x"),
        ("\x1b[31m\udc80", "t", "::error title=t::\\x1b[31m\\udc80"),
    ],
)
def test_an_annotation_is_one_line_whatever_it_says(text: str, title: str, line: str) -> None:
    assert command("error", text, title=title) == line


def test_annotations_are_for_github_alone(capsys: pytest.CaptureFixture[str]) -> None:
    annotate([("error", "t", "x")], {})
    annotate([("error", "t", "x"), ("warning", "u", "y")], ON)
    assert capsys.readouterr() == ("", "::error title=t::x\n::warning title=u::y\n")


@given(st.sampled_from(HOSTILE) | st.text(max_size=30))
def test_no_text_breaks_a_table_or_becomes_markup(text: str) -> None:
    lines = markdown("t", ["a", "b"], [[text, "end"]]).split("\n")
    assert lines[:5] == ["", "### t", "", "| a | b |", "| --- | --- |"]
    assert lines[6:] == ["", ""]
    assert lines[5].count("|") == 3
    assert lines[5].endswith(" | end |")
    assert not re.search(r"(?<!\\)(?:\\\\)*[`*_\[\]<>~$]", lines[5])


def test_a_table_is_appended_to_what_stands_in_the_summary(tmp_path: Path) -> None:
    path = tmp_path / "summary.md"
    for name in ("a", "b"):
        append_summary("t", ["m"], [[name]], {"GITHUB_STEP_SUMMARY": str(path)})
    assert path.read_text() == "\n### t\n\n| m |\n| --- |\n| a |\n\n" + "\n### t\n\n| m |\n| --- |\n| b |\n\n"


@pytest.mark.parametrize("kind", ["folder", "pipe", "nowhere", "nul"])
def test_a_summary_that_cannot_be_written_is_a_warning(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    place = {"nowhere": "nowhere/x", "nul": "a\0b"}.get(kind, kind)
    append_summary("t", ["m"], [], {"GITHUB_STEP_SUMMARY": str(tmp_path / place)})
    assert capsys.readouterr().err.startswith("warning: the summary for GitHub cannot be written: ")


def test_without_a_file_for_the_summary_nothing_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    append_summary("t", ["m"], [["x"]], {"GITHUB_STEP_SUMMARY": ""})
    assert capsys.readouterr() == ("", "")
