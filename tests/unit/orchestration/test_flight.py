"""Several runs under way at once, on a target elsewhere that a script tells when what ends and what goes wrong."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tests.unit.orchestration.worlds import planned

from madengine.core.errors import ExecutionError
from madengine.core.interruptions import Interruptions, counted_interruptions
from madengine.deployment.base import Handle, Observed, Progress, Rendering, RunState
from madengine.execution.spec import Place, RunSpec
from madengine.orchestration.report import NOTHING_OBSERVED, FinishedRun, RunReport
from madengine.orchestration.run import GIVE_UP, run_all, submit_all
from madengine.verdict.evidence import (
    Evidence,
    Interruption,
    InterruptionKind,
    Measurement,
    NodeReport,
    Outcome,
    Verdict,
)

SEEN = Observed(hosts=("node1", "node2"), duration=7.0)


class Cluster:
    """A remote target. Each look ends the run that began first, or those that ``ends`` names for that look."""

    name = "cluster"
    remote = True

    def __init__(
        self, *, ends: Mapping[int, Sequence[str]] | None = None, on_look: Callable[[int], None] = lambda number: None
    ) -> None:
        self.looks: list[tuple[str, ...]] = []
        self.waits: list[float] = []
        self.submitted: list[str] = []
        self.after: dict[str, str] = {}
        self.cancelled: list[str] = []
        self.refusals: dict[str, Exception] = {}
        self.unreadable: dict[str, Exception] = {}
        self.deaf: dict[str, Exception] = {}
        self._ends, self._on_look = ends, on_look
        self._ended: set[str] = set()
        self._models: dict[str, str] = {}

    def render(self, spec: RunSpec) -> Rendering:
        return Rendering()

    def submit(self, spec: RunSpec, rendering: Rendering, after: Handle | None = None) -> Handle:
        name = spec.card.name
        if name in self.refusals:
            raise self.refusals[name]
        self._models[spec.run_id] = name
        self.submitted.append(name)
        if after is not None:
            self.after[name] = self._models[after.run_id]
        return Handle(spec.run_id, spec.run_dir)

    def poll(self, handles: Sequence[Handle], patience: float) -> Mapping[str, RunState]:
        names = tuple(self._models[handle.run_id] for handle in handles)
        self.looks.append(names)
        self.waits.append(patience)
        self._on_look(len(self.looks))
        self._ended.update(names[:1] if self._ends is None else self._ends.get(len(self.looks), ()))
        return {h.run_id: RunState.ENDED if self._has_ended(h) else RunState.RUNNING for h in handles}

    def progress(self, handles: Sequence[Handle]) -> Mapping[str, Progress]:
        return {handle.run_id: Progress(job=f"job of {self._models[handle.run_id]}") for handle in handles}

    def collect(self, handle: Handle) -> Evidence:
        name = self._models[handle.run_id]
        if name in self.unreadable:
            raise self.unreadable[name]
        if name in self.cancelled:
            return Evidence(handle.run_id, interruption=Interruption(InterruptionKind.CANCELLED, "as you wished"))
        return Evidence(handle.run_id, measurements=(Measurement(1.0, "x"),), nodes=(NodeReport(0, "h", 0),))

    def observed(self, handle: Handle) -> Observed:
        if self._models[handle.run_id] in self.unreadable:
            raise ValueError("no number")
        return SEEN

    def cancel(self, handle: Handle) -> None:
        name = self._models[handle.run_id]
        if name in self.deaf:
            raise self.deaf.pop(name)
        self.cancelled.append(name)

    def _has_ended(self, handle: Handle) -> bool:
        name = self._models[handle.run_id]
        return name in self._ended or (name in self.cancelled and self._ends is None)


class Scribe:
    """Recorder and narrator."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.closed_as: dict[str, str] = {}
        self.told_progress: list[list[tuple[str, str]]] = []

    def opened(self, spec: RunSpec) -> None:
        self.told.append(f"open {spec.card.name}")

    def closed(
        self, spec: RunSpec, evidence: Evidence, verdict: Verdict, observed: Observed = NOTHING_OBSERVED
    ) -> FinishedRun:
        self.told.append(f"close {spec.card.name}")
        self.closed_as[spec.card.name] = verdict.outcome.value
        return FinishedRun(spec, evidence, verdict, (), observed.duration or 0.0, observed=observed)

    def started(self, number: int, total: int, spec: RunSpec) -> None:
        self.told.append(f"{number}/{total}")

    def progress(self, runs: Sequence[tuple[RunSpec, Progress]]) -> None:
        self.told_progress.append([(spec.card.name, progress.job) for spec, progress in runs])

    def interrupted(self, spec: RunSpec) -> None:
        self.told.append(f"interrupted {spec.card.name}")

    def ended(self, number: int, total: int, run: FinishedRun) -> None:
        self.told.append(f"{number}/{total} done")


