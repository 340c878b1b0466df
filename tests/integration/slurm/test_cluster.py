"""The cluster of the tests is what the other tests take it for. All of it is Slurm's own doing, none madengine's."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from tests.integration.slurm.desk import FAR_FROM_FAULTS
from tests.services.cluster import Cluster

AWAY = f"--exclude={FAR_FROM_FAULTS}"  # other tests make nodes fail at the same time
PATIENCE = 90.0  # seconds for anything that a cluster does
NOT_OVER = ("RUNNING", "PENDING", "COMPLETING", "")
SCRIPT_WITHOUT_AN_END = "srun sleep 600"
TOO_MUCH_MEMORY = "exec python3 -c 'import time; held = b\"a\" * 400_000_000; time.sleep(60)'"


def command(cluster: Cluster, *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, check=False, capture_output=True, text=True, timeout=60, env=cluster.environment)


def submitted(cluster: Cluster, script: str, *options: str) -> str:
    done = command(cluster, "sbatch", "--parsable", "--output", "/dev/null", *options, "--wrap", script)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def until(look: Callable[[], str], found: Callable[[str], bool]) -> str:
    deadline = time.monotonic() + PATIENCE
    while not found(seen := look()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return seen


def queued(cluster: Cluster, job: str, what: str) -> str:
    """One column of ``squeue``."""
    return cluster.ask("squeue", "-h", "-j", job, "-o", what).strip()


def begun(cluster: Cluster, job: str) -> str:
    """The job's state, once its script has a step or it has left the queue."""
    look = lambda: cluster.ask("squeue", "-h", "-s", "-j", job, "-o", "%i")  # noqa: E731
    until(look, lambda steps: f"{job}.0" in steps.split())
    return queued(cluster, job, "%T")


def accounted(cluster: Cluster, job: str) -> str:
    """``State|ExitCode`` of the job itself, as soon as the accounting says how it ended."""
    look = lambda: cluster.ask("sacct", "-nXP", "-j", job, "-o", "state,exitcode").strip()  # noqa: E731
    return until(look, lambda said: said.split("|")[0] not in NOT_OVER)


@dataclass(frozen=True)
class Ending:
    """A job that ends by itself, and what the accounting says of it."""

    name: str
    script: str
    said: str
    options: tuple[str, ...] = field(default=())


ENDINGS = (
    Ending("well", "srun true", "COMPLETED|0:0", ("-N2",)),
    Ending("a script's own code", "exit 3", "FAILED|3:0"),
    Ending("a code above 127, of which sacct takes 128 off", "exit 200", "FAILED|72:0"),
    Ending("a step's failure that the script does not pass on", "srun false; true", "COMPLETED|0:0"),
    Ending("too much memory, where no cgroup says OUT_OF_MEMORY", TOO_MUCH_MEMORY, "FAILED|0:9", ("--mem=50",)),
)


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.name)
def test_the_accounting_knows_how_a_job_ended(ending: Ending, slurm_cluster: Cluster) -> None:
    assert accounted(slurm_cluster, submitted(slurm_cluster, ending.script, AWAY, *ending.options)) == ending.said


def test_a_task_runs_on_each_of_two_nodes(slurm_cluster: Cluster) -> None:
    done = command(slurm_cluster, "srun", AWAY, "-N2", "-n2", "printenv", "SLURMD_NODENAME")
    assert done.returncode == 0, done.stderr
    assert len(set(done.stdout.split())) == 2


def test_gpus_are_granted_on_each_node(slurm_cluster: Cluster) -> None:
    done = command(slurm_cluster, "srun", AWAY, "-N2", "-n2", "--gres=gpu:3", "printenv", "SLURM_GPUS_ON_NODE")
    assert done.stdout.split() == ["3", "3"], done.stderr


def test_a_node_that_is_set_down_stays_so_and_fails_its_job(private_slurm_cluster: Cluster) -> None:
    cluster = private_slurm_cluster
    job = submitted(cluster, SCRIPT_WITHOUT_AN_END, "-N2", "--no-requeue")
    assert begun(cluster, job) == "RUNNING"
    cluster.fault("node-down", "node2")
    try:
        assert accounted(cluster, job) == "NODE_FAIL|0:0"
        assert cluster.ask("sinfo", "-h", "-p", "debug", "-n", "node2", "-o", "%T").startswith("down")
    finally:
        cluster.fault("node-up", "node2")


def test_a_job_gives_way_to_one_of_a_higher_partition(private_slurm_cluster: Cluster) -> None:
    cluster = private_slurm_cluster
    nodes = ("--exclusive", "-w", "node2")
    job = submitted(cluster, SCRIPT_WITHOUT_AN_END, "-p", "low", *nodes)
    assert begun(cluster, job) == "RUNNING"
    heir = submitted(cluster, "true", "-p", "high", *nodes)
    assert accounted(cluster, job) == "PREEMPTED|0:0"
    assert accounted(cluster, heir) == "COMPLETED|0:0"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("-A", "ghost"), "Invalid account or account/partition combination"),
        (("-p", "ghost"), "Invalid partition name"),
        (("-w", "ghost"), "Invalid node name"),
        (("--gres=gpu:9",), "Requested node configuration is not available"),
    ],
    ids=["account", "partition", "node", "more GPUs than a node has"],
)
def test_sbatch_refuses_what_is_not_there(options: tuple[str, ...], said: str, slurm_cluster: Cluster) -> None:
    done = command(slurm_cluster, "sbatch", "--output", "/dev/null", *options, "--wrap", "true")
    assert done.returncode == 1 and said in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("-p", "limited", "-N2"), "PartitionNodeLimit"),
        (("-p", "limited", "-t", "5"), "PartitionTimeLimit"),
        (("-p", "closed"), "Job's account not permitted to use this partition"),
        (("-N", "999"), "PartitionConfig"),
    ],
    ids=["nodes of a partition", "time of a partition", "account of a partition", "nodes of the cluster"],
)
def test_sbatch_accepts_what_then_never_starts(options: tuple[str, ...], reason: str, slurm_cluster: Cluster) -> None:
    job = submitted(slurm_cluster, "true", *options)
    try:
        assert until(lambda: queued(slurm_cluster, job, "%r"), lambda said: said.startswith(reason)).startswith(reason)
    finally:
        slurm_cluster.ask("scancel", job)
