"""Why a run measured nothing."""

from __future__ import annotations

from pathlib import Path

from madengine.reporting.log_scan import LogReading
from madengine.reporting.no_metric import Expected, missing_metric
from madengine.verdict.evidence import ContractProblem, Measurement

GOOD = "model,performance,metric\nm,5,x\n"


def expected(folder: Path, name: str = "") -> Expected:
    return Expected(name, (folder,), "card", {"MAD_MODEL_NAME": "card", "MAD_SECRETS_HFTOKEN": "canary"})


def test_a_measured_log_has_no_problem(tmp_path: Path) -> None:
    log = LogReading(measurement=Measurement(5.0, "x"), rejected=("run.log:1: performance: nan x - no",))
    assert missing_metric(log, expected(tmp_path), log_path=tmp_path / "run.log") == ()


def test_a_card_that_declares_a_file_owes_no_metric_line(tmp_path: Path) -> None:
    assert missing_metric(LogReading(), expected(tmp_path, "x.csv"), log_path=tmp_path / "run.log") == ()


def test_nothing_printed_and_nothing_declared(tmp_path: Path) -> None:
    assert missing_metric(LogReading(), expected(tmp_path), log_path=tmp_path / "run.log") == (
        ContractProblem(
            summary="run.log has no line 'performance: <number> <metric>' and card card declares no results file",
            searched=(f"{tmp_path / 'run.log'}",),
            given=("MAD_MODEL_NAME=card", "MAD_SECRETS_HFTOKEN=***"),
            candidates=(),
            remedy="let the script print a line 'performance: <number> <metric>' of its own, or declare the CSV it "
            'writes as "multiple_results" in card card',
        ),
    )


def test_a_results_file_that_nobody_declared_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(GOOD)
    (problem,) = missing_metric(LogReading(), expected(tmp_path), log_path=tmp_path / "run.log")
    assert problem.candidates == (
        f'{tmp_path / "x.csv"} (1 of 1 row with a number): declare it in the card as "multiple_results": "x.csv"',
    )
    assert problem.remedy == (
        'declare the file as "multiple_results" in card card, or let the script print a line '
        "'performance: <number> <metric>' of its own"
    )


def test_rejected_metric_lines_are_told(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(GOOD)
    log = LogReading(rejected=("run.log:12: performance: nan x - 'nan' is not a finite number",))
    (problem,) = missing_metric(log, expected(tmp_path), log_path=tmp_path / "run.log")
    assert problem.summary == (
        "the metric lines hold no usable number: run.log:12: performance: nan x - 'nan' is not a finite number"
    )
    assert problem.searched == (str(tmp_path / "run.log"),)
    assert problem.given
    assert problem.candidates
    assert problem.remedy.startswith("print 'performance: <number> <metric>' with a plain, finite number")


def test_beside_a_declared_file_only_the_lines_themselves_are_told(tmp_path: Path) -> None:
    (tmp_path / "y.csv").write_text(GOOD)
    log = LogReading(rejected=("a", "b", "c", "d", "e"))
    (problem,) = missing_metric(log, expected(tmp_path, "x.csv"), log_path=tmp_path / "run.log")
    assert problem.summary == "the metric lines hold no usable number: a; b; c; and 2 more"
    assert (problem.given, problem.candidates) == ((), ())
