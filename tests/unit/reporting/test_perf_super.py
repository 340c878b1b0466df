"""perf_super: one valid list at all times, continued without being read."""

from __future__ import annotations

import csv
import json
import multiprocessing
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hostile import HOSTILE

from madengine.core.errors import ConfigurationError, ExecutionError
from madengine.reporting import appending
from madengine.reporting.perf_rows import ResultRow
from madengine.reporting.perf_super import (
    append_super_csv,
    append_super_json,
    check_super_json,
    json_line,
    super_columns,
    super_row,
)

FORK = multiprocessing.get_context("fork")
BOM = b"\xef\xbb\xbf"


def row(model: str, **values: Any) -> dict[str, Any]:
    return {"model": model, "configs": None, "multi_results": None, **values}


def models(path: Path) -> list[str]:
    return [item["model"] for item in json.loads(path.read_text(encoding="utf-8-sig"))]


def test_the_added_columns_of_a_row_stand_under_multi_results() -> None:
    made = super_row(ResultRow({"model": "a", "metric": "ms", "tp": "8"}, ("tp",)), [{"x": "1"}])
    assert made == {"model": "a", "metric": "ms", "configs": [{"x": "1"}], "multi_results": {"tp": "8"}}
    assert super_row(ResultRow({"model": "a"}, ()))["multi_results"] is None


def test_rows_are_added_to_one_list(tmp_path: Path) -> None:
    path = tmp_path / "perf_super.json"
    append_super_json(path, [])
    assert not path.exists()
    append_super_json(path, [row("a"), row("b", configs=[{"tp": "8"}], multi_results={"bs": "1"})])
    append_super_json(path, [row("c")])
    found = json.loads(path.read_text())
    assert [item["model"] for item in found] == ["a", "b", "c"]
    assert found[1] == row("b", configs=[{"tp": "8"}], multi_results={"bs": "1"})
    assert path.read_text().count("\n") == 5
    assert [p.name for p in tmp_path.iterdir()] == ["perf_super.json"]


@pytest.mark.parametrize(
    ("contents", "before"),
    [
        (b"", []),
        (b" \n", []),
        (BOM, []),
        (b"[]", []),
        (b"[ ]\n", []),
        (b"[\n]\n", []),
        (b'[{"model": "old"}]', ["old"]),
        (b'[{"model": "old", "configs": [{}]}]', ["old"]),
        (json.dumps([row("old", configs=[{"a": 1}]), row("older")], indent=2).encode(), ["old", "older"]),
        (json.dumps([row("old", configs=[{"a": 1}])], indent=4).encode() + b"\n\n", ["old"]),
        (BOM + b'[\r\n{"model": "old"}\r\n]\r\n', ["old"]),
        (b'[{"model": "' + b"x" * 100_000 + b'"}]', ["x" * 100_000]),
    ],
)
def test_an_existing_list_is_continued(tmp_path: Path, contents: bytes, before: list[str]) -> None:
    path = tmp_path / "perf_super.json"
    path.write_bytes(contents)
    check_super_json(path)
    append_super_json(path, [row("new")])
    append_super_json(path, [row("newer")])
    assert models(path) == [*before, "new", "newer"]


@pytest.mark.parametrize(
    "contents",
    [
        b'{"model": "a"}',
        b"model,performance\n",
        b"\x7fELF",
        b"[1, 2]",
        b'["a"]\n',
        b'[\n  {\n    "model": "a",\n    "configs": [\n      {"model": 1},\n',
        b'[{"model": "a"}, {"mod',
        b'[\n{"mod\n',
        b"[\n" + b"x" * 200_000,
    ],
)
def test_what_is_no_list_of_rows_is_refused_and_left_alone(tmp_path: Path, contents: bytes) -> None:
    path = tmp_path / "perf_super.json"
    path.write_bytes(contents)
    for attempt in (lambda: check_super_json(path), lambda: append_super_json(path, [row("new")])):
        with pytest.raises(ConfigurationError, match=r"perf_super\.json"):
            attempt()
    assert path.read_bytes() == contents


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_is_no_file_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "perf_super.json"
    path.mkdir() if kind == "folder" else os.mkfifo(path)
    for attempt in (lambda: check_super_json(path), lambda: append_super_json(path, [row("new")])):
        with pytest.raises(ConfigurationError):
            attempt()


