"""The end of a run as a person reads it, and as a machine does."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.execution.packages import package, spec

from madengine.cli.run_view import (
    MAX_REMARKS_PER_RUN,
    MAX_ROWS_PER_RUN,
    next_steps,
    report_document,
    seconds,
    show_report,
    shown_path,
    tell_github,
)
from madengine.orchestration.report import FinishedRun, RunReport
from madengine.verdict.evidence import Evidence, NodeReport, Outcome, Verdict

ROW = {"model": "m", "performance": "1.5", "metric": "x", "status": "SUCCESS"}
SEEN = Evidence("run-1", nodes=(NodeReport(0, "h", 0),))


@pytest.fixture(autouse=True)
def plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")


def run(tmp_path: Path, outcome: Outcome = Outcome.SUCCESS, **fields: Any) -> FinishedRun:
    verdict = Verdict(outcome, fields.pop("reason", "a reason"), **fields.pop("verdict", {}))
    rows = fields.pop("rows", ({**ROW, "status": outcome.value},))
    bare = FinishedRun(spec(package(tmp_path), **fields.pop("spec", {})), SEEN, verdict, rows, 1.25)
    return replace(bare, **fields)


def told(report: RunReport, capsys: pytest.CaptureFixture[str], *, verbose: bool = False) -> tuple[list[str], str]:
    show_report(report, Path("perf.csv").absolute(), verbose=verbose)
    shown = capsys.readouterr()
    return shown.out.splitlines(), shown.err


def test_github_is_told_of_failures_and_of_the_warnings_of_an_incomplete_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verdicts = (
        Verdict(Outcome.SUCCESS, "fine", warnings=("not told",)),
        Verdict(Outcome.INCOMPLETE, "fine", warnings=("one", "two\n::error::x")),
        Verdict(Outcome.FAILURE, "exit 7"),
        Verdict(Outcome.NO_METRIC, "100%"),
        Verdict(Outcome.SKIPPED, "not wanted"),
    )
    one = run(tmp_path)
    runs = tuple(replace(one, verdict=verdict) for verdict in verdicts)
    tell_github(RunReport(runs), {})
    assert capsys.readouterr() == ("", "")
    tell_github(RunReport(runs), {"GITHUB_ACTIONS": "true"})
    assert capsys.readouterr().err.splitlines() == [
        "::warning title=INCOMPLETE m/model::one",
        "::warning title=INCOMPLETE m/model::two%0A::error::x",
        "::error title=FAILURE m/model::exit 7",
        "::error title=NO_METRIC m/model::100%25",
    ]


def test_there_is_one_table_with_a_line_per_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = run(tmp_path)
    one.spec.log.parent.mkdir(parents=True)
    one.spec.log.touch()
    table, _ = told(RunReport((one,)), capsys)
    assert table[0].split() == ["model", "status", "performance", "metric", "duration", "log"]
    assert table[1].split() == ["m", "SUCCESS", "1.5", "x", "1.2", "s", "package/runs/run-1/logs/run.log"]


@pytest.mark.parametrize(
    ("outcome", "row", "expected"),
    [
        (Outcome.INCOMPLETE, ROW, ["m", "INCOMPLETE", "1.5", "x"]),
        (Outcome.INCOMPLETE, {**ROW, "performance": "", "status": "FAILURE"}, ["m", "FAILURE", "-", "x"]),
        (
            Outcome.NO_METRIC,
            {**ROW, "performance": "", "metric": "", "status": "NO_METRIC"},
            ["m", "NO_METRIC", "-", "-"],
        ),
    ],
)
def test_a_rows_status_never_says_more_than_the_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], outcome: Outcome, row: dict[str, str], expected: list[str]
) -> None:
    table, _ = told(RunReport((run(tmp_path, outcome, rows=(row,)),)), capsys)
    assert table[1].split()[:4] == expected
    assert table[1].split()[-1] == "-"


def test_a_run_of_many_rows_is_cut_and_says_where_the_rest_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, err = told(RunReport((run(tmp_path, rows=(ROW,) * (MAX_ROWS_PER_RUN + 3)),)), capsys)
    assert len(table) == 1 + MAX_ROWS_PER_RUN + 1
    assert table[-1] == "... and 3 more rows in perf.csv"
    assert "23 rows appended to perf.csv" in err


@pytest.mark.parametrize("outcome", [Outcome.FAILURE, Outcome.NO_METRIC])
def test_what_failed_says_why_how_to_mend_it_and_where_to_look(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], outcome: Outcome
) -> None:
    one = run(tmp_path, outcome, verdict={"explanation": ("searched: here", "to mend it: do this"), "notes": ("n",)})
    _, err = told(RunReport((one,)), capsys)
    assert f"{outcome.value}: m/model: a reason\n" in err
    assert "  searched: here\n  to mend it: do this\n" in err
    assert "note: m/model: n\n" in err
    assert "  m/model: everything about this run is in package/runs/run-1\n" in err
    assert "success" not in err.lower()


def test_what_was_skipped_says_why_without_alarm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, err = told(RunReport((run(tmp_path, Outcome.SKIPPED),)), capsys)
    assert "m/model: a reason\n" in err
    assert "error" not in err


def test_every_warning_is_told_beside_the_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = run(tmp_path, Outcome.INCOMPLETE, verdict={"warnings": ("node 1 exited 137", "2 of 3 rows")})
    _, err = told(RunReport((one,)), capsys)
    assert "warning: m/model: node 1 exited 137\nwarning: m/model: 2 of 3 rows\n" in err


@pytest.mark.parametrize(("verbose", "there"), [(False, False), (True, True)])
def test_notes_on_a_success_are_for_who_asks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verbose: bool, there: bool
) -> None:
    _, err = told(RunReport((run(tmp_path, verdict={"notes": ("n",)}),)), capsys, verbose=verbose)
    assert ("note: m/model: n" in err) is there


def test_what_was_not_started_is_named(tmp_path: Path) -> None:
    steps = list(next_steps(RunReport((run(tmp_path),), ("b", "c"), interrupted=True), tmp_path / "perf.csv"))
    assert steps[0] == "interrupted: not started: b, c"


def test_an_interruption_before_the_first_run_has_no_rows_to_tell_of() -> None:
    assert list(next_steps(RunReport((), ("a",), interrupted=True), Path("perf.csv"))) == [
        "interrupted: not started: a"
    ]


@pytest.mark.parametrize(
    ("saved", "said"), [((True, True), "2 rows appended"), ((True, False), "1 row appended"), ((False,), "0 rows")]
)
def test_only_rows_that_were_written_are_said_to_be(tmp_path: Path, saved: tuple[bool, ...], said: str) -> None:
    runs = tuple(run(tmp_path / str(number), saved=one) for number, one in enumerate(saved))
    assert any(said in step for step in next_steps(RunReport(runs), tmp_path / "perf.csv"))


@pytest.mark.parametrize(
    ("fields", "evidence", "said"),
    [
        ({"keep_alive": True, "engine": "podman"}, SEEN, "podman ps --filter label=madengine.run"),
        ({"keep_alive": True, "engine": "host"}, SEEN, ""),
        ({"keep_alive": True, "engine": "docker"}, Evidence("run-1"), ""),
        ({"engine": "docker"}, SEEN, ""),
    ],
)
def test_containers_that_were_left_running_can_be_found(
    tmp_path: Path, fields: dict[str, Any], evidence: Evidence, said: str
) -> None:
    steps = "\n".join(next_steps(RunReport((run(tmp_path, spec=fields, evidence=evidence),)), Path("perf.csv")))
    assert ("left running" in steps, said in steps) == (bool(said), True)


def test_the_document_for_machines_has_everything_and_is_json(tmp_path: Path) -> None:
    one = run(tmp_path, Outcome.NO_METRIC, verdict={"warnings": ("w",), "notes": ("n",), "explanation": ("e",)})
    document = json.loads(json.dumps(report_document(RunReport((one,), ("b",), True), tmp_path / "perf.csv", 5)))
    (shown,) = document.pop("runs")
    assert document == {
        "exit_code": 5,
        "interrupted": True,
        "not_started": ["b"],
        "perf_csv": str(tmp_path / "perf.csv"),
    }
    assert shown == {
        "model": "m/model",
        "run_id": "run-1",
        "run_directory": str(one.spec.run_dir),
        "log": str(one.spec.log),
        "outcome": "NO_METRIC",
        "reason": "a reason",
        "warnings": ["w"],
        "notes": ["n"],
        "explanation": ["e"],
        "duration": 1.25,
        "rows": [{**ROW, "status": "NO_METRIC"}],
    }


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (0.04, "0.0 s"),
        (1.24, "1.2 s"),
        (59.94, "59.9 s"),
        (60, "1 min 00 s"),
        (185, "3 min 05 s"),
        (3599.4, "59 min 59 s"),
        (7620, "2 h 07 min"),
    ],
)
def test_durations_read_as_people_say_them(duration: float, text: str) -> None:
    assert seconds(duration) == text


def test_a_path_is_as_short_as_it_can_be_typed(tmp_path: Path) -> None:
    assert shown_path(tmp_path / "a" / "b") == "a/b"
    assert shown_path(Path("/elsewhere")) == "/elsewhere"


def test_remarks_without_end_are_cut_and_say_where_the_rest_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    warnings = tuple(f"row {number} is empty" for number in range(MAX_REMARKS_PER_RUN + 5))
    _, err = told(RunReport((run(tmp_path, Outcome.INCOMPLETE, verdict={"warnings": warnings}),)), capsys)
    assert err.count(" is empty\n") == MAX_REMARKS_PER_RUN
    assert "warning: m/model: ... and 5 more in package/runs/run-1/run.json\n" in err


def test_a_sentence_that_was_just_said_is_not_explained_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = run(tmp_path, Outcome.NO_METRIC, reason="no r.csv", verdict={"explanation": ("no r.csv", "write it")})
    _, err = told(RunReport((one,)), capsys)
    assert err.count("no r.csv") == 1
    assert "  write it\n" in err
