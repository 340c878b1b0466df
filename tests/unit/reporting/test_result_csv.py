"""Results files."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from madengine.reporting import result_csv
from madengine.reporting.result_csv import (
    ResultRow,
    count_rows,
    has_result_shape,
    header_rejection,
    is_own_output,
    metric_rejection_reason,
    missing_columns,
    read_columns,
    read_results_rows,
    suggest_candidates,
    suggestion_lines,
)

HEADER = "model,performance,metric\n"


def written(folder: Path, content: str | bytes, name: str = "x.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_columns_are_named_as_they_are_compared(tmp_path: Path) -> None:
    assert read_columns(written(tmp_path, "\ufeffModel, 'Performance' ,\"Latency (ms)\"\n")) == [
        "model",
        "performance",
        "latency (ms)",
    ]
    assert read_columns(written(tmp_path, "")) == []
    assert read_columns(tmp_path / "missing.csv") == []
    assert read_columns(tmp_path) == []


@pytest.mark.parametrize(
    ("header", "missing"),
    [
        ("model,performance,metric", []),
        ("x,METRIC, performance ,Model,y", []),
        ("performance", ["model", "metric"]),
        ("model,metric", ["performance"]),
        ("model,performance", ["metric"]),
        ("model,latency (ms),tp", ["performance", "metric"]),
        ("", ["model", "performance", "metric"]),
    ],
)
def test_a_results_file_is_known_by_three_columns_in_any_order(header: str, missing: list[str], tmp_path: Path) -> None:
    path = written(tmp_path, header)
    assert missing_columns(path) == missing
    assert has_result_shape(path) is (missing == [])


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("perf.csv", True),
        ("PERF.CSV", True),
        ("perf_super.csv", True),
        ("perf_super.json", True),
        ("perf_entry.csv", True),
        ("perf_entry_super.json", True),
        ("some/where/perf.csv", True),
        ("perf_Kimi-K3.csv", False),
        ("perf_.csv", False),
        ("myperf.csv", False),
        ("perf.csv.bak", False),
        ("perf.csv/results.csv", False),
        ("results.csv", False),
    ],
)
def test_our_own_files_are_known_by_name(name: str, own: bool) -> None:
    assert is_own_output(Path(name)) is own


def test_a_measured_row_keeps_everything(tmp_path: Path) -> None:
    path = written(tmp_path, "Run,model,Unit,performance,metric,model,,tp\n7, m ,ms, 12.50 ,ttft,again,?,8\n")
    assert list(read_results_rows(path)) == [
        ResultRow(
            line=2,
            name="m",
            metric="ttft",
            text="12.50",
            value=12.5,
            extra=(("Run", "7"), ("Unit", "ms"), ("tp", "8")),
        )
    ]


@pytest.mark.parametrize(
    ("cell", "reason", "blank"),
    [
        ("", "the value is empty", True),
        ("  ", "the value is empty", True),
        ('""', "the value is empty", True),
        ("nan", "'nan' is not a finite number", False),
        ("inf", "'inf' is not a finite number", False),
        ("N/A", "'N/A' says that there is no value", False),
        ("1e999", "'1e999' is too large for a number", False),
        ('"1,234.5"', "'1,234.5' has thousands separators or a decimal comma", False),
        ("1_000", "'1_000' has thousands separators or a decimal comma", False),
        ("12 tok/s", "'12 tok/s' is not a number", False),
        ("1,234.5", "the row has 4 cells for 3 columns, so a comma is not quoted", False),
    ],
)
def test_a_row_without_a_finite_number_says_which_it_was(cell: str, reason: str, blank: bool, tmp_path: Path) -> None:
    (row,) = read_results_rows(written(tmp_path, f"{HEADER}m,{cell},x\n"))
    assert (row.value, row.reason, row.blank) == (None, reason, blank)


@pytest.mark.parametrize(
    ("status", "failed"),
    [
        ("FAILURE", True),
        (" failed ", True),
        ("Fail", True),
        ("ERROR", True),
        ("Timeout", True),
        ("NO_METRIC", True),
        ("SKIPPED", True),
        ("cancelled", True),
        ("canceled", True),
        ("crashed", True),
        ("SUCCESS", False),
        ("", False),
        ("ok", False),
        ("failures: 0", False),
    ],
)
def test_a_row_that_says_itself_that_it_failed_stays_failed(status: str, failed: bool, tmp_path: Path) -> None:
    (row,) = read_results_rows(written(tmp_path, f"model,performance,metric,Status\nm,5,x,{status}\n"))
    assert (row.value is None) is failed
    assert row.reason == (f"the row itself says '{status.strip()}'" if failed else "")
    assert row.extra == (("Status", status.strip()),)


def test_a_short_row_has_empty_cells(tmp_path: Path) -> None:
    first, second = read_results_rows(written(tmp_path, f"{HEADER}m,5\nm\n"))
    assert (first.value, first.metric) == (5.0, "")
    assert (second.value, second.reason) == (None, "the value is empty")


def test_rows_are_counted(tmp_path: Path) -> None:
    path = written(tmp_path, f"{HEADER}a,1,x\nb,,x\n{HEADER}c,3,x\n\n")
    assert count_rows(path) == (2, 3)
    assert count_rows(written(tmp_path, "model,metric\na,x\n")) == (0, 1)
    assert count_rows(written(tmp_path, "")) == (0, 0)
    assert count_rows(tmp_path / "missing.csv") == (0, 0)
    assert count_rows(written(tmp_path, f"{HEADER}a,1,x\n".encode() + b"\xff\n")) == (1, 1)


def test_many_rows_are_all_counted(tmp_path: Path) -> None:
    assert count_rows(written(tmp_path, HEADER + "a,1,x\n" * 10_001)) == (10_001, 10_001)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (f"{HEADER}m,5,x\n", None),
        (f"{HEADER}m,,x\nm,5,x\n", None),
        ("performance\n5\n", None),
        ("", "the file is empty"),
        ("\n\n", "the file is empty"),
        (HEADER, "it has a header and no rows"),
        ("model,metric\nm,x\n", "no 'performance' column; found: model, metric"),
        ("model;performance;metric\nm;5;x\n", "no 'performance' column; found: model;performance;metric"),
        ('{"a":\n1}', "no 'performance' column; found: {\"a\":"),
        (f"{HEADER}m,,x\n", "every row has an empty 'performance' value"),
        (f"{HEADER}m,,x\nm\n", "every row has an empty 'performance' value"),
        (
            f"{HEADER}m,,x\nm,nan,x\nm,,x\n",
            "none of its 3 rows measured anything; line 3: 'nan' is not a finite number",
        ),
        (
            f"{HEADER}m,inf,x\nm,nan,x\n",
            "none of its 2 rows measured anything; line 2: 'inf' is not a finite number",
        ),
        (f"{HEADER}m,nan,x\n", "its one row measured nothing; line 2: 'nan' is not a finite number"),
        (b"\xff\n", "not readable as CSV: line 1 is not UTF-8 text"),
        (f"{HEADER}m,,x\n".encode() + b"\xff\n", "not readable as CSV: line 3 is not UTF-8 text"),
    ],
)
def test_a_file_is_rejected_with_its_reason(content: str | bytes, reason: str | None, tmp_path: Path) -> None:
    assert metric_rejection_reason(written(tmp_path, content)) == reason


def test_a_path_that_is_no_file_is_rejected_with_its_reason(tmp_path: Path) -> None:
    assert metric_rejection_reason(tmp_path / "missing.csv") == "there is no such file"
    assert metric_rejection_reason(tmp_path) == "not readable as CSV: it is a directory"


def test_a_header_with_a_performance_column_is_not_rejected(tmp_path: Path) -> None:
    assert header_rejection(written(tmp_path, HEADER)) is None


def test_of_many_strange_columns_the_first_twenty_are_named(tmp_path: Path) -> None:
    twenty = ",".join(f"c{n}" for n in range(20))
    assert metric_rejection_reason(written(tmp_path, twenty)) == "no 'performance' column; found: " + ", ".join(
        f"c{n}" for n in range(20)
    )
    reason = metric_rejection_reason(written(tmp_path, f"{twenty},more"))
    assert reason is not None
    assert reason.endswith(", c18, c19 and 1 more")


def test_candidates_lie_directly_in_the_folders_and_look_like_results(tmp_path: Path) -> None:
    inner = tmp_path / "run_directory"
    inner.mkdir()
    written(tmp_path, HEADER, "a_empty.csv")
    good = written(tmp_path, f"{HEADER}m,5,x\n", "b.CSV")
    best = written(inner, f"{HEADER}m,5,x\n", "a.csv")
    for name in ("perf.csv", "perf_super.csv", "perf_entry.csv", "notes.txt", "c.json"):
        written(tmp_path, f"{HEADER}m,5,x\n", name)
    written(tmp_path, "a,b\n1,2\n", "other.csv")
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "deep").mkdir()
    written(tmp_path / "deep", f"{HEADER}m,5,x\n", "deep.csv")
    (tmp_path / "link.csv").symlink_to(good)
    found = suggest_candidates([tmp_path, inner, tmp_path, tmp_path / "missing"])
    assert found == [best, good, tmp_path / "a_empty.csv"]


def test_a_folder_of_thousands_of_files_is_looked_into_up_to_a_limit(tmp_path: Path) -> None:
    for number in range(result_csv._CANDIDATE_LIMIT + 5):
        written(tmp_path, HEADER, f"{number:04}.csv")
    assert len(suggest_candidates([tmp_path])) == result_csv._CANDIDATE_LIMIT


def test_a_suggestion_says_how_to_declare_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, f"{HEADER}m,5,x\n", "r.csv")
    assert suggestion_lines([tmp_path]) == [
        f'{path} (1 of 1 row with a number): declare it in the card as "multiple_results": "r.csv"'
    ]
    written(tmp_path, f"{HEADER}m,5,x\nm,,x\n", "r.csv")
    assert "(1 of 2 rows with a number)" in suggestion_lines([tmp_path])[0]
    written(tmp_path, HEADER, "r.csv")
    assert "(0 of 0 rows with a number)" in suggestion_lines([tmp_path])[0]


def test_rows_of_a_suggestion_are_counted_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_csv, "_COUNTED_ROWS", 3)
    written(tmp_path, HEADER + "m,5,x\n" * 4)
    assert "(3 of 3 or more rows with a number)" in suggestion_lines([tmp_path])[0]


def test_only_so_many_suggestions_are_made_and_the_rest_is_counted(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv", "c.csv", "d.csv", "e.csv"):
        written(tmp_path, f"{HEADER}m,5,x\n", name)
    lines = suggestion_lines([tmp_path])
    assert len(lines) == 3
    assert lines[-1].endswith('"c.csv" (and 2 more)')
    assert lines[0].endswith('"a.csv"')
    assert len(suggestion_lines([tmp_path], 5)) == 5
    assert suggestion_lines([tmp_path], 5)[-1].endswith('"e.csv"')
    assert suggestion_lines([tmp_path], 0) == []
    assert suggestion_lines([tmp_path / "missing"]) == []


def test_what_is_spelt_like_the_declared_name_comes_first(tmp_path: Path) -> None:
    for name in ("a.csv", "perf_Llama-3.1-8B.csv", "perf_qwen.csv"):
        written(tmp_path, f"{HEADER}m,5,x\n", name)
    first = suggestion_lines([tmp_path], like="perf_llama-3.1_8b.csv")[0]
    assert first.endswith('"perf_Llama-3.1-8B.csv"')


def test_a_file_of_the_declared_name_is_not_suggested(tmp_path: Path) -> None:
    written(tmp_path, f"{HEADER}m,5,x\n", "a.csv")
    assert suggestion_lines([tmp_path], like="a.csv") == []


def test_the_real_sample_reads(real_mad: Path) -> None:
    path = real_mad / "results" / "perf_Kimi-K3.csv"
    rows = list(read_results_rows(path))
    assert count_rows(path) == (6, 6)
    assert [row.metric for row in rows][:2] == ["throughput_tot", "throughput_gen"]
    assert rows[0].value == 68.20421075018477
    assert rows[0].name == "Kimi-K3"
    assert dict(rows[0].extra)["unit"] == "tok/sec"
    assert len(dict(rows[0].extra)["cmd"]) > 900


@settings(deadline=None, max_examples=150)
@given(st.one_of(st.binary(max_size=200), st.text(alphabet='model,performance\n"1.e-n', max_size=80).map(str.encode)))
def test_no_content_raises(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    folder = tmp_path_factory.getbasetemp() / "fuzz"
    folder.mkdir(exist_ok=True)
    path = written(folder, HEADER.encode() + content)
    measured, total = count_rows(path)
    assert 0 <= measured <= total
    assert (metric_rejection_reason(path) is None) == (measured > 0)
    missing_columns(written(folder, content))
    suggestion_lines([folder])


@settings(deadline=None)
@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=8))
def test_only_finite_numbers_measure(tmp_path_factory: pytest.TempPathFactory, values: list[float]) -> None:
    path = written(tmp_path_factory.getbasetemp(), HEADER + "".join(f"m,{value!r},x\n" for value in values), "f.csv")
    assert count_rows(path) == (sum(math.isfinite(value) for value in values), len(values))
