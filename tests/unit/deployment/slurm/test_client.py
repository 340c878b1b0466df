"""Asking Slurm's commands, and understanding what they say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.deployment.slurm.recordings import (
    CANNOT_CONNECT,
    DISABLED,
    NO_DATABASE,
    SACCT,
    SCONTROL,
    SQUEUE,
    UNKNOWN_JOB,
    Slurm,
    said,
)

from madengine.core.process import Completed
from madengine.deployment.slurm.client import Answer, SlurmClient, Submission, ask_program, seconds
from madengine.deployment.slurm.states import AccountingRecord, QueueEntry

SCRIPT = Path("/shared/run 1/job.sh")


def client(**answers: Completed) -> tuple[SlurmClient, Slurm]:
    slurm = Slurm(dict(answers))
    return SlurmClient(slurm), slurm


@pytest.mark.parametrize(
    ("answer", "submission"),
    [
        (said("4711\n"), Submission("4711")),
        (said("4711;other\n"), Submission("4711")),
        (said("4711\n", "sbatch: warning: can't run 1 processes on 2 nodes\n"), Submission("4711")),
        (
            said(stderr="sbatch: error: invalid partition specified: nope\nsbatch: error: Batch job failed\n", code=1),
            Submission(refusal="sbatch: error: invalid partition specified: nope; sbatch: error: Batch job failed"),
        ),
        (
            said(stderr="sbatch: error: Unable to contact slurm controller\n", code=1),
            Submission(refusal="sbatch: error: Unable to contact slurm controller", unsure=True),
        ),
        (said(code=124, timed_out=True), Submission(refusal="sbatch exited 124", unsure=True)),
        (said("welcome to this site\n4711\n"), Submission("4711")),
        (said("nonsense"), Submission(refusal="sbatch exited 0", unsure=True)),
        (said(code=130), Submission(refusal="sbatch exited 130", unsure=True)),
        (said(stderr="sbatch: not found", code=127), Submission(refusal="sbatch: not found")),
    ],
)
def test_a_submission_has_a_job_or_a_refusal_or_is_unsure(answer: Completed, submission: Submission) -> None:
    here, _ = client(sbatch=answer)
    assert here.submit(SCRIPT, environment={}) == submission


def test_a_submission_has_its_environment_and_no_value_of_it_in_its_words() -> None:
    here, slurm = client(sbatch=said("1\n"))
    here.submit(SCRIPT, environment={"HF_TOKEN": "canary"}, after="7")
    assert slurm.asked == [["sbatch", "--parsable", "--dependency=afterany:7", str(SCRIPT)]]
    assert slurm.environments == [{"HF_TOKEN": "canary"}]


def test_the_queue_tells_of_all_jobs_at_once() -> None:
    here, slurm = client(squeue=said(SQUEUE))
    answer = here.queue(["5", "6", "7"])
    assert answer.value == {
        "5": QueueEntry("5", "RUNNING", "", "node[1-2]", 65.0),
        "6": QueueEntry("6", "PENDING", "PartitionNodeLimit", "", 0.0),
        "7": QueueEntry("7", "COMPLETED", "", "node[3-4]", 93784.0, restarts=1),
    }
    assert slurm.count("squeue") == 1
    assert slurm.asked[0][slurm.asked[0].index("-j") + 1] == "5,6,7"


def test_jobs_that_the_controller_does_not_know_are_an_answer() -> None:
    here, _ = client(squeue=said(stderr=UNKNOWN_JOB, code=1))
    assert here.queue(["1"]) == Answer({})


@pytest.mark.parametrize(
    ("answer", "trouble"),
    [
        (said(stderr=CANNOT_CONNECT, code=1), "Unable to contact slurm controller"),
        (said(code=124, timed_out=True), "did not answer within 10 s"),
        (said(code=1), "exited 1"),
    ],
)
def test_a_controller_that_does_not_answer_claims_nothing(answer: Completed, trouble: str) -> None:
    here, _ = client(squeue=answer, scontrol=answer, sacct=answer)
    for told in (here.queue(["1"]), here.job("1"), here.find("r"), here.accounting(["1"])):
        assert told.value is None and not told.disabled
        assert trouble in told.trouble


def test_the_accounting_tells_of_jobs_and_their_steps() -> None:
    here, _ = client(sacct=said(SACCT))
    answer = here.accounting(["5", "6", "7"])
    assert answer.value is not None
    job, batch, _ = answer.value["5"]
    assert replace(job, ended_ago=None) == AccountingRecord("", "FAILED", "3:0", "3:0")
    assert job.ended_ago is not None and job.ended_ago > 3600
    assert batch.ended_ago is None
    assert [record.step for record in answer.value["7"]] == ["", "batch", "0"]
    assert answer.value["6"][0].state == "CANCELLED by 0"


@pytest.mark.parametrize(
    ("answer", "disabled"),
    [
        (said(stderr=DISABLED, code=1), True),
        (said(stderr="no such file", code=127), True),
        (said(stderr=NO_DATABASE, code=1), False),
    ],
)
def test_no_accounting_at_all_is_another_thing_than_a_database_that_is_away(answer: Completed, disabled: bool) -> None:
    here, _ = client(sacct=answer)
    assert here.accounting(["1"]).disabled is disabled


def test_names_and_paths_cannot_imitate_what_the_controller_says_of_a_job() -> None:
    here, _ = client(scontrol=said(SCONTROL))
    entry = here.job("2").value
    assert entry == QueueEntry("2", "COMPLETED", "", "node[1-2]", 7.0, "0:0", 1)


def test_a_job_that_the_controller_has_forgotten_is_an_answer() -> None:
    here, _ = client(scontrol=said(stderr=UNKNOWN_JOB, code=1))
    assert here.job("2").value is False


@pytest.mark.parametrize(
    ("queue", "past", "found"),
    [("5|\n12|\n", "", "12"), ("", "7\n9\n", "9"), ("", "", ""), ("", "sacct: x\n", "")],
)
def test_a_job_is_found_by_its_name_in_the_queue_and_then_in_the_past(queue: str, past: str, found: str) -> None:
    here, _ = client(squeue=said(queue), sacct=said(past))
    assert here.find("run-1").value == found


@pytest.mark.parametrize(
    ("answer", "trouble"),
    [
        (said(), ""),
        (said(stderr="scancel: error: Kill job error on job id 5: Invalid job id specified", code=1), ""),
        (said(stderr="scancel: error: Kill job error: Job/step already completing or completed", code=1), ""),
        (said(stderr="scancel: error: Access/permission denied", code=1), "scancel: error: Access/permission denied"),
    ],
)
def test_cancelling_what_has_ended_is_no_trouble(answer: Completed, trouble: str) -> None:
    here, _ = client(scancel=answer)
    assert here.cancel("5") == trouble


@pytest.mark.parametrize(
    ("text", "number"),
    [("0:00", 0), ("1:05", 65), ("2:00:01", 7201), ("1-00:00:00", 86400), ("INVALID", 0), ("", 0)],
)
def test_durations_are_read_as_slurm_writes_them(text: str, number: float) -> None:
    assert seconds(text) == number


def test_commands_are_asked_for_real() -> None:
    done = ask_program(["sh", "-c", "echo $A"], {"A": "1", "PATH": "/bin:/usr/bin"}, 10)
    assert done.stdout == "1\n"
