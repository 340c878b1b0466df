"""Runs that were submitted before: found, waited for, recorded once, cancelled."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.unit.orchestration.orders import RUN_ID, run_directory

from madengine.catalog.card import ModelCard
from madengine.core.errors import ConfigurationError, ExecutionError
from madengine.core.interruptions import Interruptions
from madengine.deployment.base import CheckProblem, Finding, Handle, Observed, Progress, Rendering, RunState, Workshop
from madengine.deployment.order import read_order, write_order
from madengine.deployment.slurm.target import SlurmTarget
from madengine.execution.spec import Place, RunSpec
from madengine.orchestration import cancel as cancelling
from madengine.orchestration.collect import CollectingRecorder, collect_all, target_for
from madengine.orchestration.report import RunReport
from madengine.orchestration.runs_here import FoundRun, named_runs, open_runs, read_run
from madengine.verdict.evidence import Evidence, Measurement, NodeReport, Outcome


class Cluster:
    """A target whose runs end after some looks; ``polls`` counts them."""

    name, remote = "slurm", True

    def __init__(self, ends_after: int = 0) -> None:
        self.ends_after, self.polls = ends_after, 0
        self.cancelled: list[str] = []
        self.trouble = ""

    def poll(self, handles: Sequence[Handle], patience: float) -> Mapping[str, RunState]:
        self.polls += 1
        state = RunState.ENDED if self.polls > self.ends_after else RunState.RUNNING
        return {handle.run_id: state for handle in handles}

    def progress(self, handles: Sequence[Handle]) -> Mapping[str, Progress]:
        return {handle.run_id: Progress("7", "RUNNING") for handle in handles}

    def collect(self, handle: Handle) -> Evidence:
        return Evidence(handle.run_id, measurements=(Measurement(1.5, "x"),), nodes=(NodeReport(0, "n1", 0),))

    def observed(self, handle: Handle) -> Observed:
        return Observed(hosts=("n1", "n2"), duration=3.0, job="7")

    def cancel(self, handle: Handle) -> None:
        if self.trouble:
            raise ExecutionError(self.trouble)
        self.cancelled.append(handle.run_id)

    @classmethod
    def runs_root(cls, deployment: Mapping[str, Any]) -> Path:
        raise NotImplementedError

    @classmethod
    def create(cls, workshop: Workshop) -> Cluster:
        raise NotImplementedError

    def place(self, card: ModelCard) -> Place:
        raise NotImplementedError

    def check(self, specs: Sequence[RunSpec]) -> tuple[CheckProblem, ...]:
        raise NotImplementedError

    def examine(self, cards: Sequence[ModelCard]) -> tuple[Finding, ...]:
        raise NotImplementedError

    def render(self, spec: RunSpec) -> Rendering:
        raise NotImplementedError

    def submit(self, spec: RunSpec, rendering: Rendering, after: Handle | None = None) -> Handle:
        raise NotImplementedError


class Silent:
    """A narrator that keeps the progress it was told."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def started(self, number: int, total: int, spec: RunSpec) -> None: ...

    def progress(self, runs: Sequence[tuple[RunSpec, Progress]]) -> None:
        self.seen.append(len(runs))

    def interrupted(self, spec: RunSpec) -> None: ...

    def ended(self, number: int, total: int, run: object) -> None: ...


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder where commands are given, with one run that was submitted from it."""
    run_dir = run_directory(tmp_path, directory=str(tmp_path))
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / RUN_ID).symlink_to(run_dir)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def another(here: Path, run_id: str) -> Path:
    first = here / "results" / RUN_ID
    run_dir = here / "slurm_results" / run_id
    run_dir.mkdir(parents=True)
    (run_dir / "manifest.json").write_bytes((first / "manifest.json").read_bytes())
    order = read_order(first)
    write_order(run_dir, type(order)(**{**vars(order), "run_id": run_id}))
    return run_dir


def collected(
    runs: Sequence[FoundRun], cluster: Cluster | None = None, interrupted: int = 0, **rest: Any
) -> tuple[RunReport, CollectingRecorder]:
    recorder, interruptions = CollectingRecorder(("madengine", "collect")), Interruptions()
    interruptions.count = interrupted
    report = collect_all(runs, cluster or Cluster(), recorder, Silent(), interruptions, **rest)
    recorder.finish()
    return report, recorder


def rows(here: Path) -> list[dict[str, str]]:
    with (here / "perf.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_run_is_collected_and_recorded_where_it_was_submitted(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (run,) = open_runs(here)
    (here / "elsewhere").mkdir()
    monkeypatch.chdir(here / "elsewhere")
    report, recorder = collected([run], Cluster(ends_after=3))
    assert [each.verdict.outcome for each in report.runs] == [Outcome.SUCCESS]
    assert (recorder.all_problems, recorder.all_remarks) == ([], [])
    (row,) = rows(here)
    assert (row["model"], row["performance"], row["machine_name"], row["nnodes"]) == ("m", "1.5", "n1,n2", "2")
    assert (row["deployment_type"], row["test_duration"]) == ("slurm", "3.0")
    assert (here / "perf_entry.csv").exists()
    assert json.loads((run.run_dir / "run.json").read_text())["verdict"]["outcome"] == "SUCCESS"
    assert open_runs(here) == []


def test_collecting_twice_adds_nothing(here: Path) -> None:
    runs = open_runs(here)
    collected(runs)
    cluster = Cluster()
    report, _ = collected(named_runs([RUN_ID], here), cluster)
    assert [run.before for run in report.runs] == [True]
    assert (len(rows(here)), cluster.polls) == (1, 0)


def test_the_facts_of_the_submitting_command_are_kept(here: Path) -> None:
    run_dir = here / "results" / RUN_ID
    order = read_order(run_dir)
    write_order(run_dir, type(order)(**{**vars(order), "row": {"BUILD_NUMBER": "42"}}))
    collected(open_runs(here))
    assert rows(here)[0]["build_number"] == "42"


def test_a_folder_that_is_gone_is_replaced_by_this_one_with_a_word(here: Path) -> None:
    run_dir = here / "results" / RUN_ID
    order = read_order(run_dir)
    write_order(run_dir, type(order)(**{**vars(order), "directory": str(here / "gone")}))
    _, recorder = collected(open_runs(here))
    assert "is gone: its rows go to" in recorder.remarks[0]
    assert len(rows(here)) == 1


def test_waiting_ends_when_patience_does_and_the_run_goes_on(here: Path) -> None:
    times = iter(range(100))
    report, _ = collected(open_runs(here), Cluster(ends_after=99), patience=3, clock=lambda: float(next(times)))
    assert (report.runs, [left.progress.job for left in report.left]) == ((), ["7"])
    assert not (here / "perf.csv").exists()


def test_an_interruption_ends_the_waiting_and_not_the_run(here: Path) -> None:
    cluster = Cluster(ends_after=99)
    report, _ = collected(open_runs(here), cluster, interrupted=1)
    assert (report.interrupted, len(report.left), cluster.cancelled) == (True, 1, [])


def test_a_package_that_has_gone_takes_nothing_from_a_run(here: Path) -> None:
    (here / "package" / "scripts" / "m" / "run.sh").unlink()
    report, _ = collected(open_runs(here))
    assert report.runs[0].spec.script.file == "scripts/m/run.sh"


@pytest.mark.parametrize("word", [RUN_ID, RUN_ID[:20], "abc123", "7", f"runs/{RUN_ID}", "PATH"])
def test_a_run_has_many_names(here: Path, word: str) -> None:
    another(here, "20260202T000000Z-other-ffffff")
    run_dir = here / "results" / RUN_ID
    (run_dir / "submitted.json").write_text(json.dumps({"job_id": "7"}))
    (run,) = named_runs([str(run_dir) if word == "PATH" else word, RUN_ID], here)
    assert run.run_dir == run_dir


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("nope", "there is no run 'nope' here"),
        ("2026", "2 runs are meant by '2026'"),
        ("a/b", "this is no directory of a run"),
        ("runs", "there is no run 'runs' here"),
        ("", "2 runs are meant"),
    ],
)
def test_a_name_that_no_run_or_several_have_names_those_there_are(here: Path, word: str, said: str) -> None:
    another(here, "20260202T000000Z-other-ffffff")
    with pytest.raises(ConfigurationError) as error:
        named_runs([word], here)
    assert said in str(error.value)


def test_in_a_folder_without_runs_that_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="go to the folder where it was submitted"):
        named_runs(["x"], tmp_path)
    assert open_runs(tmp_path) == []


def test_a_directory_that_cannot_be_understood_is_left_out_and_named_when_it_is_asked_for(here: Path) -> None:
    broken = another(here, "20260202T000000Z-other-ffffff")
    (broken / "job.json").write_text("{")
    assert [run.order.run_id for run in open_runs(here)] == [RUN_ID]
    with pytest.raises(ConfigurationError, match=r"job\.json"):
        named_runs([str(broken)], here)


def test_a_manifest_without_the_runs_model_is_no_run(here: Path) -> None:
    run_dir = another(here, "r")
    order = read_order(run_dir)
    write_order(run_dir, type(order)(**{**vars(order), "key": "other"}))
    with pytest.raises(ConfigurationError, match="holds no 'other'"):
        read_run(run_dir)


def test_a_run_knows_its_target(here: Path) -> None:
    assert isinstance(target_for(open_runs(here), os.environ), SlurmTarget)


def cancelled(here: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(cancelling, "target_for", lambda runs, environ: cluster)
    return [item.outcome for item in cancelling.cancel_all(named_runs([RUN_ID], here), {})]


def test_a_run_is_cancelled_through_its_target(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(ends_after=9)
    assert cancelled(here, cluster, monkeypatch) == ["cancelled"]
    assert cluster.cancelled == [RUN_ID]


def test_an_ended_or_recorded_run_stays_as_it_is(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    assert cancelled(here, cluster, monkeypatch) == ["ended"]
    collected(open_runs(here))
    assert cancelled(here, Cluster(ends_after=9), monkeypatch) == ["ended"]
    assert cluster.cancelled == []


def test_a_run_that_cannot_be_cancelled_says_why(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(ends_after=9)
    cluster.trouble = "permission denied"
    assert cancelled(here, cluster, monkeypatch) == ["failed"]
