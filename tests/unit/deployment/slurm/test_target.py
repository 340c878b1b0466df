"""The target as a whole, on a Slurm that is played from recordings and a clock that is a number."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.deployment.slurm.folders import marker
from tests.unit.deployment.slurm.recordings import CANNOT_CONNECT, DISABLED, UNKNOWN_JOB, Slurm, said
from tests.unit.execution.packages import spec

from madengine.catalog.card import ModelCard
from madengine.core.errors import ConfigurationError, ExecutionError
from madengine.core.process import Completed
from madengine.deployment.base import Handle, RunState, Workshop
from madengine.deployment.carrier import Carrier
from madengine.deployment.order import read_order
from madengine.deployment.slurm.submission import read_submitted
from madengine.deployment.slurm.target import SlurmTarget, own_command
from madengine.execution.spec import Place, RunSpec
from madengine.verdict.evidence import InterruptionKind

ORDER = {"package": "/pkg", "engine": "host", "options": {}, "command": ["madengine"], "directory": ""}


class Cluster:
    """A cluster of one job, 7, whose state a test sets; ``now`` is the time in seconds."""

    def __init__(self) -> None:
        self.now = 0.0
        self.state, self.reason, self.restarts = "PENDING", "None", 0
        self.accounting = said(stderr=DISABLED, code=1)
        self.squeue: Completed | None = None
        self.slurm = Slurm(
            {
                "sbatch": said("7\n"),
                "squeue": self._queue,
                "sacct": lambda _: self.accounting,
                "scontrol": lambda _: said(f"JobId=7 JobState={self.state} Reason=None ExitCode=0:0 Restarts=0"),
            }
        )

    def target(self, tmp_path: Path, **slurm: Any) -> SlurmTarget:
        workshop = Workshop(
            deployment={"slurm": {"output_dir": str(tmp_path / "out"), **slurm}},
            inherited={"PATH": os.environ["PATH"]},
            order={**ORDER, "directory": str(tmp_path / "work")},
        )
        (tmp_path / "work").mkdir(exist_ok=True)
        return SlurmTarget(workshop, self.slurm, clock=lambda: self.now, sleep=self._sleep)

    def _sleep(self, seconds: float) -> None:
        self.now += seconds

    def _queue(self, argv: Sequence[str]) -> Completed:
        if self.squeue is not None:
            return self.squeue
        if "--name" in argv:
            return said("7|\n")
        return said(f"7|{self.state}|{self.restarts}|0:05|{self.reason}|node[1-2]|\n")


def run_spec(tmp_path: Path, **fields: Any) -> RunSpec:
    run_id = fields.pop("run_id", "20261201T000000Z-m-abc123")
    made = spec(tmp_path, run_id=run_id)
    place = Place("slurm", 2, elsewhere=True)
    return replace(made, **{"run_dir": tmp_path / "out" / run_id, "place": place, "launcher": "torchrun", **fields})


def submitted(target: SlurmTarget, run: RunSpec) -> Handle:
    return target.submit(run, target.render(run))


def state(target: SlurmTarget, *handles: Handle, patience: float = 0.0) -> RunState:
    return target.poll(handles, patience)[handles[0].run_id]


def test_a_submit_leaves_everything_that_anybody_needs_later(tmp_path: Path) -> None:
    cluster = Cluster()
    target = cluster.target(tmp_path, nodes=2)
    run = run_spec(tmp_path, secrets={"HF_TOKEN": "canary-7f3a9e"})
    submitted(target, run)
    there = {path.name for path in run.run_dir.iterdir()}
    assert {"job.json", "job.sh", "node.sh", "plan.txt", "submitted.json", "pid", "logs"} <= there
    order = read_order(run.run_dir)
    assert (order.run_id, order.nnodes, order.reporters, order.engine) == (run.run_id, 2, 2, "host")
    assert (tmp_path / "work" / "runs" / run.run_id).resolve() == run.run_dir
    assert cluster.slurm.environments[0] == {"PATH": os.environ["PATH"], "HF_TOKEN": "canary-7f3a9e"}
    assert b"canary" not in b"".join(path.read_bytes() for path in run.run_dir.rglob("*") if path.is_file())


def test_variables_that_would_beat_the_script_are_not_handed_to_sbatch(tmp_path: Path) -> None:
    cluster = Cluster()
    target = cluster.target(tmp_path, partition="gpu")
    given = {
        "SBATCH_TIMELIMIT": "1",
        "SBATCH_EXPORT": "NONE",
        "SBATCH_PARTITION": "x",
        "SBATCH_ACCOUNT": "bench",
        "A": "b",
    }
    target._workshop = replace(target._workshop, inherited=given)
    submitted(target, run_spec(tmp_path))
    assert cluster.slurm.environments[0] == {"A": "b"}


def test_a_run_is_followed_to_its_end(tmp_path: Path) -> None:
    cluster = Cluster()
    target = cluster.target(tmp_path, nodes=2)
    run = run_spec(tmp_path)
    handle = submitted(target, run)
    assert state(target, handle) is RunState.PENDING
    cluster.state, cluster.now = "RUNNING", 10
    assert state(target, handle) is RunState.RUNNING
    assert target.progress([handle])[run.run_id].nodes == "node[1-2]"
    for rank in range(2):
        marker(run.run_dir, rank, run=run.run_id)
    cluster.state, cluster.now = "COMPLETED", 20
    assert state(target, handle, patience=5) is RunState.ENDED
    evidence = target.collect(handle)
    assert [(node.host, node.exit_code) for node in evidence.nodes] == [("h0", 0), ("h1", 0)]
    assert evidence.scheduler is not None and (evidence.scheduler.state, evidence.scheduler.success) == (
        "COMPLETED",
        True,
    )
    assert target.observed(handle).job == "7"


def test_all_runs_are_asked_for_in_one_question(tmp_path: Path) -> None:
    cluster = Cluster()
    target = cluster.target(tmp_path)
    handles = [submitted(target, run_spec(tmp_path, run_id=f"r{number}")) for number in range(5)]
    target.poll(handles, 0.0)
    assert cluster.slurm.count("squeue") == 1


def test_a_directory_is_enough_to_go_on_from_another_process(tmp_path: Path) -> None:
    cluster = Cluster()
    run = run_spec(tmp_path)
    handle = submitted(cluster.target(tmp_path, nodes=2), run)
    other = cluster.target(tmp_path)
    cluster.state, cluster.accounting = "CANCELLED", said("7|CANCELLED by 0|0:0|0:0|Unknown|None\n")
    assert state(other, handle) is RunState.RUNNING
    cluster.now += 31
    assert state(other, handle, patience=5) is RunState.ENDED
    evidence = other.collect(handle)
    assert evidence.scheduler is not None and evidence.scheduler.state == "CANCELLED by 0"
    assert [node.exit_code for node in evidence.nodes] == [None, None]


@pytest.mark.parametrize("left", ["name", "job_id"])
def test_a_job_whose_answer_was_lost_is_found(tmp_path: Path, left: str) -> None:
    cluster = Cluster()
    run = run_spec(tmp_path)
    handle = submitted(cluster.target(tmp_path), run)
    (run.run_dir / "submitted.json").unlink()
    if left == "job_id":
        (run.run_dir / "job_id").write_text("7\n")
    other = cluster.target(tmp_path)
    cluster.state = "RUNNING"
    assert state(other, handle) is RunState.RUNNING
    assert other.progress([handle])[run.run_id].job == "7"


def test_a_run_that_nobody_submitted_is_refused_once_its_submitter_is_dead(tmp_path: Path) -> None:
    cluster = Cluster()
    run = run_spec(tmp_path)
    handle = submitted(cluster.target(tmp_path), run)
    (run.run_dir / "submitted.json").unlink()
    cluster.squeue = said("")
    other = cluster.target(tmp_path)
    assert state(other, handle) is RunState.PENDING, "this process may be about to submit it"
    replace(Carrier.this_process(), started=1).write(run.run_dir)
    cluster.now += 5
    assert state(other, handle) is RunState.ENDED
    interruption = other.collect(handle).interruption
    assert interruption is not None and "was never submitted" in interruption.detail


def test_a_refusal_is_evidence_at_once(tmp_path: Path) -> None:
    cluster = Cluster()
    cluster.slurm.answers["sbatch"] = said(stderr="sbatch: error: invalid account", code=1)
    target = cluster.target(tmp_path)
    handle = submitted(target, run_spec(tmp_path))
    assert state(target, handle) is RunState.ENDED
    interruption = target.collect(handle).interruption
    assert interruption is not None
    assert (interruption.kind, interruption.detail) == (InterruptionKind.REFUSED, "sbatch: error: invalid account")
    assert target.progress([handle])[handle.run_id].state == "REFUSED"


def test_a_submission_without_an_answer_is_looked_for_by_its_name(tmp_path: Path) -> None:
    cluster = Cluster()
    cluster.slurm.answers["sbatch"] = said(code=124, timed_out=True)
    run = run_spec(tmp_path)
    submitted(cluster.target(tmp_path), run)
    noted = read_submitted(run.run_dir)
    assert noted is not None and noted.job_id == "7"


def test_a_submission_that_nobody_took_says_so(tmp_path: Path) -> None:
    cluster = Cluster()
    cluster.slurm.answers["sbatch"] = said(code=124, timed_out=True)
    cluster.squeue = said("")
    run = run_spec(tmp_path)
    submitted(cluster.target(tmp_path), run)
    noted = read_submitted(run.run_dir)
    assert noted is not None and "did not say whether it took the job" in noted.refusal


def test_a_job_that_can_never_start_is_cancelled_with_slurms_reason(tmp_path: Path) -> None:
    cluster = Cluster()
    target = cluster.target(tmp_path)
    handle = submitted(target, run_spec(tmp_path))
    cluster.reason = "PartitionNodeLimit"
    target.poll([handle], 0.0)
    assert cluster.slurm.count("scancel") == 0
    cluster.now += 1
    target.poll([handle], 0.0)
    assert cluster.slurm.asked[-1] == ["scancel", "7"]
    cluster.state, cluster.now = "CANCELLED by 0", 100
    target.poll([handle], 0.0)
    interruption = target.collect(handle).interruption
    assert interruption is not None
    assert interruption.detail == "the job can never start: PartitionNodeLimit"


def test_a_cancel_ends_the_job_once_and_says_who_did_it(tmp_path: Path) -> None:
    cluster = Cluster()
    target = cluster.target(tmp_path)
    handle = submitted(target, run_spec(tmp_path))
    target.cancel(handle)
    target.cancel(handle)
    assert cluster.slurm.asked.count(["scancel", "7"]) == 2
    interruption = target.collect(handle).interruption
    assert interruption is not None and interruption.detail.startswith("cancelled by ")


def test_a_cancel_that_slurm_does_not_take_is_an_error(tmp_path: Path) -> None:
    cluster = Cluster()
    cluster.slurm.answers["scancel"] = said(stderr="scancel: error: Access/permission denied", code=1)
    target = cluster.target(tmp_path)
    handle = submitted(target, run_spec(tmp_path))
    with pytest.raises(ExecutionError, match="permission denied"):
        target.cancel(handle)
    assert target.collect(handle).interruption is None


def test_a_job_that_has_ended_is_not_claimed_by_a_cancel(tmp_path: Path) -> None:
    cluster = Cluster()
    target = cluster.target(tmp_path)
    handle = submitted(target, run_spec(tmp_path))
    cluster.state = "NODE_FAIL"
    target.cancel(handle)
    assert cluster.slurm.count("scancel") == 0
    assert target.collect(handle).interruption is None


def test_a_run_that_nobody_can_find_is_not_said_to_be_cancelled(tmp_path: Path) -> None:
    cluster = Cluster()
    run = run_spec(tmp_path)
    handle = submitted(cluster.target(tmp_path), run)
    (run.run_dir / "submitted.json").unlink()
    cluster.squeue = said(stderr=CANNOT_CONNECT, code=1)
    other = cluster.target(tmp_path)
    with pytest.raises(ExecutionError, match="which job this run is"):
        other.cancel(handle)
    assert not (run.run_dir / "cancelled.json").exists()
    asked = cluster.slurm.count("squeue")
    other.poll([handle], 1.0)
    assert cluster.slurm.count("squeue") == asked, "it is not asked again at once"


def test_a_job_that_ended_long_ago_is_not_waited_for(tmp_path: Path) -> None:
    cluster = Cluster()
    run = run_spec(tmp_path)
    handle = submitted(cluster.target(tmp_path), run)
    cluster.state, cluster.accounting = "FAILED", said("7|FAILED|1:0|1:0|2020-01-01T00:00:00|None\n")
    assert state(cluster.target(tmp_path), handle) is RunState.ENDED


def test_an_ended_run_is_not_cancelled(tmp_path: Path) -> None:
    cluster = Cluster()
    cluster.slurm.answers["sbatch"] = said(stderr="no", code=1)
    target = cluster.target(tmp_path)
    target.cancel(submitted(target, run_spec(tmp_path)))
    assert cluster.slurm.count("scancel") == 0


def test_a_time_limit_of_which_the_job_was_told_is_said(tmp_path: Path) -> None:
    cluster = Cluster()
    target = cluster.target(tmp_path)
    run = run_spec(tmp_path)
    handle = submitted(target, run)
    (run.run_dir / "time_limit").write_text("1:00\n")
    target.poll([handle], 0.0)
    interruption = target.collect(handle).interruption
    assert interruption is not None
    assert interruption.detail == "timed out: the job's time limit of 1:00 was near"


def test_a_requeued_job_counts_its_last_attempt(tmp_path: Path) -> None:
    cluster = Cluster()
    target = cluster.target(tmp_path, nodes=2)
    run = run_spec(tmp_path)
    handle = submitted(target, run)
    marker(run.run_dir, 0, 143, run=run.run_id, attempt=0)
    marker(run.run_dir, 1, 0, run=run.run_id, attempt=1)
    cluster.state, cluster.restarts = "COMPLETED", 1
    target.poll([handle], 0.0)
    evidence = target.collect(handle)
    assert [node.exit_code for node in evidence.nodes] == [None, 0]
    assert evidence.notes == ("Slurm requeued the job once; this is its last attempt",)


def test_when_no_node_said_anything_the_jobs_own_last_words_are_told(tmp_path: Path) -> None:
    cluster = Cluster()
    target = cluster.target(tmp_path)
    run = run_spec(tmp_path)
    handle = submitted(target, run)
    (run.run_dir / "logs" / "job.out").write_text("job: begins\nsrun: error: no such user\n\n")
    target.poll([handle], 0.0)
    assert target.collect(handle).notes == ("the job's own output ends with: srun: error: no such user",)


def test_a_controller_that_is_away_is_said_and_decides_nothing(tmp_path: Path) -> None:
    cluster = Cluster()
    target = cluster.target(tmp_path)
    handle = submitted(target, run_spec(tmp_path))
    cluster.squeue = said(stderr=CANNOT_CONNECT, code=1)
    assert state(target, handle) is RunState.PENDING
    assert "Slurm does not answer (1 times" in target.progress([handle])[handle.run_id].remark


def test_a_job_that_nobody_knows_any_more_has_ended(tmp_path: Path) -> None:
    cluster = Cluster()
    target = cluster.target(tmp_path)
    handle = submitted(target, run_spec(tmp_path))
    cluster.squeue = said(stderr=UNKNOWN_JOB, code=1)
    target.poll([handle], 0.0)
    cluster.now = 40
    assert state(target, handle) is RunState.ENDED
    evidence = target.collect(handle)
    assert evidence.scheduler is not None and not evidence.scheduler.failed


def test_a_later_run_waits_for_an_earlier_one_in_slurm_itself(tmp_path: Path) -> None:
    cluster = Cluster()
    target = cluster.target(tmp_path)
    first = submitted(target, run_spec(tmp_path, run_id="r1"))
    run = run_spec(tmp_path, run_id="r2")
    target.submit(run, target.render(run), first)
    assert "--dependency=afterany:7" in cluster.slurm.asked[-1]


def test_a_script_that_drives_an_allocation_runs_at_once_inside_of_one(tmp_path: Path) -> None:
    cluster = Cluster()
    target = cluster.target(tmp_path)
    target._workshop = replace(target._workshop, inherited={"PATH": os.environ["PATH"], "SLURM_JOB_ID": "99"})
    run = run_spec(tmp_path, launcher="slurm_multi")
    rendering = target.render(run)
    rendering = replace(rendering, files={**rendering.files, "job.sh": "echo hello from $SLURM_JOB_ID\n"})
    handle = target.submit(run, rendering)
    assert cluster.slurm.count("sbatch") == 0
    target._inside[0].wait()
    assert (run.run_dir / "logs" / "job.out").read_text() == "hello from 99\n"
    assert state(target, handle) is RunState.RUNNING, "its marker may be on its way"
    cluster.now += 31
    assert state(target, handle) is RunState.ENDED
    assert target.collect(handle).scheduler is None
    marker(run.run_dir, 0, run=run.run_id)
    assert state(target, handle) is RunState.ENDED


def test_a_run_inside_of_an_allocation_is_cancelled_by_its_process(tmp_path: Path) -> None:
    cluster = Cluster()
    target = cluster.target(tmp_path)
    target._workshop = replace(target._workshop, inherited={"PATH": os.environ["PATH"], "SLURM_JOB_ID": "99"})
    run = run_spec(tmp_path, launcher="slurm_multi")
    rendering = target.render(run)
    handle = target.submit(run, replace(rendering, files={**rendering.files, "job.sh": "exec sleep 60\n"}))
    assert state(target, handle) is RunState.RUNNING
    assert target.progress([handle])[run.run_id].remark == "in this allocation"
    target.cancel(handle)
    assert target._inside[0].wait() == -15


def test_a_card_says_where_it_runs(tmp_path: Path) -> None:
    target = Cluster().target(tmp_path)
    assert target.place(ModelCard({"name": "m", "slurm": {"nodes": 3}})).nnodes == 3
    assert SlurmTarget.runs_root({"slurm": {"output_dir": "/x"}}) == Path("/x")


def test_a_directory_without_an_order_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        Cluster().target(tmp_path).collect(Handle("r", tmp_path))


def test_records_of_a_submission_that_cannot_be_understood_are_none(tmp_path: Path) -> None:
    for text in ("{", "[]", json.dumps({"job_id": "7"})):
        (tmp_path / "submitted.json").write_text(text)
        assert read_submitted(tmp_path) is None


def test_nodes_are_given_the_submitting_command_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "madengine").touch()
    monkeypatch.setattr("sys.argv", [str(tmp_path / "madengine")])
    assert own_command() == str(tmp_path / "madengine")
    monkeypatch.setattr("sys.argv", ["pytest"])
    assert own_command().endswith("madengine")
