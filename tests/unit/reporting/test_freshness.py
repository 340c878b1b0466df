"""What of a results file was written during the run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from madengine.reporting.freshness import Freshness, Snapshot, is_bare_name

HEADER = "model,performance,metric\n"
OLD = f"{HEADER}old,1,x\nolder,2,x\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "results.csv"


@pytest.fixture(autouse=True)
def released(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let go of whatever a test's snapshots hold."""
    taken: list[Snapshot] = []
    take = Snapshot.take

    def kept(*words: Any, **options: Any) -> Snapshot:
        taken.append(take(*words, **options))
        return taken[-1]

    monkeypatch.setattr(Snapshot, "take", kept)
    yield
    for snapshot in taken:
        snapshot.release()


def before(path: Path, content: str | bytes | None) -> Snapshot:
    if content is not None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return Snapshot.take([path.parent], path.name)


def delete_first(path: Path, content: str) -> None:
    path.unlink()
    path.write_text(content)  # at once: a file system gives the freed inode to the next file


def move_away_first(path: Path, content: str) -> None:
    path.rename(path.with_name("old.txt"))
    path.write_text(content)


def replace(path: Path, content: str) -> None:
    other = path.with_name("other")
    other.write_text(content)
    other.rename(path)


MADE_ANEW = pytest.mark.parametrize("make", [delete_first, move_away_first, replace])
Make = Callable[[Path, str], None]


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


@MADE_ANEW
def test_the_same_rows_in_a_file_that_was_made_anew_are_new(make: Make, path: Path) -> None:
    snapshot = before(path, OLD)
    make(path, OLD)
    assert snapshot.freshness(path) == Freshness(repeated=2)


@MADE_ANEW
def test_of_a_file_that_was_made_anew_rows_that_came_first_before_are_new_as_well(make: Make, path: Path) -> None:
    snapshot = before(path, OLD)
    make(path, OLD + "new,3,x\n")
    assert snapshot.freshness(path) == Freshness(repeated=2)


@MADE_ANEW
def test_of_a_file_that_was_made_anew_with_fewer_rows_all_are_new(make: Make, path: Path) -> None:
    snapshot = before(path, OLD)
    make(path, f"{HEADER}old,1,x\n")
    assert snapshot.freshness(path) == Freshness(repeated=1)


@MADE_ANEW
def test_other_rows_in_a_file_that_was_made_anew_repeat_nothing(make: Make, path: Path) -> None:
    snapshot = before(path, OLD)
    make(path, f"{HEADER}old,1,x\nolder,5,x\n")
    assert snapshot.freshness(path) == Freshness()


def test_a_file_that_was_moved_away_and_back_is_stale(path: Path) -> None:
    snapshot = before(path, OLD)
    path.rename(path.with_name("aside"))
    path.with_name("aside").rename(path)
    assert snapshot.freshness(path).stale


def test_an_old_file_that_was_put_in_the_place_with_its_time_stamp_is_stale(path: Path) -> None:
    snapshot = before(path, OLD)
    replace(path, OLD)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    assert snapshot.freshness(path).stale == "it was last written at 2023-11-14 22:13:20 UTC, before this run began"


@pytest.mark.parametrize("old", [OLD, OLD.removesuffix("\n")])
def test_of_an_appended_file_only_the_new_rows_count(old: str, path: Path) -> None:
    snapshot = before(path, old)
    with path.open("a") as file:
        file.write(("" if old.endswith("\n") else "\n") + "new,3,x\n")
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


def test_a_file_that_only_lost_rows_is_stale(path: Path) -> None:
    snapshot = before(path, OLD)
    path.write_text(f"{HEADER}old,1,x\n")
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


def test_rows_in_the_place_of_what_was_no_csv_are_new(path: Path) -> None:
    snapshot = before(path, b"\xff\xfe")
    path.write_text(OLD)
    assert snapshot.freshness(path) == Freshness()


def test_old_rows_before_a_line_that_is_no_csv_are_stale(path: Path) -> None:
    snapshot = before(path, f"{OLD}broken,\0,x\n")
    assert snapshot.freshness(path) == Freshness(
        2,
        "it holds the same 2 rows as before this run, and then is not readable as CSV: "
        "line 4 holds NUL bytes, as binary files and UTF-16 text do",
    )


def test_old_rows_below_which_a_script_wrote_what_is_no_csv_are_stale(path: Path) -> None:
    snapshot = before(path, OLD)
    with path.open("ab") as file:
        file.write(b"\0\n")
    assert snapshot.freshness(path).stale.startswith("it holds the same 2 rows as before this run, and then is not")


def test_a_folder_of_the_name_leaves_no_mark(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    assert Snapshot.take([tmp_path, tmp_path / "missing"], "folder.csv").marks == {}


def test_every_folder_is_looked_at(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.csv").write_text(OLD)
    snapshot = Snapshot.take([tmp_path / "a", tmp_path / "b"], "x.csv")
    assert set(snapshot.marks) == {tmp_path / "a" / "x.csv", tmp_path / "b" / "x.csv"}
    assert [mark.rows for mark in snapshot.marks.values()] == [2, 2]


def test_nothing_is_held_open_once_released(path: Path) -> None:
    snapshot = before(path, OLD)
    (mark,) = snapshot.marks.values()
    assert not mark.held.closed
    snapshot.release()
    assert mark.held.closed


@pytest.mark.parametrize("name", ["", ".", "..", "../x.csv", "/etc/passwd", "a/b.csv", "a\\b.csv", "x\0.csv"])
def test_a_name_that_is_a_path_is_not_looked_at(name: str, tmp_path: Path) -> None:
    assert not is_bare_name(name)
    assert Snapshot.take([tmp_path], name).marks == {}


@pytest.mark.parametrize("name", ["x.csv", "results_pyt_x._finetuning.csv", "a b.csv", "..csv", "$(x).csv"])
def test_a_plain_name_is_a_file_in_a_folder(name: str) -> None:
    assert is_bare_name(name)
