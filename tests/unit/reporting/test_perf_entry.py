"""perf_entry and the names of all files of numbers."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from madengine.core.errors import ConfigurationError, MADEngineError
from madengine.reporting.perf_entry import append_cumulative, check_perf_files, perf_files, write_entries
from madengine.reporting.perf_rows import ResultRow
from madengine.reporting.perf_super import super_columns
from madengine.schemas import perf_csv_columns

ROW = ResultRow({**dict.fromkeys(perf_csv_columns(), ""), "model": "a", "tp": "8"}, ("tp",))
PLAIN = ResultRow({**dict.fromkeys(perf_csv_columns(), ""), "model": "b", "tags": "x,y"}, ())


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("output", "names"),
    [
        (None, ["perf_entry.csv", "perf_entry.json", "perf_entry_super.json", "perf_entry_super.csv"]),
        ("perf_x.csv", ["perf_x.csv", "perf_x.json", "perf_x_super.json", "perf_x_super.csv"]),
        ("x.json", ["x.csv", "x.json", "x_super.json", "x_super.csv"]),
        ("x.y", ["x.y", "x.y.json", "x.y_super.json", "x.y_super.csv"]),
        ("x", ["x", "x.json", "x_super.json", "x_super.csv"]),
    ],
)
def test_output_names_the_files_of_the_last_command(tmp_path: Path, output: str | None, names: list[str]) -> None:
    assert [path.name for path in perf_files(tmp_path, output).entries] == names


def test_output_may_lie_in_another_folder_and_the_cumulative_files_do_not_follow(tmp_path: Path) -> None:
    files = perf_files(tmp_path, "/elsewhere/x.csv")
    assert files.entry_super_json == Path("/elsewhere/x_super.json")
    assert [path.name for path in files.cumulative] == ["perf.csv", "perf_super.json", "perf_super.csv"]
    assert {path.parent for path in files.cumulative} == {tmp_path}


def test_a_run_is_added_to_the_three_cumulative_files(tmp_path: Path) -> None:
    files = perf_files(tmp_path)
    assert append_cumulative(files, [ROW], [{"bs": "1"}]) == []
    assert append_cumulative(files, [PLAIN]) == []
    assert [row["model"] for row in read(files.perf_csv)] == ["a", "b"]
    assert read(files.perf_csv)[0]["tp"] == "8"
    assert [item["multi_results"] for item in json.loads(files.super_json.read_text())] == [{"tp": "8"}, None]
    assert [row["configs"] for row in read(files.super_csv)] == ['[{"bs": "1"}]', ""]
    assert "tp" not in read(files.super_csv)[0]


def test_what_is_wrong_with_perf_super_does_not_keep_perf_csv_from_its_rows(tmp_path: Path) -> None:
    files = perf_files(tmp_path)
    files.super_json.write_text("{}")
    (problem,) = append_cumulative(files, [ROW])
    assert "perf_super.json" in problem
    assert len(read(files.perf_csv)) == len(read(files.super_csv)) == 1


def test_the_entries_hold_the_last_command_only(tmp_path: Path) -> None:
    files = perf_files(tmp_path)
    write_entries(files, [([PLAIN], None), ([PLAIN], None)])
    write_entries(files, [([ROW], {"x": 1}), ([PLAIN], None)])
    assert [(row["model"], row["tp"], row["tags"]) for row in read(files.entry_csv)] == [
        ("a", "8", ""),
        ("b", "", "x,y"),
    ]
    assert [row["model"] for row in json.loads(files.entry_json.read_text())] == ["a", "b"]
    full = json.loads(files.entry_super_json.read_text())
    assert [(row["configs"], row["multi_results"]) for row in full] == [({"x": 1}, {"tp": "8"}), (None, None)]
    assert tuple(read(files.entry_super_csv)[0]) == super_columns()
    assert not any(path.exists() for path in files.cumulative)


def test_a_command_without_runs_leaves_no_numbers_of_an_earlier_one(tmp_path: Path) -> None:
    files = perf_files(tmp_path)
    write_entries(files, [([ROW], None)])
    write_entries(files, [])
    assert read(files.entry_csv) == read(files.entry_super_csv) == []
    assert json.loads(files.entry_json.read_text()) == json.loads(files.entry_super_json.read_text()) == []


def test_the_check_passes_in_an_empty_folder_and_over_our_own_files(tmp_path: Path) -> None:
    files = perf_files(tmp_path)
    check_perf_files(files)
    assert list(tmp_path.iterdir()) == []
    write_entries(files, [])
    check_perf_files(files)
    append_cumulative(files, [ROW, PLAIN])
    write_entries(files, [([ROW], None)])
    check_perf_files(files)
    files.entry_json.write_text(json.dumps([ROW.values], indent=2))  # as another program writes it
    check_perf_files(files)


@pytest.mark.parametrize(
    "output", ["perf.csv", "perf_super.csv", "./perf.csv", "perf.json", "perf_super.json", "l.csv"]
)
def test_an_output_that_would_replace_a_cumulative_file_is_refused(tmp_path: Path, output: str) -> None:
    (tmp_path / "l.csv").symlink_to("perf.csv")
    with pytest.raises(ConfigurationError, match="would replace a cumulative file"):
        check_perf_files(perf_files(tmp_path, output))


@pytest.mark.parametrize(
    ("name", "contents"),
    [
        ("models.json", '[{"name": "a", "tags": []}]'),
        ("models.json", "binary \0"),
        ("models.csv", "name,value\n"),
        ("models_super.json", '{"built_images": {"k": {"model": "x"}}}'),
        ("models_super.csv", "\0"),
    ],
)
def test_an_output_that_would_replace_another_file_is_refused(tmp_path: Path, name: str, contents: str) -> None:
    (tmp_path / name).write_text(contents)
    with pytest.raises(ConfigurationError, match="left as it is"):
        check_perf_files(perf_files(tmp_path, "models.csv"))
    assert (tmp_path / name).read_text() == contents


@pytest.mark.parametrize("name", ["perf.csv", "perf_super.json", "perf_super.csv", "perf_entry.csv", "perf_entry.json"])
def test_a_folder_in_the_place_of_a_file_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(ConfigurationError, match=name):
        check_perf_files(perf_files(tmp_path))


def test_an_output_in_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not exist"):
        check_perf_files(perf_files(tmp_path, "none/x.csv"))


def test_an_entry_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "perf_entry.json").mkdir()
    with pytest.raises(MADEngineError, match=r"perf_entry\.json"):
        write_entries(perf_files(tmp_path), [([ROW], None)])
