"""Runs on other machines: which log is shown, where everything lies, and how to go on with what was left."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.execution.packages import package, spec

from madengine.cli.elsewhere_view import log_of
from madengine.cli.run_view import next_steps, report_document, show_report
from madengine.deployment.base import Progress
from madengine.execution.spec import Place
from madengine.orchestration.report import FinishedRun, LeftRun, RunReport
from madengine.verdict.evidence import Evidence, Measurement, NodeReport, Outcome, Verdict

ROW = {"model": "llama", "performance": "1.5", "metric": "x", "status": "SUCCESS"}
MEASURED = Evidence(
    "run-1",
    measurements=(Measurement(1.5, "x", rank=1),),
    nodes=(NodeReport(0, "n1", 3), NodeReport(1, "n2", 0)),
)
ALL_FAILED = Evidence("run-1", nodes=(NodeReport(0, "n1", 0), NodeReport(1, "n2", 137), NodeReport(2)))


@pytest.fixture(autouse=True)
def plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")


def run(tmp_path: Path, evidence: Evidence = MEASURED, outcome: Outcome = Outcome.SUCCESS) -> FinishedRun:
    there = replace(
        spec(package(tmp_path)), place=Place("slurm", 2, elsewhere=True), run_dir=tmp_path / "out" / "run-1"
    )
    return FinishedRun(there, evidence, Verdict(outcome, "a reason"), (ROW,), 9.0, job="4711")


def leave(finished: FinishedRun, *names: str, text: str = "text") -> None:
    for name in names:
        path = finished.spec.run_dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    ("evidence", "files", "shown"),
    [
        (MEASURED, ("node_0/logs/run.log", "node_1/logs/run.log", "logs/job.out"), "node_1/logs/run.log"),
        (ALL_FAILED, ("node_0/logs/run.log", "node_1/logs/run.log", "node_2/stderr"), "node_1/logs/run.log"),
        (ALL_FAILED, ("node_1/stdout", "node_1/stderr", "logs/job.out"), "node_1/stderr"),
        (ALL_FAILED, ("node_0/logs/run.log", "node_2/stderr"), "node_2/stderr"),
        (ALL_FAILED, ("node_0/logs/run.log", "logs/job.out"), "logs/job.out"),
        (Evidence("run-1", nodes=(NodeReport(0, "n1", 5),)), ("node_0/logs/run.log",), "node_0/logs/run.log"),
        (Evidence("run-1"), ("logs/job.out",), "logs/job.out"),
        (ALL_FAILED, (), None),
    ],
    ids=[
        "the rank that measured",
        "the first rank that failed",
        "what madengine said there",
        "a failing rank that left something",
        "the job's own output",
        "nothing failed",
        "no rank known",
        "nothing at all",
    ],
)
def test_the_log_that_matters_is_shown(
    tmp_path: Path, evidence: Evidence, files: Sequence[str], shown: str | None
) -> None:
    finished = run(tmp_path, evidence)
    leave(finished, *files)
    assert log_of(finished) == (finished.spec.run_dir / shown if shown else None)


def test_an_empty_log_is_not_worth_opening(tmp_path: Path) -> None:
    finished = run(tmp_path)
    leave(finished, "node_1/logs/run.log", text="")
    leave(finished, "node_1/stderr")
    assert log_of(finished) == finished.spec.run_dir / "node_1/stderr"


def test_the_table_has_that_log_and_the_end_says_where_everything_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finished = run(tmp_path)
    leave(finished, "node_0/stdout", "node_1/logs/run.log", "logs/job.out", "job.sh", "run.json")
    show_report(RunReport((finished,)), Path("perf.csv").absolute(), verbose=False)
    shown = capsys.readouterr()
    assert shown.out.splitlines()[1].split()[-1] == "out/run-1/node_1/logs/run.log"
    assert shown.err.splitlines() == [
        "1 row appended to perf.csv",
        "run directories: out",
        "in it: job.sh (the job script), logs/job.out (what it printed), run.json (the record of the run), "
        "node_<rank>/ (each node's logs, results and record)",
    ]


def test_what_failed_has_its_directory_named_beside_all(tmp_path: Path) -> None:
    steps = list(next_steps(RunReport((run(tmp_path, ALL_FAILED, Outcome.FAILURE),)), Path("perf.csv").absolute()))
    assert steps == [
        "1 row appended to perf.csv",
        "  m/model: everything about this run is in out/run-1",
        "run directories: out",
    ]


def test_containers_that_stay_are_on_their_nodes(tmp_path: Path) -> None:
    one = run(tmp_path)
    alive = replace(one, spec=replace(one.spec, keep_alive=True, engine=""))
    assert list(next_steps(RunReport((alive,)), Path("perf.csv")))[-1] == (
        "--keep-alive: containers were left running on their nodes; `docker ps --filter label=madengine.run` lists them"
    )


def test_the_summary_for_machines_has_job_and_nodes(tmp_path: Path) -> None:
    finished = run(tmp_path)
    leave(finished, "node_1/logs/run.log")
    document = json.loads(json.dumps(report_document(RunReport((finished,)), Path("perf.csv"), 0)))
    (shown,) = document["runs"]
    assert (shown["job"], shown["log"]) == ("4711", str(finished.spec.run_dir / "node_1/logs/run.log"))
    assert shown["nodes"] == [{"rank": 0, "host": "n1", "exit_code": 3}, {"rank": 1, "host": "n2", "exit_code": 0}]
    assert "left" not in document


def test_runs_that_go_on_are_listed_with_their_jobs_and_how_to_go_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = run(tmp_path).spec
    left = LeftRun(one, Progress(job="4711", state="PENDING")), LeftRun(replace(one, run_id="run-2"))
    report = RunReport((), left=left)
    show_report(report, Path("perf.csv"), verbose=False)
    shown = capsys.readouterr()
    assert [line.split() for line in shown.out.splitlines()] == [
        ["model", "run", "job", "state"],
        ["m/model", "run-1", "4711", "PENDING"],
        ["m/model", "run-2", "-", "-"],
    ]
    assert shown.err == (
        "2 runs not waited for: `madengine collect` waits for them and writes the rows, "
        "`madengine cancel RUN...` ends them\n"
    )
    assert report_document(report, Path("perf.csv"), 0)["left"] == [
        {"model": "m/model", "run_id": run_id, "run_directory": str(one.run_dir), "job": job}
        for run_id, job in (("run-1", "4711"), ("run-2", ""))
    ]
