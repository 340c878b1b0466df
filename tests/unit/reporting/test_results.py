"""Reading the declared results file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from madengine.reporting import results
from madengine.reporting.freshness import Snapshot
from madengine.reporting.results import ResultsReading, read_results
from madengine.verdict.evidence import EmptyRow, Measurement

HEADER = "model,performance,metric\n"
GOOD = f"{HEADER}m,5,x\n"
NAME = "perf_x.csv"


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    inner = tmp_path / "workspace" / "run_directory"
    inner.mkdir(parents=True)
    return inner.parent, inner


def read(
    folders: tuple[Path, ...],
    written: dict[Path, str] | None = None,
    *,
    name: str = NAME,
    rank: int = 0,
    anew: bool = False,
) -> ResultsReading:
    """Take the snapshot, let the "script" write (``anew``: it deletes the old file first), read."""
    snapshot = Snapshot.take(folders, name)
    for path, text in (written or {}).items():
        if anew:
            path.unlink()
        path.write_text(text)
    try:
        return read_results(name, folders, snapshot, card_name="card", given={"MAD_OUTPUT_CSV": name}, rank=rank)
    finally:
        snapshot.release()


def test_without_a_declared_name_nothing_is_read(folders: tuple[Path, Path]) -> None:
    assert read(folders, {folders[0] / NAME: GOOD}, name="") == ResultsReading()


@pytest.mark.parametrize("place", [0, 1])
def test_the_file_is_found_in_the_workspace_and_in_the_run_directory(place: int, folders: tuple[Path, Path]) -> None:
    path = folders[place] / NAME
    text = "model,performance,metric,tp,Mode\nm,5.50,x,8,fast\nn,,y,4,slow\n"
    result = read(folders, {path: text}, rank=2)
    assert result == ResultsReading(
        measurements=(
            Measurement(
                5.5, "x", name="m", source="perf_x.csv:2", text="5.50", rank=2, extra=(("tp", "8"), ("Mode", "fast"))
            ),
        ),
        empty_rows=(
            EmptyRow(
                "n", "y", "the value is empty", source="perf_x.csv:3", rank=2, extra=(("tp", "4"), ("Mode", "slow"))
            ),
        ),
        path=path,
    )


def test_only_the_performance_column_is_needed(folders: tuple[Path, Path]) -> None:
    result = read(folders, {folders[0] / NAME: "performance\n5\n"})
    assert [(item.value, item.metric, item.name) for item in result.measurements] == [(5.0, "", "")]
    assert result.problems == ()


def test_of_two_fresh_files_the_workspaces_counts_and_that_is_said(folders: tuple[Path, Path]) -> None:
    result = read(folders, {folders[0] / NAME: GOOD, folders[1] / NAME: f"{HEADER}m,6,x\n"})
    assert [item.value for item in result.measurements] == [5.0]
    assert result.notes == (f"{folders[1] / NAME} was not read: {folders[0] / NAME} comes first",)


def test_a_file_that_measured_stands_before_one_that_did_not(folders: tuple[Path, Path]) -> None:
    result = read(folders, {folders[0] / NAME: f"{HEADER}m,,x\n", folders[1] / NAME: GOOD})
    assert result.path == folders[1] / NAME
    assert result.problems == ()
    assert result.notes == (f"{folders[0] / NAME} was not read: every row has an empty 'performance' value",)


def test_a_stale_file_is_passed_over_for_a_fresh_one(folders: tuple[Path, Path]) -> None:
    (folders[0] / NAME).write_text(f"{HEADER}old,1,x\n")
    result = read(folders, {folders[1] / NAME: GOOD})
    assert [item.value for item in result.measurements] == [5.0]
    assert result.notes == (f"{folders[0] / NAME} was not read: stale: it holds the same row as before this run",)


def test_a_stale_file_is_never_a_result_wherever_it_lies(folders: tuple[Path, Path]) -> None:
    for folder in folders:
        (folder / NAME).write_text(GOOD)
    result = read(folders)
    assert (result.measurements, result.empty_rows, result.path) == ((), (), None)
    (problem,) = result.problems
    stale = "stale: it holds the same row as before this run"
    assert problem.summary == f"the declared results file 'perf_x.csv' gave no result: {stale}"
    assert problem.searched == tuple(f"{folder / NAME} ({stale})" for folder in folders)
    assert problem.candidates == ()
    assert "delete the old file" in problem.remedy


def test_of_an_appended_file_only_the_new_rows_count(folders: tuple[Path, Path]) -> None:
    path = folders[0] / NAME
    path.write_text(f"{HEADER}old,1,x\n")
    result = read(folders, {path: f"{HEADER}old,1,x\nm,5,x\n"})
    assert [(item.name, item.source) for item in result.measurements] == [("m", "perf_x.csv:3")]
    assert result.notes == (f"{path}: 1 row from before this run does not count",)


def test_old_rows_are_counted_in_the_note(folders: tuple[Path, Path]) -> None:
    path = folders[0] / NAME
    path.write_text(f"{HEADER}a,1,x\nb,2,x\n")
    result = read(folders, {path: f"{HEADER}a,1,x\nb,2,x\nm,5,x\n"})
    assert result.notes == (f"{path}: 2 rows from before this run do not count",)


def test_a_row_that_repeats_in_a_file_made_anew_counts_and_is_noted(folders: tuple[Path, Path]) -> None:
    path = folders[0] / NAME
    path.write_text(f"{HEADER}q,10,retrieval/10\n")
    result = read(folders, {path: f"{HEADER}q,10,retrieval/10\nr,3,lat\n"}, anew=True)
    assert [item.name for item in result.measurements] == ["q", "r"]
    assert result.notes == (
        f"{path}: 1 row is the same as before this run; the file was made anew, so that all rows count",
    )


def test_rows_that_repeat_in_a_file_made_anew_are_counted_in_the_note(folders: tuple[Path, Path]) -> None:
    path = folders[0] / NAME
    path.write_text(f"{HEADER}a,1,x\nb,2,x\n")
    (note,) = read(folders, {path: f"{HEADER}a,1,x\nb,2,x\n"}, anew=True).notes
    assert ": 2 rows are the same as before this run; " in note


def test_old_rows_before_a_line_that_is_no_csv_are_no_results(folders: tuple[Path, Path]) -> None:
    (folders[0] / NAME).write_text(f"{GOOD}\0\n")
    result = read(folders)
    assert (result.measurements, result.path) == ((), None)
    assert "stale: it holds the same row" in result.problems[0].summary


def test_a_missing_file_names_where_was_looked_and_what_was_given(folders: tuple[Path, Path]) -> None:
    result = read(folders)
    assert (result.path, result.measurements) == (None, ())
    (problem,) = result.problems
    assert problem.summary == "the declared results file 'perf_x.csv' was not written"
    assert problem.searched == tuple(f"{folder / NAME} (not there)" for folder in folders)
    assert problem.given == ("MAD_OUTPUT_CSV=perf_x.csv",)
    assert problem.candidates == ()
    assert problem.remedy == (
        "let the script write 'perf_x.csv' in its working directory or one above it, or let card card declare the "
        'file that it does write as "multiple_results"'
    )


def test_a_misspelt_file_is_named_first(folders: tuple[Path, Path]) -> None:
    result = read(folders, {folders[0] / "a.csv": GOOD, folders[1] / "pref_x.csv": GOOD})
    assert result.measurements == ()
    (problem,) = result.problems
    assert problem.candidates[0].startswith(f"{folders[1] / 'pref_x.csv'} (1 of 1 row with a number)")
    assert len(problem.candidates) == 2
    assert problem.remedy == 'correct "multiple_results" in card card, or the name that the script writes'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the file is empty"),
        (HEADER, "it has a header and no rows"),
        ("model,latency\nm,5\n", "no 'performance' column; found: model, latency"),
        (f"{HEADER}m,,x\n", "every row has an empty 'performance' value"),
        (f"{HEADER}m,nan,x\n", "its one row measured nothing; line 2: 'nan' is not a finite number"),
        (f"{HEADER}m,\0,x\n", "not readable as CSV to its end: line 2 holds NUL bytes"),
        ("\0", "not readable as CSV: line 1 holds NUL bytes"),
    ],
)
def test_a_rejected_file_says_why(text: str, reason: str, folders: tuple[Path, Path]) -> None:
    result = read(folders, {folders[1] / NAME: text})
    assert result.measurements == ()
    (problem,) = result.problems
    assert problem.summary.startswith(f"the declared results file 'perf_x.csv' gave no result: {reason}")
    assert any(f"{folders[1] / NAME} ({reason}" in line for line in problem.searched)
    assert "columns model, performance and metric" in problem.remedy


def test_rows_without_a_number_are_told_also_when_none_measured(folders: tuple[Path, Path]) -> None:
    (folders[0] / NAME).write_text(GOOD)
    result = read(folders, {folders[1] / NAME: f"{HEADER}m,N/A,x\n"})
    assert [row.reason for row in result.empty_rows] == ["'N/A' says that there is no value"]
    assert "its one row measured nothing" in result.problems[0].summary
    assert result.path == folders[1] / NAME


def test_another_file_that_looks_like_results_is_named_beside_a_rejected_one(folders: tuple[Path, Path]) -> None:
    result = read(folders, {folders[0] / NAME: HEADER, folders[0] / "right.csv": GOOD})
    assert len(result.problems[0].candidates) == 1
    assert "right.csv" in result.problems[0].candidates[0]


def test_rows_before_a_damage_stand_and_the_damage_is_a_problem(folders: tuple[Path, Path]) -> None:
    path = folders[0] / NAME
    result = read(folders, {path: f"{GOOD}\0\n"})
    assert [item.value for item in result.measurements] == [5.0]
    assert [problem.summary for problem in result.problems] == [
        f"{path}: not readable as CSV to its end: line 3 holds NUL bytes, as binary files and UTF-16 text do"
    ]


def test_so_many_rows_and_no_more_become_results(folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "ROW_LIMIT", 3)
    path = folders[0] / NAME
    assert read(folders, {path: HEADER + "m,5,x\n" * 3}).problems == ()
    path.unlink()
    result = read(folders, {path: HEADER + "m,5,x\n" * 4})
    assert len(result.measurements) == 3
    assert result.problems[0].summary == f"{path}: only its first 3 rows were read"


@pytest.mark.parametrize("name", ["../x.csv", "/etc/passwd", "a/x.csv", ".."])
def test_a_declared_path_is_not_followed(name: str, folders: tuple[Path, Path]) -> None:
    (folders[0].parent / "x.csv").write_text(GOOD)
    result = read(folders, name=name)
    assert result.measurements == ()
    (problem,) = result.problems
    assert problem.summary == f"the declared results file '{name}' is no plain file name and was not looked for"
    assert problem.searched == ()
    assert "a file name without folders" in problem.remedy


def test_a_link_inside_the_folders_is_followed_and_one_that_leads_out_is_not(folders: tuple[Path, Path]) -> None:
    snapshot = Snapshot.take(folders, NAME)
    (folders[0] / "real.csv").write_text(GOOD)
    (folders[1] / NAME).symlink_to("../real.csv")
    assert read_results(NAME, folders, snapshot, card_name="card").measurements
    (folders[1] / NAME).unlink()
    outside = folders[0].parent / "outside.csv"
    outside.write_text(GOOD)
    (folders[1] / NAME).symlink_to(outside)
    result = read_results(NAME, folders, snapshot, card_name="card")
    assert result.measurements == ()
    assert "it is a link that leads out of the run's folders" in result.problems[0].summary


def test_what_is_no_file_is_a_reason_and_no_hang(folders: tuple[Path, Path]) -> None:
    snapshot = Snapshot.take(folders, NAME)
    os.mkfifo(folders[0] / NAME)
    (folders[1] / NAME).mkdir()
    (problem,) = read_results(NAME, folders, snapshot, card_name="card").problems
    assert problem.searched == (
        f"{folders[0] / NAME} (not readable as CSV: it is not a regular file)",
        f"{folders[1] / NAME} (not readable as CSV: it is a directory)",
    )


def test_a_link_to_itself_and_one_to_nothing_are_reasons(folders: tuple[Path, Path]) -> None:
    snapshot = Snapshot.take(folders, NAME)
    (folders[0] / NAME).symlink_to(NAME)
    (folders[1] / NAME).symlink_to("nothing.csv")
    (problem,) = read_results(NAME, folders, snapshot, card_name="card").problems
    assert "not readable: " in problem.searched[0]
    assert problem.searched[1] == f"{folders[1] / NAME} (not readable: No such file or directory)"


def test_an_old_file_that_became_unreadable_is_a_reason(folders: tuple[Path, Path]) -> None:
    (folders[0] / NAME).write_text(GOOD)
    (problem,) = read(folders, {folders[0] / NAME: f"{GOOD}\0\n"}).problems
    assert "not readable as CSV: line 3 holds NUL bytes" in problem.summary


def test_files_of_single_ranks_are_named_and_not_read(folders: tuple[Path, Path]) -> None:
    ranks = {folders[1] / f"perf_x_rank{rank}.csv": GOOD for rank in (0, 13)}
    result = read(folders, {folders[0] / NAME: GOOD, folders[0] / "perf_x_rankless.csv": GOOD, **ranks})
    assert len(result.measurements) == 1
    assert result.notes == tuple(
        f"{path} is one rank's own file, kept beside the results and not read" for path in ranks
    )


@pytest.mark.parametrize(
    ("ranks", "told"), [((0, 1, 2, 3), "(perf_x_rank0.csv and 3 more)"), ((0,), "(perf_x_rank0.csv)")]
)
@pytest.mark.parametrize("old", [False, True])
def test_files_of_single_ranks_in_the_place_of_the_declared_one_are_not_to_be_declared(
    old: bool, ranks: tuple[int, ...], told: str, folders: tuple[Path, Path]
) -> None:
    if old:
        (folders[1] / NAME).write_text(GOOD)
    (problem,) = read(folders, {folders[1] / f"perf_x_rank{rank}.csv": GOOD for rank in ranks}).problems
    assert problem.candidates == ()
    assert problem.remedy == (
        f"files of single ranks were found {told}, which are no results: let the script write one file 'perf_x.csv' "
        "from one rank, with the rows of all"
    )


def test_files_of_single_ranks_say_nothing_about_a_declared_one_that_holds_no_number(
    folders: tuple[Path, Path],
) -> None:
    written = {folders[1] / NAME: HEADER, folders[1] / "perf_x_rank0.csv": GOOD}
    (problem,) = read(folders, written).problems
    assert problem.remedy.startswith("let the script write a CSV with the columns model, performance and metric")


def test_many_files_of_single_ranks_are_counted(folders: tuple[Path, Path]) -> None:
    result = read(folders, {folders[0] / f"perf_x_rank{rank}.csv": GOOD for rank in range(11)})
    assert len(result.notes) == 9
    assert result.notes[-1] == "and 3 more files of single ranks"


def test_the_same_folder_twice_is_searched_once(folders: tuple[Path, Path]) -> None:
    assert len(read((folders[0], folders[0])).problems[0].searched) == 1


def test_no_folders_and_folders_that_are_gone_are_no_error(tmp_path: Path) -> None:
    for searched in ((), (tmp_path / "gone",)):
        (problem,) = read_results(NAME, searched, Snapshot.take(searched, NAME), card_name="card").problems
        assert problem.summary == "the declared results file 'perf_x.csv' was not written"