def specs(tmp_path: Path, names: str) -> list[RunSpec]:
    """A run elsewhere for each letter."""
    return [replace(planned(tmp_path, {"name": name}), place=Place("cluster", 2, elsewhere=True)) for name in names]


def carry_out(cluster: Cluster, runs: Sequence[RunSpec], in_flight: int = 3) -> tuple[RunReport, Scribe]:
    scribe = Scribe()
    with counted_interruptions() as interruptions:
        return run_all(runs, cluster, scribe, scribe, interruptions, in_flight=in_flight), scribe


def models(report: RunReport) -> str:
    return "".join(run.spec.card.name for run in report.runs)


def interrupt(times: int = 1) -> None:
    for _ in range(times):
        signal.raise_signal(signal.SIGINT)


def test_three_of_ten_are_under_way_and_one_look_is_for_all_of_them(tmp_path: Path) -> None:
    cluster = Cluster()
    report, scribe = carry_out(cluster, specs(tmp_path, "abcdefghij"))
    expected = ["abc", "bcd", "cde", "def", "efg", "fgh", "ghi", "hij", "ij", "j"]
    assert ["".join(names) for names in cluster.looks] == expected
    assert (models(report), cluster.after) == ("abcdefghij", {})
    assert (scribe.told[0], scribe.told[-1]) == ("1/10", "10/10 done")


def test_each_is_recorded_as_it_ends_and_reported_in_the_order_of_the_manifest(tmp_path: Path) -> None:
    cluster = Cluster(ends={1: "c", 2: "b", 3: "a"})
    report, scribe = carry_out(cluster, specs(tmp_path, "abc"))
    assert [line for line in scribe.told if line.endswith("done")] == ["3/3 done", "2/3 done", "1/3 done"]
    assert scribe.told.index("close c") < scribe.told.index("close b") < scribe.told.index("close a")
    assert models(report) == "abc"


def test_a_finished_run_knows_its_job_and_what_its_machines_saw(tmp_path: Path) -> None:
    report, scribe = carry_out(Cluster(), specs(tmp_path, "a"))
    assert (report.runs[0].job, report.runs[0].observed, report.runs[0].duration) == ("job of a", SEEN, 7.0)
    assert scribe.told_progress == [[("a", "job of a")]]


def test_runs_that_never_reach_the_target_take_nobodys_place(tmp_path: Path) -> None:
    a, b, c, d = specs(tmp_path, "abcd")
    cluster = Cluster()
    report, scribe = carry_out(cluster, [a, replace(b, skip="not here"), replace(c, refusal="no"), d], in_flight=2)
    assert cluster.looks[0] == ("a", "d")
    assert (models(report), scribe.closed_as["b"], scribe.closed_as["c"]) == ("abcd", "SKIPPED", "FAILURE")


def test_an_interruption_cancels_each_run_under_way_once_and_submits_nothing_more(tmp_path: Path) -> None:
    cluster = Cluster(ends={4: "c", 5: "ab"}, on_look=lambda look: interrupt() if look == 1 else None)
    report, scribe = carry_out(cluster, specs(tmp_path, "abcdef"))
    assert (cluster.submitted, cluster.cancelled) == (list("abc"), list("abc"))
    assert [line for line in scribe.told if line.startswith("interrupted")] == [f"interrupted {x}" for x in "abc"]
    assert (models(report), report.not_started, report.interrupted) == ("abc", ("d", "e", "f"), True)
    assert set(scribe.closed_as.values()) == {"FAILURE"}


def test_a_run_that_ended_before_it_could_be_cancelled_keeps_its_number(tmp_path: Path) -> None:
    cluster = Cluster(ends={1: "a", 2: "b"}, on_look=lambda look: interrupt() if look == 1 else None)
    _, scribe = carry_out(cluster, specs(tmp_path, "abc"), in_flight=2)
    assert (scribe.closed_as, cluster.cancelled) == ({"a": "SUCCESS", "b": "FAILURE"}, ["b"])


def test_a_run_that_cannot_be_cancelled_is_told_again_and_keeps_nobody_else_running(tmp_path: Path) -> None:
    cluster = Cluster(ends={3: "ab"}, on_look=lambda look: interrupt() if look == 1 else None)
    cluster.deaf = {"a": ExecutionError("the controller is down")}
    report, scribe = carry_out(cluster, specs(tmp_path, "ab"))
    assert cluster.cancelled == ["b", "a"]
    assert scribe.told.count("interrupted a") == 1
    assert report.runs[0].evidence.notes == ()


def test_a_run_that_could_never_be_cancelled_says_why(tmp_path: Path) -> None:
    cluster = Cluster(ends={2: "a"}, on_look=lambda look: interrupt() if look == 1 else None)
    cluster.deaf = {"a": ExecutionError("the controller is down")}
    report, _ = carry_out(cluster, specs(tmp_path, "a"))
    assert report.runs[0].evidence.notes == ("it could not be cancelled: the controller is down",)


