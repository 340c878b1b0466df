"""Which rows a run leaves in perf.csv."""

from __future__ import annotations

import csv
from dataclasses import fields
from pathlib import Path

import pytest

from madengine.reporting.perf_csv import append_rows
from madengine.reporting.perf_rows import RunFacts, result_rows, rows_of
from madengine.schemas import perf_csv_columns
from madengine.verdict.evidence import EmptyRow, Evidence, Measurement, Outcome, Verdict

FACTS = RunFacts(model="scope/bert", n_gpus=8, tags=("pyt", "nlp"), build_duration=12.3456789, docker_image="ci-bert")
OWN_COLUMNS = ("performance", "metric", "relative_change", "status")


def rows(outcome: Outcome, *, facts: RunFacts = FACTS, **facets: object) -> list[dict[str, str]]:
    return rows_of(facts, Evidence(run_id="r", **facets), Verdict(outcome, "because"))  # type: ignore[arg-type]


def test_facts_and_measured_columns_together_are_the_columns_of_the_schema() -> None:
    known = [field.name for field in fields(RunFacts)]
    assert sorted([*known, *OWN_COLUMNS]) == sorted(perf_csv_columns())
    assert [name for name in perf_csv_columns() if name not in OWN_COLUMNS] == known


def test_every_row_has_all_columns_in_the_order_of_the_schema() -> None:
    (row,) = rows(Outcome.SUCCESS, measurements=(Measurement(1.0, "ms", extra=(("tp", "8"),)),))
    assert list(row) == [*perf_csv_columns(), "tp"]
    assert all(isinstance(value, str) for value in row.values())


def test_a_metric_line_gives_one_row_under_the_models_own_name() -> None:
    (row,) = rows(Outcome.SUCCESS, measurements=(Measurement(1234.5, "samples/s", text="1234.50"),))
    assert (row["model"], row["performance"], row["metric"]) == ("scope/bert", "1234.50", "samples/s")
    assert (row["status"], row["relative_change"]) == ("SUCCESS", "")
    assert (row["n_gpus"], row["tags"], row["build_duration"]) == ("8", "pyt,nlp", "12.345679")


@pytest.mark.parametrize(
    ("text", "value", "written"),
    [("10.123456789012345678", 10.1, "10.123456789012345678"), ("1e3", 1000.0, "1e3"), ("", 0.1, "0.1")],
)
def test_a_number_is_written_as_it_was_measured(text: str, value: float, written: str) -> None:
    (row,) = rows(Outcome.SUCCESS, measurements=(Measurement(value, "x", text=text),))
    assert row["performance"] == written


@pytest.mark.parametrize("outcome", [Outcome.SKIPPED, Outcome.FAILURE, Outcome.NO_METRIC])
def test_a_run_without_a_result_leaves_one_row_with_the_outcomes_word(outcome: Outcome) -> None:
    (row,) = rows(outcome)
    assert (row["model"], row["status"], row["performance"]) == ("scope/bert", outcome.value, "")


def test_rows_with_a_number_succeed_and_rows_without_one_fail() -> None:
    found = rows(
        Outcome.INCOMPLETE,
        measurements=(Measurement(1.0, "ms", name="a", text="1"), Measurement(2.0, "ms", name="b", text="2")),
        empty_rows=(EmptyRow("c", "ms", "is empty"),),
    )
    assert [(row["model"], row["performance"], row["status"]) for row in found] == [
        ("scope/bert_a", "1", "SUCCESS"),
        ("scope/bert_b", "2", "SUCCESS"),
        ("scope/bert_c", "", "FAILURE"),
    ]


@pytest.mark.parametrize("outcome", [Outcome.FAILURE, Outcome.NO_METRIC])
def test_where_nothing_was_measured_empty_rows_have_the_outcomes_word(outcome: Outcome) -> None:
    found = rows(outcome, empty_rows=(EmptyRow("a", "ms", "is empty"), EmptyRow("", "", "is nan")))
    assert [(row["model"], row["status"]) for row in found] == [
        ("scope/bert_a", outcome.value),
        ("scope/bert", outcome.value),
    ]


@pytest.mark.parametrize("word", ["FAILURE", "failed", " Error "])
def test_a_row_that_says_it_failed_stays_failed(word: str) -> None:
    extra = (("Status", word),)
    measured, empty = rows(
        Outcome.NO_METRIC,
        measurements=(Measurement(1.0, "ms", extra=extra),),
        empty_rows=(EmptyRow("a", "ms", "says so", extra=extra),),
    )
    assert measured["status"] == empty["status"] == "FAILURE"


def test_a_results_file_fills_what_is_not_known_and_never_overrules_what_is() -> None:
    extra = (
        ("n_gpus", "4"),
        ("Training_Precision", "fp8"),
        ("model", "x"),
        ("status", "SUCCESS"),
        ("relative_change", "9"),
        ("metric", "other"),
        ("performance", "7"),
        ("build_number", "12"),
    )
    (row,) = rows(Outcome.SUCCESS, measurements=(Measurement(1.0, "ms", text="1", name="m", extra=extra),))
    assert list(row) == list(perf_csv_columns())
    assert (row["n_gpus"], row["training_precision"], row["build_number"]) == ("8", "fp8", "0")
    assert (row["model"], row["metric"], row["performance"]) == ("scope/bert_m", "ms", "1")
    assert row["relative_change"] == ""


def test_other_columns_are_kept_and_named() -> None:
    extra = (("tp", "8"), ("TP", "9"), ("", "lost?"), (" ", ""))
    evidence = Evidence("r", measurements=(Measurement(1.0, "ms", extra=extra),))
    (row,) = result_rows(FACTS, evidence, Verdict(Outcome.SUCCESS, ""))
    assert row.extra == ("tp", "TP", "unnamed")
    assert [row.values[name] for name in row.extra] == ["8", "9", "lost?"]


def test_a_skipped_run_leaves_one_row_whatever_lies_about() -> None:
    (row,) = rows(Outcome.SKIPPED, measurements=(Measurement(1.0, "ms"),))
    assert (row["status"], row["performance"]) == ("SKIPPED", "")


def test_secrets_are_taken_out_of_every_value() -> None:
    evidence = Evidence("r", measurements=(Measurement(1.0, "ms", extra=(("cmd", "--token hf_canary"),)),))
    found = rows_of(
        RunFacts(model="m", args="hf_canary"),
        evidence,
        Verdict(Outcome.SUCCESS, ""),
        redact=lambda text: text.replace("hf_canary", "***"),
    )
    assert "hf_canary" not in repr(found)
    assert (found[0]["args"], found[0]["cmd"]) == ("***", "--token ***")


def test_the_real_results_file_comes_back_from_perf_csv_as_it_was(real_mad: Path, tmp_path: Path) -> None:
    with (real_mad / "results" / "perf_Kimi-K3.csv").open(newline="") as file:
        real = list(csv.DictReader(file))
    measured = tuple(
        Measurement(
            float(line["performance"]),
            line["metric"],
            name=line["model"],
            text=line["performance"],
            extra=tuple((k, v) for k, v in line.items() if k not in ("model", "performance", "metric")),
        )
        for line in real
    )
    path = tmp_path / "perf.csv"
    append_rows(path, rows(Outcome.SUCCESS, measurements=measured))
    with path.open(newline="") as file:
        found = list(csv.DictReader(file))
    assert [row["model"] for row in found] == ["scope/bert_Kimi-K3"] * 6
    for name in real[0]:
        if name != "model":
            assert [row[name] for row in found] == [line[name] for line in real]
