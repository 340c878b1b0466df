"""What of a results file was written during the run."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from madengine.reporting.freshness import Freshness, Snapshot, is_bare_name

HEADER = "model,performance,metric\n"
OLD = f"{HEADER}old,1,x\nolder,2,x\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results.csv"


def before(path: Path, content: str | bytes | None) -> Snapshot:
    if content is not None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return Snapshot.take([path.parent], path.name)


def replace(path: Path, content: str) -> None:
    """As a script does that deletes the old file first: another inode."""
    other = path.with_name("other")
    other.write_text(content)
    other.rename(path)


def test_a_file_that_was_not_there_is_new(path: Path) -> None:
    snapshot = before(path, None)
    path.write_text(OLD)
    assert snapshot.freshness(path) == Freshness()


def test_a_file_that_did_not_change_is_stale(path: Path) -> None:
    snapshot = before(path, OLD)
    assert snapshot.freshness(path) == Freshness(2, "it holds the same 2 rows as before this run")


def test_a_file_of_one_row_is_stale_in_the_singular(path: Path) -> None:
    assert before(path, f"{HEADER}a,1,x\n").freshness(path).stale == "it holds the same row as before this run"


def test_a_touched_file_is_stale(path: Path) -> None:
    snapshot = before(path, OLD)
    os.utime(path, (time.time() + 100, time.time() + 100))
    assert snapshot.freshness(path).stale


def test_the_same_rows_written_into_the_same_file_are_stale(path: Path) -> None:
    snapshot = before(path, OLD)
    path.write_text(OLD.replace("\n", "\r\n").replace("old,1", " old , 1 "))
    assert snapshot.freshness(path).stale


def test_the_same_rows_in_a_file_that_was_made_anew_are_new(path: Path) -> None:
    snapshot = before(path, OLD)
    replace(path, OLD)
    assert snapshot.freshness(path) == Freshness()


@pytest.mark.parametrize("old", [OLD, OLD.removesuffix("\n")])
def test_of_an_appended_file_only_the_new_rows_count(old: str, path: Path) -> None:
    snapshot = before(path, old)
    with path.open("a") as file:
        file.write(("" if old.endswith("\n") else "\n") + "new,3,x\n")
    assert snapshot.freshness(path) == Freshness(2)


def test_rows_appended_by_a_rename_are_appended_all_the_same(path: Path) -> None:
    snapshot = before(path, OLD)
    replace(path, OLD + "new,3,x\n")
    assert snapshot.freshness(path) == Freshness(2)


def test_a_last_line_that_was_continued_is_new(path: Path) -> None:
    snapshot = before(path, f"{HEADER}old,1,x\nnew,2")
    with path.open("a") as file:
        file.write("5,x\n")
    assert snapshot.freshness(path) == Freshness(1)


def test_a_changed_last_row_of_a_finished_file_makes_all_rows_new(path: Path) -> None:
    snapshot = before(path, OLD)
    path.write_text(f"{HEADER}old,1,x\nolder,3,x\n")
    assert snapshot.freshness(path) == Freshness()


def test_a_file_that_was_written_over_is_new_as_a_whole(path: Path) -> None:
    snapshot = before(path, OLD)
    path.write_text(f"{HEADER}old,7,x\nolder,2,x\nnew,3,x\n")
    assert snapshot.freshness(path) == Freshness()


@pytest.mark.parametrize("anew", [True, False])
def test_a_file_that_only_lost_rows_is_stale(anew: bool, path: Path) -> None:
    snapshot = before(path, OLD)
    shorter = f"{HEADER}old,1,x\n"
    replace(path, shorter) if anew else path.write_text(shorter)
    assert snapshot.freshness(path).stale == "it holds the same row as before this run"


def test_rows_below_a_header_that_was_there_are_new(path: Path) -> None:
    snapshot = before(path, HEADER)
    path.write_text(OLD)
    assert snapshot.freshness(path) == Freshness()


@pytest.mark.parametrize("content", [HEADER, ""])
def test_a_file_without_rows_is_left_to_its_own_reason(content: str, path: Path) -> None:
    assert before(path, content).freshness(path) == Freshness()


def test_a_file_that_was_written_before_the_run_and_copied_in_is_stale(path: Path) -> None:
    snapshot = before(path, None)
    path.write_text(OLD)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    assert snapshot.freshness(path).stale == "it was last written at 2023-11-14 22:13:20 UTC, before this run began"


def test_clocks_may_differ_a_little(path: Path) -> None:
    snapshot = Snapshot.take([path.parent], path.name, clock=lambda: 1_700_000_000.0)
    path.write_text(OLD)
    os.utime(path, (1_699_999_941, 1_699_999_941))
    assert snapshot.freshness(path) == Freshness()
    os.utime(path, (1_699_999_939, 1_699_999_939))
    assert snapshot.freshness(path).stale


def test_an_old_file_that_was_not_readable_leaves_no_mark(path: Path, tmp_path: Path) -> None:
    snapshot = before(path, b"\xff\xfe")
    assert snapshot.marks == {}
    path.write_text(OLD)
    assert snapshot.freshness(path) == Freshness()
    (tmp_path / "folder.csv").mkdir()
    assert Snapshot.take([tmp_path, tmp_path / "missing"], "folder.csv").marks == {}


def test_every_folder_is_looked_at(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.csv").write_text(OLD)
    snapshot = Snapshot.take([tmp_path / "a", tmp_path / "b"], "x.csv")
    assert set(snapshot.marks) == {tmp_path / "a" / "x.csv", tmp_path / "b" / "x.csv"}
    assert [mark.rows for mark in snapshot.marks.values()] == [2, 2]


@pytest.mark.parametrize("name", ["", ".", "..", "../x.csv", "/etc/passwd", "a/b.csv", "a\\b.csv", "x\0.csv"])
def test_a_name_that_is_a_path_is_not_looked_at(name: str, tmp_path: Path) -> None:
    assert not is_bare_name(name)
    assert Snapshot.take([tmp_path], name).marks == {}


@pytest.mark.parametrize("name", ["x.csv", "results_pyt_x._finetuning.csv", "a b.csv", "..csv", "$(x).csv"])
def test_a_plain_name_is_a_file_in_a_folder(name: str) -> None:
    assert is_bare_name(name)