def test_whoever_does_not_want_to_wait_leaves_remote_runs_open_for_collect(tmp_path: Path) -> None:
    cluster = Cluster(ends={1: "a"}, on_look=lambda look: interrupt(GIVE_UP))
    report, scribe = carry_out(cluster, specs(tmp_path, "abcd"))
    assert cluster.cancelled == ["b", "c"], "they are cancelled all the same"
    assert (models(report), scribe.closed_as) == ("a", {"a": "SUCCESS"})
    assert [(left.spec.card.name, left.progress.job) for left in report.left] == [("b", "job of b"), ("c", "job of c")]
    assert (report.not_started, report.interrupted) == (("d",), True)


def test_a_submission_that_fails_is_that_runs_evidence_and_the_others_go_on(tmp_path: Path) -> None:
    cluster = Cluster()
    cluster.refusals = {"b": ExecutionError("the output folder is full"), "c": TypeError("surprise")}
    report, scribe = carry_out(cluster, specs(tmp_path, "abcd"), in_flight=2)
    assert (models(report), cluster.submitted) == ("abcd", ["a", "d"])
    assert [run.evidence.interruption for run in report.runs[1:3]] == [
        Interruption(InterruptionKind.REFUSED, "the output folder is full"),
        Interruption(InterruptionKind.REFUSED, "madengine itself failed: TypeError: surprise"),
    ]
    assert scribe.closed_as["d"] == "SUCCESS"


def test_a_run_that_cannot_be_collected_takes_nothing_from_the_others(tmp_path: Path) -> None:
    cluster = Cluster()
    cluster.unreadable = {"b": KeyError("rank")}
    report, _ = carry_out(cluster, specs(tmp_path, "abc"))
    outcomes = [run.verdict.outcome for run in report.runs]
    assert outcomes == [Outcome.SUCCESS, Outcome.FAILURE, Outcome.SUCCESS]
    assert "cannot be read: madengine itself failed: KeyError: 'rank'" in report.runs[1].verdict.reason
    assert report.runs[1].observed == NOTHING_OBSERVED


def test_no_secret_of_a_run_gets_into_what_went_wrong_with_it(tmp_path: Path) -> None:
    (spec,) = specs(tmp_path, "a")
    cluster = Cluster()
    cluster.refusals = {"a": ExecutionError("sbatch: bad option --export=hunter2hunter2")}
    report, _ = carry_out(cluster, [replace(spec, secrets={"TOKEN": "hunter2hunter2"})])
    assert "hunter2" not in report.runs[0].verdict.reason


def detach(cluster: Cluster, runs: Sequence[RunSpec], in_flight: int = 2) -> tuple[RunReport, Scribe]:
    scribe = Scribe()
    with counted_interruptions() as interruptions:
        return submit_all(runs, cluster, scribe, scribe, interruptions, in_flight=in_flight), scribe


def left(report: RunReport) -> str:
    return "".join(run.spec.card.name for run in report.left)


def test_detached_runs_are_all_submitted_and_wait_for_their_turn_at_the_scheduler(tmp_path: Path) -> None:
    cluster = Cluster(ends={})
    report, scribe = detach(cluster, specs(tmp_path, "abcde"))
    assert cluster.after == {"c": "a", "d": "b", "e": "c"}
    assert (left(report), report.runs, report.not_started) == ("abcde", (), ())
    assert (set(cluster.waits), scribe.closed_as) == ({0.0}, {}), "nothing is waited for and nothing is recorded"


def test_a_detached_run_that_is_refused_is_recorded_at_once_and_nobody_waits_for_it(tmp_path: Path) -> None:
    cluster = Cluster(ends={2: "b"})
    cluster.refusals = {"c": ExecutionError("no")}
    report, scribe = detach(cluster, specs(tmp_path, "abcde"))
    assert (left(report), models(report)) == ("ade", "bc")
    assert cluster.after == {"e": "a"}
    assert scribe.closed_as == {"b": "SUCCESS", "c": "FAILURE"}


def test_an_interruption_while_submitting_keeps_what_was_submitted(tmp_path: Path) -> None:
    cluster = Cluster(ends={}, on_look=lambda look: interrupt() if look == 2 else None)
    report, _ = detach(cluster, specs(tmp_path, "abcd"))
    assert (left(report), report.not_started, report.interrupted) == ("ab", ("c", "d"), True)
    assert cluster.cancelled == []


def test_nothing_to_run_asks_nobody(tmp_path: Path) -> None:
    cluster, scribe = Cluster(), Scribe()
    assert run_all([], cluster, scribe, scribe, Interruptions()) == RunReport(())
    assert cluster.looks == []
