"""What Slurm's words mean."""

from __future__ import annotations

import pytest

from madengine.deployment.slurm.states import (
    AccountingRecord,
    QueueEntry,
    has_ended,
    is_final,
    is_success,
    never_starts,
    normal,
    scheduler_report,
)
from madengine.verdict.evidence import SchedulerReport

JOB, BATCH, STEP = "", "batch", "0"


def records(*lines: tuple[str, str, str]) -> tuple[AccountingRecord, ...]:
    return tuple(AccountingRecord(step, state, code) for step, state, code in lines)


@pytest.mark.parametrize(
    ("state", "word"),
    [("CANCELLED by 1000", "CANCELLED"), ("CANCELLED+", "CANCELLED"), ("Running", "RUNNING"), ("", "")],
)
def test_a_state_has_one_word(state: str, word: str) -> None:
    assert normal(state) == word


@pytest.mark.parametrize(
    ("state", "final"),
    [
        ("COMPLETED", True),
        ("FAILED", True),
        ("CANCELLED by 7", True),
        ("TIMEOUT", True),
        ("NODE_FAIL", True),
        ("OUT_OF_MEMORY", True),
        ("PREEMPTED", True),
        ("BOOT_FAIL", True),
        ("DEADLINE", True),
        ("REVOKED", True),
        ("PENDING", False),
        ("RUNNING", False),
        ("COMPLETING", False),
        ("REQUEUED", False),
        ("SUSPENDED", False),
        ("a new word", False),
        ("", False),
    ],
)
def test_some_states_are_the_last(state: str, final: bool) -> None:
    assert is_final(state) is final


def test_only_completed_is_good() -> None:
    assert is_success("COMPLETED")
    assert not any(map(is_success, ("COMPLETING", "FAILED", "", "CANCELLED by 0")))


@pytest.mark.parametrize(
    ("reason", "never"),
    [
        ("PartitionNodeLimit", True),
        ("PartitionTimeLimit", True),
        ("PartitionConfig", True),
        ("Job's account not permitted to use this partition (closed allows nobody not root)", True),
        ("Resources", False),
        ("Priority", False),
        ("ReqNodeNotAvail, UnavailableNodes:node3", False),
        ("", False),
    ],
)
def test_some_reasons_never_go_away(reason: str, never: bool) -> None:
    assert never_starts(reason) is never


@pytest.mark.parametrize(
    ("seen", "state", "success", "code"),
    [
        (records((JOB, "COMPLETED", "0:0"), (BATCH, "COMPLETED", "0:0")), "COMPLETED", True, "0:0"),
        (records((JOB, "NODE_FAIL", "0:0")), "NODE_FAIL", False, "0:0"),
        (records((JOB, "OUT_OF_MEMORY", "0:125")), "OUT_OF_MEMORY", False, "0:125"),
        (records((JOB, "CANCELLED by 1000", "0:0")), "CANCELLED by 1000", False, "0:0"),
        (records((JOB, "FAILED", "3:0"), (BATCH, "FAILED", "3:0"), (STEP, "FAILED", "3:0")), "FAILED", False, "3:0"),
        (
            records((JOB, "COMPLETED", "0:0"), (STEP, "FAILED", "3:0")),
            "COMPLETED, but step 0 FAILED",
            False,
            "3:0",
        ),
        (
            records((JOB, "COMPLETED", "0:0"), (STEP, "COMPLETED", "0:0"), ("1", "OUT_OF_MEMORY", "0:125")),
            "COMPLETED, but step 1 OUT_OF_MEMORY",
            False,
            "0:125",
        ),
    ],
)
def test_the_accounting_has_the_last_word_and_steps_are_read_too(
    seen: tuple[AccountingRecord, ...], state: str, success: bool, code: str
) -> None:
    assert scheduler_report(seen) == SchedulerReport("Slurm", state, success, code)


def test_a_step_that_only_the_derived_code_tells_of_is_no_success() -> None:
    job = AccountingRecord("", "COMPLETED", "0:0", "3:0")
    assert scheduler_report([job]) == SchedulerReport("Slurm", "COMPLETED, but a step failed", False, "3:0")
    assert scheduler_report([AccountingRecord("", "COMPLETED", "0:0", "0:0")]).success
    step = AccountingRecord("0", "COMPLETED", "0:0")
    requeued = AccountingRecord("", "COMPLETED", "0:0", "143:0")
    assert scheduler_report([requeued, step]).success, "the derived code is that of the earlier attempt"


@pytest.mark.parametrize("seen", [None, (), records((JOB, "RUNNING", "0:0")), records((STEP, "FAILED", "3:0"))])
def test_without_a_last_word_of_the_accounting_the_controllers_counts(seen: tuple[AccountingRecord, ...]) -> None:
    entry = QueueEntry("1", "FAILED", "why", exit_code="3:0")
    assert scheduler_report(seen, entry) == SchedulerReport("Slurm", "FAILED", False, "3:0", "why")
    assert not has_ended(seen)


def test_a_job_whose_steps_still_run_in_the_accounting_has_no_last_word_there() -> None:
    seen = records((JOB, "COMPLETED", "0:0"), (BATCH, "RUNNING", "0:0"))
    assert not has_ended(seen)
    assert scheduler_report(seen, QueueEntry("1", "COMPLETED", exit_code="0:0")).success


def test_the_controllers_exit_code_of_the_same_end_is_the_truer() -> None:
    """sacct shows 137 as 9 (recorded with Slurm 22.05.8)."""
    seen = records((JOB, "FAILED", "9:0"))
    assert scheduler_report(seen, QueueEntry("1", "FAILED", exit_code="137:0")).exit_code == "137:0"
    assert scheduler_report(seen, QueueEntry("1", "RUNNING", exit_code="0:0")).exit_code == "9:0"


@pytest.mark.parametrize("entry", [None, QueueEntry("1", "RUNNING")])
def test_what_nobody_says_is_unknown_and_claims_nothing(entry: QueueEntry | None) -> None:
    report = scheduler_report(None, entry)
    assert report.state == "unknown"
    assert not report.failed
