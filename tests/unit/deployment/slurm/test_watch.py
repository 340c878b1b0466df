"""One job as it is watched. Times are numbers here: nothing waits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from madengine.deployment.base import RunState
from madengine.deployment.slurm.states import AccountingRecord, QueueEntry
from madengine.deployment.slurm.watch import (
    ACCOUNTING_LIMIT,
    FIRST_LOOK,
    SILENCE_LIMIT,
    SLOWEST_LOOK,
    Awaited,
    JobWatch,
    with_exit_code,
)

GRACE = 30.0
BOTH = {0, 1}
ENDED = (AccountingRecord("", "COMPLETED", "0:0"),)


def watch(**awaited: float | None) -> JobWatch:
    return JobWatch("7", Awaited(2, **{"grace": GRACE, **awaited}), 0.0)  # type: ignore[arg-type]


def entry(state: str, reason: str = "", **facts: int | str) -> QueueEntry:
    return QueueEntry("7", state, reason, **facts)  # type: ignore[arg-type]


def test_a_job_is_pending_then_running_then_ended_with_all_that_is_to_be_known() -> None:
    job = watch()
    assert job.state(0) is RunState.PENDING
    job.saw_entry(1, entry("PENDING", "Resources"))
    assert job.state(1) is RunState.PENDING
    job.saw_entry(2, entry("RUNNING"))
    assert job.state(2) is RunState.RUNNING
    job.saw_markers(3, BOTH)
    job.saw_entry(4, entry("COMPLETED"))
    assert job.state(4) is RunState.RUNNING, "the accounting has not spoken"
    assert job.wants_accounting(4)
    job.saw_accounting(4, ENDED)
    assert job.state(4) is RunState.ENDED
    assert not job.wants_accounting(5)


def test_a_missing_marker_is_waited_for_as_long_as_storage_may_lag() -> None:
    job = watch()
    job.saw_entry(0, entry("COMPLETED"))
    job.saw_accounting(0, ENDED)
    job.saw_markers(1, {0})
    assert job.progress(1).remark == "ended; waiting for the status of node 1"
    assert job.state(GRACE - 1) is RunState.RUNNING
    assert job.state(GRACE) is RunState.ENDED


def test_a_marker_that_comes_late_ends_the_waiting() -> None:
    job = watch()
    job.saw_entry(0, entry("COMPLETED"))
    job.saw_accounting(0, ENDED)
    job.saw_markers(20, BOTH)
    assert job.state(20) is RunState.ENDED


def test_an_accounting_that_lags_is_asked_for_a_minute_and_then_no_more() -> None:
    job = watch()
    job.saw_markers(0, BOTH)
    job.saw_entry(0, entry("COMPLETED"))
    job.saw_accounting(1, ())
    assert not job.wants_accounting(1)
    assert job.wants_accounting(1 + FIRST_LOOK)
    assert job.state(ACCOUNTING_LIMIT - 1) is RunState.RUNNING
    assert job.state(ACCOUNTING_LIMIT) is RunState.ENDED
    assert not job.wants_accounting(ACCOUNTING_LIMIT)


@pytest.mark.parametrize(("disabled", "failures"), [(True, 1), (False, 3)])
def test_without_accounting_nobody_waits_for_it(disabled: bool, failures: int) -> None:
    job = watch()
    job.saw_markers(0, BOTH)
    job.saw_entry(0, entry("COMPLETED"))
    for number in range(failures):
        assert job.state(number) is RunState.RUNNING
        job.saw_no_accounting(number, disabled=disabled)
    assert job.state(failures) is RunState.ENDED


def test_markers_of_all_nodes_end_a_run_whose_job_does_not_end() -> None:
    job = watch()
    job.saw_entry(0, entry("COMPLETING"))
    job.saw_markers(5, BOTH)
    assert job.state(5) is RunState.RUNNING
    assert job.state(5 + ACCOUNTING_LIMIT) is RunState.ENDED


def test_a_job_that_the_controller_has_forgotten_has_ended() -> None:
    job = watch()
    job.saw_entry(0, None)
    job.saw_markers(0, BOTH)
    job.saw_accounting(0, ENDED)
    assert job.state(0) is RunState.ENDED


def test_a_requeued_job_has_not_ended_and_its_attempt_is_counted() -> None:
    job = watch()
    job.saw_entry(0, entry("PREEMPTED"))
    job.saw_markers(0, {0})
    job.saw_entry(1, entry("PENDING", "BeginTime", restarts=1))
    assert (job.state(1 + GRACE), job.attempt) == (RunState.PENDING, 1)
    job.saw_entry(2, entry("RUNNING", restarts=1))
    assert job.state(2 + GRACE) is RunState.RUNNING


def test_what_an_earlier_attempt_came_to_is_not_the_end_of_a_later_one() -> None:
    job = watch(pending_timeout=60)
    job.saw_entry(0, entry("FAILED"))
    job.saw_accounting(0, (AccountingRecord("", "FAILED", "3:0"),))
    job.saw_entry(1, entry("PENDING", "BeginTime", restarts=1))
    job.saw_entry(100, entry("RUNNING", restarts=1))
    job.saw_entry(101, entry("PENDING", "BeginTime", restarts=2))
    assert job.hopeless(160) == "", "it waits anew"
    job.saw_entry(170, entry("COMPLETED", restarts=2))
    assert job.records is None
    assert job.wants_accounting(170)


def test_silence_is_counted_and_decides_nothing() -> None:
    job = watch()
    job.saw_entry(0, entry("RUNNING"))
    job.saw_silence(10)
    job.saw_silence(20)
    assert job.progress(20).remark == "Slurm does not answer (2 times, since 20 s)"
    assert job.state(SILENCE_LIMIT - 1) is RunState.RUNNING
    job.saw_entry(30, entry("RUNNING"))
    assert job.progress(30).remark == ""


def test_a_controller_that_stays_away_is_unknown() -> None:
    job = watch()
    job.saw_entry(0, entry("RUNNING"))
    job.saw_silence(SILENCE_LIMIT)
    assert job.is_silent(SILENCE_LIMIT)
    assert job.state(SILENCE_LIMIT) is RunState.RUNNING
    assert job.state(SILENCE_LIMIT + GRACE) is RunState.ENDED


def test_looks_become_rarer_and_hurry_again_when_something_changes() -> None:
    job, now = watch(), 0.0
    pauses = []
    for _ in range(12):
        job.saw_entry(now, entry("RUNNING"))
        later = next(now + step / 100 for step in range(1, 2000) if job.is_due(now + step / 100))
        pauses.append(round(later - now, 2))
        now = later
    assert pauses[0] == FIRST_LOOK
    assert pauses[-1] == SLOWEST_LOOK
    assert pauses == sorted(pauses)
    job.saw_entry(now, entry("COMPLETING"))
    assert job.is_due(now + FIRST_LOOK)


def test_all_markers_make_the_next_look_soon() -> None:
    job = watch()
    for now in range(30):
        job.saw_entry(now, entry("RUNNING"))
    job.saw_markers(30, BOTH)
    assert job.is_due(30.3)


@pytest.mark.parametrize(
    ("entries", "sentence"),
    [
        ([entry("PENDING", "PartitionNodeLimit")] * 2, "the job can never start: PartitionNodeLimit"),
        ([entry("PENDING", "PartitionNodeLimit")], ""),
        ([entry("PENDING", "PartitionNodeLimit"), entry("PENDING", "Resources")], ""),
        ([entry("PENDING", "Resources")] * 5, ""),
        ([entry("RUNNING")] * 2, ""),
        ([], ""),
    ],
)
def test_what_can_never_start_is_seen_in_two_looks(entries: list[QueueEntry], sentence: str) -> None:
    job = watch()
    for now, each in enumerate(entries):
        job.saw_entry(now, each)
    assert job.hopeless(10) == sentence


def test_a_job_that_waits_longer_than_it_may_is_hopeless() -> None:
    job = watch(pending_timeout=60)
    job.saw_entry(0, entry("PENDING", "Priority"))
    assert job.hopeless(59) == ""
    assert job.hopeless(60) == "timed out: the job was still waiting for its nodes after 60 s (Priority)"


def test_progress_says_why_a_job_waits_and_where_it_runs() -> None:
    job = watch()
    assert job.progress(0).job == "7"
    job.saw_entry(0, entry("PENDING", "Resources"))
    assert (job.progress(0).state, job.progress(0).remark, job.progress(0).elapsed) == ("PENDING", "Resources", None)
    job.saw_entry(1, QueueEntry("7", "RUNNING", nodes="node[1-2]", elapsed=5.0))
    assert (job.progress(1).nodes, job.progress(1).elapsed, job.progress(1).remark) == ("node[1-2]", 5.0, "")
    job.saw_entry(2, entry("COMPLETED"))
    job.saw_markers(2, BOTH)
    assert job.progress(2).remark == "ended; waiting for the accounting"


def test_an_entry_takes_its_exit_code_from_the_full_answer() -> None:
    told = QueueEntry("7", "FAILED", exit_code="3:0")
    assert with_exit_code(entry("FAILED", "why"), told).exit_code == "3:0"


EVENTS = st.lists(
    st.tuples(
        st.floats(0, 40),
        st.sampled_from(["running", "ended", "gone", "silent", "marker 0", "marker 1", "accounted", "no accounting"]),
    ),
    max_size=25,
)


@given(EVENTS)
def test_a_run_never_ends_while_something_is_worth_waiting_for(events: list[tuple[float, str]]) -> None:
    job, now, present, over_since = watch(), 0.0, set(), None
    for pause, event in events:
        now += pause
        if event == "running":
            job.saw_entry(now, entry("RUNNING"))
            over_since = None
        elif event in ("ended", "gone"):
            job.saw_entry(now, entry("COMPLETED") if event == "ended" else None)
            over_since = now if over_since is None else over_since
        elif event == "silent":
            job.saw_silence(now)
        elif event.startswith("marker"):
            present.add(int(event[-1]))
            job.saw_markers(now, present)
        elif event == "accounted" and over_since is not None:
            job.saw_accounting(now, ENDED)
        elif event == "no accounting":
            job.saw_no_accounting(now, disabled=False)
        if job.state(now) is RunState.ENDED and len(present) < 2:
            assert over_since is not None and now >= over_since + GRACE
