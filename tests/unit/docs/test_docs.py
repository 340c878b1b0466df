"""The documents say what the product does: links, options, columns, examples."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest

from madengine.cli.main import COMMANDS, main
from madengine.schemas import load_schema

ROOT = Path(__file__).parents[3]
DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("examples/**/*.md"),
    ]
)
NAMES = [str(path.relative_to(ROOT)) for path in DOCUMENTS]

_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_OPTION = re.compile(r"`(--[a-z][a-z-]*|-[a-z])`")


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_to_a_document_and_a_heading_of_it(name: str) -> None:
    page = ROOT / name
    for link in _LINK.findall(_FENCE.sub("", page.read_text())):
        if link.startswith(("https://", "http://")):
            continue
        target, _, heading = link.partition("#")
        there = (page.parent / target).resolve() if target else page
        assert there.is_relative_to(ROOT), link
        assert there.exists(), link
        assert not heading or heading in headings(there.read_text()), link


@pytest.mark.parametrize("name", NAMES)
def test_no_document_names_a_place_of_one_machine(name: str) -> None:
    assert not re.search(r"/(?:root|home|work)/\w", (ROOT / name).read_text())


@pytest.mark.parametrize("command", COMMANDS)
def test_the_options_of_a_command_are_those_of_its_table(command: str) -> None:
    section = sections((ROOT / "docs/cli.md").read_text())[f"madengine {command}"]
    written = [_OPTION.findall(line.split("|")[1]) for line in section.splitlines() if line.startswith("| `-")]
    assert [sorted(names) for names in written] == [sorted(names) for names in options(command)]


def test_every_command_has_a_section() -> None:
    found = sections((ROOT / "docs/cli.md").read_text())
    assert [name for name in found if name.startswith("madengine ")] == [f"madengine {name}" for name in COMMANDS]


def test_the_table_of_columns_is_that_of_the_schema() -> None:
    columns = load_schema("perf_csv")["properties"].items()
    table = "".join(f"| `{name}` | {column['description']} |\n" for name, column in columns)
    assert f"| column | meaning |\n|---|---|\n{table}\n" in (ROOT / "docs/perf_csv.md").read_text()


def test_the_keys_of_a_card_are_explained() -> None:
    text = (ROOT / "docs/cards.md").read_text()
    assert [key for key in load_schema("model_card")["properties"] if f"`{key}`" not in text] == []


def examples() -> Iterator[Any]:
    """Every line of a code block that begins with ``madengine``, behind a prompt or not."""
    for path, name in zip(DOCUMENTS, NAMES, strict=True):
        for block in _FENCE.findall(path.read_text()):
            for line in block.splitlines()[1:-1]:
                words = line.strip().removeprefix("$ ")
                if words.startswith("madengine ") and not words.startswith("madengine ["):
                    yield pytest.param(words, id=f"{name}: {words}")


@pytest.mark.parametrize("line", list(examples()))
def test_examples_can_be_typed(line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    for end in (">", "|", "2>&1"):
        words = words[: words.index(end)] if end in words else words
    if words == ["--version"]:
        return
    command = loaded(words[0])
    with click.Context(command, info_name=words[0]) as context:
        command.parse_args(context, words[1:])


def test_examples_are_found() -> None:
    assert sum(1 for _ in examples()) > 20


def test_exit_codes_of_the_help_stand_in_the_documents(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--help"])
    said = " ".join(capsys.readouterr().out.split()).partition("Exit codes: ")[2]
    assert said.rstrip(".") in " ".join((ROOT / "docs/cli.md").read_text().split())


def loaded(name: str) -> click.Command:
    module, _, attribute = COMMANDS[name][0].partition(":")
    command = getattr(import_module(module), attribute)
    assert isinstance(command, click.Command)
    return command


def options(command: str) -> list[list[str]]:
    """The names of each option of a command, in the order of its help."""
    return [list(each.opts) for each in loaded(command).params if isinstance(each, click.Option)]


def sections(text: str) -> dict[str, str]:
    """Second-level headings and what stands below each."""
    _, *parts = re.split(r"^## ", text, flags=re.MULTILINE)
    return {part.partition("\n")[0].strip(): part.partition("\n")[2] for part in parts}


def headings(text: str) -> set[str]:
    """The anchors of a document, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", _FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
