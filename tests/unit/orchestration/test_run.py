"""The story of a run, with a target, a recorder and a narrator that keep what they are told."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.orchestration.worlds import planned

from madengine.core.errors import ConfigurationError
from madengine.core.interruptions import counted_interruptions
from madengine.deployment.base import CheckProblem, Handle, Observed, Progress, Rendering, RunState
from madengine.execution.spec import RunSpec
from madengine.orchestration.report import NOTHING_OBSERVED, FinishedRun, RunReport
from madengine.orchestration.run import GIVE_UP, check_all, record_broken_off, run_all
from madengine.verdict.evidence import (
    Evidence,
    Interruption,
    InterruptionKind,
    Measurement,
    NodeReport,
    Outcome,
    Verdict,
)

MEASURED = Evidence("", measurements=(Measurement(1.0, "x"),), nodes=(NodeReport(0, "h", 0),))


class Story:
    """Target, recorder and narrator at once: what happened, in one list. ``on_poll`` is called at each look."""

    name = "fake"
    remote = False

    def __init__(self, *, polls: int = 2, on_poll: Callable[[int], None] = lambda number: None) -> None:
        self.told: list[str] = []
        self.problems: tuple[CheckProblem, ...] = ()
        self.cancelled = False
        self.deaf = False
        self._polls, self._on_poll, self._looks = polls, on_poll, 0
        self._verdicts: dict[str, Verdict] = {}

    def check(self, specs: Sequence[RunSpec]) -> tuple[CheckProblem, ...]:
        return self.problems

    def render(self, spec: RunSpec) -> Rendering:
        return Rendering({"plan.txt": spec.card.name})

    def submit(self, spec: RunSpec, rendering: Rendering, after: Handle | None = None) -> Handle:
        assert after is None
        self._looks = 0
        self.told.append(f"submit {rendering.files['plan.txt']}")
        return Handle(spec.run_id, spec.run_dir)

    def poll(self, handles: Sequence[Handle], patience: float) -> Mapping[str, RunState]:
        self._looks += 1
        self._on_poll(self._looks)
        ended = self._looks >= self._polls or (self.cancelled and not self.deaf)
        return {handles[0].run_id: RunState.ENDED if ended and not self.deaf else RunState.RUNNING}

    def progress(self, runs: object) -> Mapping[str, Progress]:
        return {}

    def observed(self, handle: Handle) -> Observed:
        return NOTHING_OBSERVED

    def collect(self, handle: Handle) -> Evidence:
        self.told.append("collect")
        return replace(MEASURED, run_id=handle.run_id)

    def cancel(self, handle: Handle) -> None:
        self.told.append("cancel")
        self.cancelled = True

    def opened(self, spec: RunSpec) -> None:
        self.told.append(f"open {spec.card.name}")

    def closed(
        self, spec: RunSpec, evidence: Evidence, verdict: Verdict, observed: Observed = NOTHING_OBSERVED
    ) -> FinishedRun:
        assert evidence.run_id == spec.run_id
        self.told.append(f"close {spec.card.name} {verdict.outcome.value}")
        return FinishedRun(spec, evidence, verdict, ({"model": spec.card.name},), 1.0)

    def started(self, number: int, total: int, spec: RunSpec) -> None:
        self.told.append(f"{number}/{total}")

    def interrupted(self, spec: RunSpec) -> None:
        self.told.append(f"interrupted {spec.card.name}")

    def ended(self, number: int, total: int, run: FinishedRun) -> None:
        self.told.append(f"{number}/{total} done")


def specs(tmp_path: Path, *names: str) -> list[RunSpec]:
    return [planned(tmp_path, {"name": name}) for name in names]


def carry_out(story: Story, runs: Sequence[RunSpec]) -> RunReport:
    with counted_interruptions() as interruptions:
        return run_all(runs, story, story, story, interruptions)


def test_one_run_after_the_other_each_judged_and_recorded_before_the_next(tmp_path: Path) -> None:
    story = Story()
    report = carry_out(story, specs(tmp_path, "a", "b"))
    assert story.told == [
        "1/2", "open a", "submit a", "collect", "close a SUCCESS", "1/2 done",
        "2/2", "open b", "submit b", "collect", "close b SUCCESS", "2/2 done",
    ]  # fmt: skip
    assert [verdict.outcome for verdict in report.verdicts] == [Outcome.SUCCESS, Outcome.SUCCESS]
    assert (report.interrupted, report.not_started) == (False, ())


@pytest.mark.parametrize(
    ("fields", "outcome", "reason"),
    [
        ({"skip": "not here"}, Outcome.SKIPPED, "not here"),
        ({"refusal": "8 GPUs are asked for"}, Outcome.FAILURE, "8 GPUs are asked for"),
        ({"skip": "not here", "refusal": "nor there"}, Outcome.SKIPPED, "not here"),
    ],
)
def test_what_does_not_run_is_recorded_and_never_submitted(
    tmp_path: Path, fields: dict[str, str], outcome: Outcome, reason: str
) -> None:
    story, (spec,) = Story(), specs(tmp_path, "a")
    report = carry_out(story, [replace(spec, **fields)])
    assert story.told == ["1/1", "open a", f"close a {outcome.value}", "1/1 done"]
    assert reason in report.verdicts[0].reason


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interruption_ends_the_run_records_it_and_leaves_the_rest(tmp_path: Path, number: signal.Signals) -> None:
    story = Story(polls=99, on_poll=lambda look: signal.raise_signal(number) if look == 2 else None)
    report = carry_out(story, specs(tmp_path, "a", "b", "c"))
    assert story.told == [
        "1/3", "open a", "submit a", "interrupted a", "cancel", "collect", "close a SUCCESS", "1/3 done",
    ]  # fmt: skip
    assert (report.interrupted, report.not_started) == (True, ("b", "c"))


def test_whoever_does_not_want_to_wait_leaves_the_run_behind_but_not_its_row(tmp_path: Path) -> None:
    story = Story(on_poll=lambda look: signal.raise_signal(signal.SIGINT))
    story.deaf = True
    report = carry_out(story, specs(tmp_path, "a"))
    assert story.told.count("cancel") == 1
    assert story.told[-2:] == ["close a FAILURE", "1/1 done"]
    interruption = report.runs[0].evidence.interruption
    assert interruption is not None
    assert (interruption.kind, "may still run" in interruption.detail) == (InterruptionKind.CANCELLED, True)


def test_a_service_manager_that_asks_often_does_not_count_as_impatience(tmp_path: Path) -> None:
    story = Story(polls=GIVE_UP + 3, on_poll=lambda look: signal.raise_signal(signal.SIGTERM))
    story.deaf = True

    def hear(look: int) -> None:
        signal.raise_signal(signal.SIGTERM)
        story.deaf = look < GIVE_UP + 3

    story._on_poll = hear
    carry_out(story, specs(tmp_path, "a"))
    assert story.told[-3:] == ["collect", "close a SUCCESS", "1/1 done"]


def test_an_interruption_while_a_run_is_recorded_loses_nothing(tmp_path: Path) -> None:
    class Interrupted(Story):
        def closed(
            self, spec: RunSpec, evidence: Evidence, verdict: Verdict, observed: Observed = NOTHING_OBSERVED
        ) -> FinishedRun:
            signal.raise_signal(signal.SIGINT)
            return super().closed(spec, evidence, verdict, observed)

    story = Interrupted()
    report = carry_out(story, specs(tmp_path, "a", "b"))
    assert story.told[-2:] == ["close a SUCCESS", "1/2 done"]
    assert (report.interrupted, report.not_started) == (True, ("b",))


def test_an_interruption_before_the_first_run_starts_none(tmp_path: Path) -> None:
    story = Story()
    with counted_interruptions() as interruptions:
        signal.raise_signal(signal.SIGTERM)
        report = run_all(specs(tmp_path, "a", "b"), story, story, story, interruptions)
    assert story.told == []
    assert (report.runs, report.not_started, report.interrupted) == ((), ("a", "b"), True)


def test_after_builds_that_were_broken_off_nothing_runs_and_their_ends_are_recorded(tmp_path: Path) -> None:
    runs = [replace(spec, key=spec.card.name) for spec in specs(tmp_path, "a", "b", "c")]
    fates = {"b": Interruption(InterruptionKind.CANCELLED, "there is no image for it: interrupted")}
    story = Story()
    report = record_broken_off(runs, fates, story, story)
    assert story.told == ["open b", "close b FAILURE", "2/3 done"]
    assert report.verdicts[0].reason.startswith("cancelled: there is no image for it")
    assert (report.not_started, report.interrupted) == (("a", "c"), True)


def test_a_target_without_problems_lets_everything_begin(tmp_path: Path) -> None:
    check_all(Story(), specs(tmp_path, "a"))


def test_every_problem_is_one_line_with_its_remedy(tmp_path: Path) -> None:
    story = Story()
    story.problems = (CheckProblem("no engine", "start it"), CheckProblem("no image"))
    with pytest.raises(ConfigurationError) as error:
        check_all(story, specs(tmp_path, "a"))
    assert str(error.value) == "2 things are in the way:\n  no engine (start it)\n  no image"