@pytest.mark.parametrize("old", [0, 1, 3])
def test_a_writer_killed_at_any_byte_leaves_a_file_that_the_next_append_mends(tmp_path: Path, old: int) -> None:
    path = tmp_path / "perf_super.json"
    kept = [f"old{n}" for n in range(old)]
    append_super_json(path, [row(name) for name in kept])
    before = path.read_bytes() if old else b""
    # Rows that hold what looks like an end of the list or of a row.
    batch = [row("b1", configs=[{"a": "}]"}], multi_results={"]": "}\n]\n"}), row("b2", configs=[{}])]
    append_super_json(path, batch)
    after = path.read_bytes()
    first = len(before) - len(b"\n]\n") if old else 0
    assert after[:first] == before[:first]
    for cut in range(first + 1, len(after)):
        path.write_bytes(after[:cut])
        append_super_json(path, [row("next")])
        found = models(path)
        assert found[:old] == kept
        assert found[-1] == "next"
        assert found[old:-1] in ([], ["b1"], ["b1", "b2"])


def test_a_cut_row_longer_than_a_block_is_mended(tmp_path: Path) -> None:
    path = tmp_path / "perf_super.json"
    append_super_json(path, [row("a", configs=["x" * 100_000] * 2), row("b", configs=["y" * 100_000] * 5)])
    path.write_bytes(path.read_bytes()[:-100])
    append_super_json(path, [row("next")])
    assert models(path) == ["a", "next"]


def test_a_failed_write_gives_the_closing_bracket_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "perf_super.json"
    append_super_json(path, [row("a")])
    before = path.read_bytes()

    def failing(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(appending.os, "fsync", failing)
    with pytest.raises(ExecutionError, match="no space left on device"):
        append_super_json(path, [row("b")])
    monkeypatch.undo()
    assert path.read_bytes() == before


def _appending(path: Path, worker: int, count: int) -> None:
    for index in range(count):
        append_super_json(path, [row(f"{worker}-{index}", configs=["x" * 3000])])


def test_many_writers_lose_nothing_and_a_reader_always_finds_valid_json(tmp_path: Path) -> None:
    path = tmp_path / "perf_super.json"
    append_super_json(path, [row("first")])
    writers = [FORK.Process(target=_appending, args=(path, n, 15)) for n in range(6)]
    for process in writers:
        process.start()
    reads = 0
    while any(process.is_alive() for process in writers):
        assert models(path)[0] == "first"
        reads += 1
    for process in writers:
        process.join()
    assert reads > 5
    assert sorted(models(path)[1:]) == sorted(f"{w}-{n}" for w in range(6) for n in range(15))


def test_killed_writers_leave_a_file_that_can_be_continued(tmp_path: Path) -> None:
    path = tmp_path / "perf_super.json"
    for attempt in range(8):
        process = FORK.Process(target=_appending, args=(path, attempt, 10_000))
        process.start()
        time.sleep(0.02 + attempt * 0.003)
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
    append_super_json(path, [row("last")])
    assert models(path)[-1] == "last"
    # Each writer's rows are there in order, without a gap.
    for attempt in range(8):
        numbers = [int(m.split("-")[1]) for m in models(path) if m.startswith(f"{attempt}-")]
        assert numbers == list(range(len(numbers)))


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=20), max_size=4))
def test_a_row_is_one_line_of_strict_json(extra: dict[str, str]) -> None:
    line = json_line(row("a", multi_results=extra))
    assert "\n" not in line
    line.encode("utf-8")
    found = json.loads(line)["multi_results"]
    if not any("\0" in text or not text.isascii() for item in extra.items() for text in item):
        assert found == extra


def test_hostile_text_comes_back_equal_from_json_and_csv(tmp_path: Path) -> None:
    rows = [row(text, configs={text: text}, multi_results={text: text}) for text in HOSTILE]
    append_super_json(tmp_path / "s.json", rows)
    append_super_csv(tmp_path / "s.csv", rows)
    assert json.loads((tmp_path / "s.json").read_text()) == rows
    with (tmp_path / "s.csv").open(newline="") as file:
        found = list(csv.DictReader(file))
    assert [item["model"] for item in found] == list(HOSTILE)
    assert [json.loads(item["configs"]) for item in found] == [item["configs"] for item in rows]


def test_the_csv_has_the_columns_of_perf_csv_and_two_of_json(tmp_path: Path) -> None:
    path = tmp_path / "perf_super.csv"
    append_super_csv(path, [row("a", configs=[{"tp": "8"}])])
    with path.open(newline="") as file:
        header, only = list(csv.reader(file))
    assert tuple(header) == super_columns()
    assert only[-2:] == ['[{"tp": "8"}]', ""]
