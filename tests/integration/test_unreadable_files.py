"""Every file that madengine reads may be anything: one sentence with its path, exit 4, nothing started."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.integration.packages import Place, card, manifest, place, remove, snapshot

RUN = ("run", "--engine", "host")
TAGS = (*RUN, "--tags", "t")
DEEP = 100_000


@dataclass(frozen=True)
class Document:
    """A JSON file that a command reads: where it lies, how a good one looks, which command reads it."""

    path: str
    good: Any
    words: tuple[str, ...]
    optional: bool = False
    wrong_kinds: tuple[Any, ...] = field(default=([1], "text", 7, None))


OBJECT = ([1], "text", 7, None)
LIST = ({"a": 1}, "text", 7, None)

DOCUMENTS = {
    "models.json": Document("package/models.json", [card()], TAGS, optional=True, wrong_kinds=LIST),
    "scripts/x/models.json": Document(
        "package/scripts/x/models.json",
        [card("n", scripts="../m/run.sh")],
        (*RUN, "--tags", "all"),
        optional=True,
        wrong_kinds=LIST,
    ),
    "context file": Document(
        "work/c.json", {"docker_env_vars": {"A": "b"}}, (*TAGS, "--additional-context-file", "c.json")
    ),
    "manifest": Document("work/manifest.json", manifest(), (*RUN, "--manifest-file", "manifest.json")),
    "credential.json": Document("package/credential.json", {"dockerhub": {"username": "u"}}, TAGS, optional=True),
    "credential.json of a manifest's run": Document(
        "package/credential.json",
        {"dockerhub": {"username": "u"}},
        (*RUN, "--manifest-file", "../package/m.json"),
        optional=True,
    ),
    "data.json": Document("package/data.json", {"d": {"local": {"path": "/"}}}, TAGS, optional=True),
    "--data-config": Document("work/d.json", {"data_sources": {}}, (*TAGS, "--data-config", "d.json")),
    "tools.json": Document("package/tools.json", {"tools": {"x": {"cmd": "env"}}}, TAGS, optional=True),
    "--tools-config": Document("work/t.json", {"tools": {}}, (*TAGS, "--tools-config", "t.json")),
    "--batch-manifest": Document(
        "work/b.json",
        [{"model_name": "m", "build_new": True}],
        (*RUN, "--batch-manifest", "b.json"),
        wrong_kinds=LIST,
    ),
}


def text(content: str | bytes) -> Callable[[Path], None]:
    data = content if isinstance(content, bytes) else content.encode()
    return lambda path: path.write_bytes(data) and None  # type: ignore[func-returns-value]


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(200 << 20)


def huge_text(path: Path) -> None:
    path.write_text('{"a": "' + "x" * (17 << 20) + '"}')


def no_reader(path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads what it may not read")
    path.write_text("{}")
    path.chmod(0)


def to_itself(path: Path) -> None:
    path.symlink_to(path.name)


DEFECTS: dict[str, Callable[[Path], None]] = {
    "empty": text(""),
    "blank": text(" \n\t\n"),
    "a byte-order mark alone": text("\ufeff"),
    "a directory": Path.mkdir,
    "a pipe": os.mkfifo,
    "a link to itself": to_itself,
    "a link to nothing": lambda path: path.symlink_to("nowhere"),
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "no text": text(bytes(range(256)) * 8),
    "a picture": text(b"\x89PNG\r\n\x1a\n\x00\x00"),
    "200 MB": huge,
    "17 MB of text": huge_text,
    "deep lists": text("[" * DEEP),
    "deep objects": text('{"a":' * DEEP + "1" + "}" * DEEP),
    "cut in a string": text('{"a": [1, "tw'),
    "cut in a list": text('[{"name": "m", "tags": ["t",'),
    "two documents": text("{}{}"),
    "no JSON at all": text("name: m\ntags: [t]\n"),
    "NaN": text('[{"name": "m", "timeout": NaN}]'),
    "half a pair": text('{"a": "\\ud800"}'),
    "a NUL": text('{"a": "\\u0000"}'),
    "a huge integer": text('{"a": ' + "9" * 5000 + "}"),
    "a huge number": text('[{"name": "m", "timeout": 1e999}]'),
    "duplicate keys": text('{"a": {"k": 1, "k": 2}}'),
    "UTF-16": text('{"a": 1}'.encode("utf-16")),
    "latin-1": text('{"ä": 1}'.encode("latin-1")),
    "without permission": no_reader,
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    fresh = place(tmp_path, monkeypatch, capsys)
    (fresh.package / "scripts" / "x").mkdir()
    (fresh.package / "m.json").write_text(json.dumps(manifest()))
    return fresh


def refused(here: Place, path: Path, *words: object) -> str:
    """Run a command that must refuse ``path``; returns its one sentence."""
    before = snapshot(here.package, here.work)
    result = here.madengine(*words)
    assert result.code == 4, result
    assert len(result.errors) == 1, result.err
    assert result.err.count("\n") <= 3, result.err
    assert path.name in result.errors[0]
    assert "Traceback" not in result.err + result.out
    assert result.out == ""
    assert snapshot(here.package, here.work) == before
    return result.errors[0]


@pytest.mark.parametrize("defect", DEFECTS)
@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
def test_a_file_that_is_no_document_is_refused(here: Place, document: Document, defect: str) -> None:
    path = here.work.parent / document.path
    remove(path)
    DEFECTS[defect](path)
    refused(here, path, *document.words)


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
def test_a_document_of_another_kind_is_refused(here: Place, document: Document) -> None:
    path = here.work.parent / document.path
    for wrong in document.wrong_kinds:
        path.write_text(json.dumps(wrong))
        refused(here, path, *document.words)


@pytest.mark.parametrize("document", [d for d in DOCUMENTS.values() if not d.optional], ids=lambda d: d.path)
def test_a_file_that_is_named_and_missing_is_refused(here: Place, document: Document) -> None:
    refused(here, here.work.parent / document.path, *document.words)


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
def test_a_byte_order_mark_and_windows_line_ends_are_harmless(here: Place, document: Document) -> None:
    path = here.work.parent / document.path
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(document.good, indent=1).replace("\n", "\r\n").encode())
    result = here.madengine(*document.words)
    assert result.code == 0, result.err
    assert [row["status"] for row in here.rows()].count("SUCCESS") == len(here.rows()) >= 1
