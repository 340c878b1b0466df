"""Whether a cluster will take a job, and what a node sees. The cluster's answers are recordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.deployment.slurm.recordings import CANNOT_CONNECT, Slurm, said

from madengine.core.process import Completed
from madengine.deployment.base import Finding
from madengine.deployment.slurm.checks import check_jobs, examine_jobs
from madengine.deployment.slurm.facts import ClusterFacts, Partition, cluster_facts
from madengine.deployment.slurm.options import CONFIGURED, DEFAULT, SlurmOptions
from madengine.deployment.slurm.preflight import cluster_findings, job_findings
from madengine.deployment.slurm.probe import ProbeContext, probe_findings

PING = "Slurmctld(primary) at vm is UP\n"
PARTITIONS = (
    "PartitionName=debug AllowAccounts=ALL Default=YES MaxNodes=UNLIMITED MaxTime=UNLIMITED State=UP TotalNodes=16\n"
    "PartitionName=limited AllowAccounts=ALL Default=NO MaxNodes=1 MaxTime=00:01:00 State=UP TotalNodes=16\n"
    "PartitionName=old Default=NO MaxNodes=UNLIMITED MaxTime=2-00:00:00 State=DOWN TotalNodes=2\n"
)
SIZES = "debug|14|idle|gpu:8\ndebug|2|down*|gpu:8\nlimited|16|mixed|gpu:mi300x:4(S:0-1)\nold|2|drained|(null)\n"
JOB = SlurmOptions(nodes=2, time="1:00:00")


def cluster(**changes: Completed) -> Slurm:
    def scontrol(argv: Sequence[str]) -> Completed:
        if argv[1] == "ping":
            return changes.get("ping", said(PING))
        return said(PARTITIONS) if argv[-1] == "partition" else said("ReservationName=maint StartTime=x\n")

    def sinfo(argv: Sequence[str]) -> Completed:
        return said(SIZES) if "|" in argv[-1] else said("mi300x,ib\n(null)\n")

    def sacctmgr(argv: Sequence[str]) -> Completed:
        return changes.get("sacctmgr", said("bench\nroot\n" if "account" in argv else "normal\nhigh\n"))

    return Slurm({"scontrol": scontrol, "sinfo": sinfo, "sacctmgr": sacctmgr, "srun": changes.get("srun", said())})


def facts(**changes: Completed) -> ClusterFacts:
    return cluster_facts(cluster(**changes), which=lambda name: f"/usr/bin/{name}")


def problems(**wanted: Any) -> list[str]:
    found = job_findings(replace(JOB, **wanted), facts())
    return [f"{each.subject}: {each.detail} ({each.remedy})" for each in found if each.state == "problem"]


def test_a_cluster_tells_what_it_offers() -> None:
    seen = facts()
    assert seen.partitions["debug"] == Partition("debug", "UP", True, 16, 14, None, None, 8)
    assert seen.partitions["limited"] == Partition("limited", "UP", False, 16, 16, 1, 60.0, 4)
    assert seen.partitions["old"] == Partition("old", "DOWN", False, 2, 0, None, 172800.0, 0)
    assert (seen.accounts, seen.qos) == ({"bench", "root"}, {"normal", "high"})
    assert (seen.reservations, seen.features) == ({"maint"}, {"mi300x", "ib"})


def test_a_job_that_fits_has_no_problem() -> None:
    assert problems(account="bench", qos="high", constraint="ib", reservation="maint", gpus_per_node=8) == []


@pytest.mark.parametrize(
    ("wanted", "said_so"),
    [
        ({"partition": "debgu"}, "no partition 'debgu' (known here: debug, limited, old; closest: debug)"),
        ({"account": "nope"}, "account: the cluster has no account 'nope' (known here: bench, root)"),
        ({"qos": "hihg"}, "closest: high"),
        ({"reservation": "x"}, "no reservation 'x'"),
        ({"constraint": "mi300"}, "closest: mi300x"),
        ({"partition": "old"}, "partition old: it is DOWN"),
        ({"nodes": 17}, "nodes: 17 nodes: debug gives at most 16 (ask for at most 16)"),
        ({"partition": "limited", "time": "1"}, "2 nodes: limited gives at most 1"),
        ({"partition": "limited", "nodes": 1}, "time: 1:00:00 is longer than limited allows (at most 1 min)"),
        ({"partition": "limited", "nodes": 1, "time": "UNLIMITED"}, "UNLIMITED is longer than limited allows"),
        ({"time": "soon"}, "'soon' is no time limit"),
        (
            {"gpus_per_node": 9, "origins": {"gpus_per_node": CONFIGURED}},
            "gpus_per_node: 9 asked for, and Slurm knows at most 8 on a node of debug",
        ),
    ],
)
def test_each_problem_is_one_line_with_its_remedy(wanted: dict[str, Any], said_so: str) -> None:
    (problem,) = problems(**wanted)
    assert said_so in problem
    assert "\n" not in problem


@pytest.mark.parametrize(
    "wanted",
    [{"account": "BENCH", "qos": "Normal"}, {"partition": "limited,debug"}, {"gpus_per_node": 8}, {"time": "0"}],
)
def test_what_slurm_would_take_is_not_refused(wanted: dict[str, Any]) -> None:
    assert problems(**wanted) == []


def test_a_list_of_partitions_has_to_hold_known_ones() -> None:
    (problem,) = problems(partition="debug,ghost")
    assert "no partition 'ghost'" in problem


def test_a_partition_of_other_accounts_says_whose_it_is() -> None:
    theirs = replace(facts(), partitions={"p": Partition("p", nodes=4, accounts=frozenset({"them"}))})
    found = list(job_findings(replace(JOB, partition="p", account="bench"), theirs))
    assert [(each.state, each.remedy) for each in found] == [("problem", "it takes: them")]
    assert list(job_findings(replace(JOB, partition="p"), theirs)) == [], "the user's default account is not known"


def test_without_sinfo_neither_nodes_nor_gpus_are_judged() -> None:
    silent = cluster()
    silent.answers["sinfo"] = said(stderr="sinfo: error", code=1)
    seen = cluster_facts(silent, which=lambda name: name)
    assert (seen.partitions["debug"].usable, seen.partitions["debug"].gpus) == (None, None)
    assert list(job_findings(replace(JOB, nodes=16, gpus_per_node=99, constraint="x"), seen)) == []


def test_nodes_that_are_named_are_not_counted() -> None:
    assert problems(nodes=17, nodelist="node[1-17]") == []


def test_an_expression_of_features_is_left_to_slurm() -> None:
    assert problems(constraint="a&b") == []


def test_gpus_that_nobody_wrote_down_are_only_a_warning() -> None:
    wanted = replace(JOB, gpus_per_node=16, origins={"gpus_per_node": DEFAULT})
    (found,) = job_findings(wanted, facts())
    assert (found.subject, found.state) == ("gpus_per_node", "warning")
    assert list(job_findings(replace(wanted, skip_gpus_directive=True), facts())) == []


def test_too_few_nodes_that_can_be_used_now_is_a_warning() -> None:
    (found,) = job_findings(replace(JOB, nodes=15), facts())
    assert (found.state, found.detail) == ("warning", "15 nodes: only 14 of 16 in debug can be used now")


def test_a_cluster_without_a_default_wants_a_partition() -> None:
    bare = replace(facts(), partitions={"a": Partition("a"), "b": Partition("b")})
    (found,) = job_findings(JOB, bare)
    assert (found.subject, found.remedy) == ("partition", "one of: a, b")


def test_what_is_not_known_is_not_judged() -> None:
    unknown = facts(sacctmgr=said(stderr="no database", code=1))
    assert unknown.accounts is None
    assert list(job_findings(replace(JOB, account="anything"), unknown)) == []
    assert "accounting" in [each.subject for each in cluster_findings(unknown)]


def test_a_controller_that_does_not_answer_is_one_problem_and_nothing_else_is_judged() -> None:
    away = facts(ping=said(stderr=CANNOT_CONNECT, code=1))
    (found,) = cluster_findings(away)
    assert (found.subject, found.state) == ("slurmctld", "problem")
    assert list(job_findings(replace(JOB, partition="nope"), away)) == []


def test_commands_that_are_not_there_are_named() -> None:
    nowhere = cluster_facts(cluster(), which=lambda name: None)
    (found,) = cluster_findings(nowhere)
    assert found.detail == "not found: sbatch, squeue, scontrol, scancel, srun"


def test_without_sacct_jobs_can_be_submitted() -> None:
    seen = cluster_facts(cluster(), which=lambda name: None if name == "sacct" else name)
    assert [each.state for each in cluster_findings(seen)] == ["ok"] * 4


GOOD = {
    "host": "n1",
    "output_dir": "seen",
    "output_dir_writable": "yes",
    "package": "seen",
    "madengine": "madengine 1.0",
    "engine": "works",
    "archives": "seen",
}


def context(tmp_path: Path) -> ProbeContext:
    return ProbeContext(tmp_path / "out", Path("/pkg"), "/opt/madengine", "1.0", "docker", "/archives")


def probed(tmp_path: Path, answer: Completed | None = None, **answers: str) -> list[Finding]:
    text = "".join(f"{name}={value}\n" for name, value in {**GOOD, **answers}.items())
    return list(probe_findings(JOB, context(tmp_path), Slurm({"srun": answer or said(text)})))


def test_a_node_that_sees_everything_is_fine(tmp_path: Path) -> None:
    assert [each.state for each in probed(tmp_path)] == ["ok"]
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    ("answers", "detail"),
    [
        ({"output_dir": "missing"}, "/out is another folder there"),
        ({"output_dir_writable": "no"}, "/out cannot be written there"),
        ({"package": "missing"}, "the package /pkg is not there"),
        ({"madengine": "missing"}, "madengine is not there: neither /opt/madengine nor one on PATH"),
        ({"madengine": "madengine 0.9"}, "madengine 0.9 is there, and this is 1.0"),
        ({"engine": "none"}, "docker does not work there"),
        ({"archives": "missing"}, "MAD_DOCKER_BUILDS (/archives) is not there"),
    ],
)
def test_what_a_node_lacks_is_a_problem_with_a_remedy(tmp_path: Path, answers: dict[str, str], detail: str) -> None:
    (found,) = probed(tmp_path, **answers)
    assert (found.subject, found.state) == ("compute node n1", "problem")
    assert detail in found.detail
    assert found.remedy


def test_a_node_that_fell_silent_half_way_is_not_called_fine(tmp_path: Path) -> None:
    (found,) = probed(tmp_path, said("host=n1\noutput_dir=seen\noutput_dir_writable=yes\npackage=seen\n", code=124))
    assert (found.state, found.detail) == ("warning", "it did not say anything of: madengine, engine, archives")


def test_no_free_node_is_no_problem(tmp_path: Path) -> None:
    (found,) = probed(tmp_path, said(stderr="srun: error: Unable to allocate resources: Immediate execution", code=1))
    assert found.state == "warning"
    assert "Unable to allocate resources" in found.detail


def test_an_output_folder_that_cannot_be_written_needs_no_node(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file in its place")
    slurm = Slurm()
    (found,) = probe_findings(JOB, context(tmp_path), slurm)
    assert (found.subject, found.state, slurm.asked) == ("output_dir", "problem", [])


def test_a_node_is_looked_at_with_the_jobs_own_partition_and_account(tmp_path: Path) -> None:
    slurm = Slurm()
    list(probe_findings(replace(JOB, partition="p", account="a b", nodelist="n7", nodes=1), context(tmp_path), slurm))
    assert {"--partition=p", "--account=a b", "--nodelist=n7", "--nodes=1"} <= set(slurm.asked[0])


def test_before_a_submit_equal_jobs_are_looked_at_once_and_no_node_is(tmp_path: Path) -> None:
    slurm = cluster()
    assert check_jobs([JOB, JOB], context(tmp_path), slurm) == ()
    assert (slurm.count("srun"), slurm.count("sinfo")) == (0, 2)
    assert check_jobs([], context(tmp_path), slurm) == ()


def test_problems_are_told_once(tmp_path: Path) -> None:
    jobs = [replace(JOB, account="x"), replace(JOB, account="x", nodes=1)]
    (problem,) = check_jobs(jobs, context(tmp_path), cluster())
    assert problem.message == "account: the cluster has no account 'x'"


@pytest.mark.parametrize(("anyway", "count"), [(False, 1), (True, 0)])
def test_a_check_of_nodes_is_asked_for_and_can_be_overruled(tmp_path: Path, anyway: bool, count: int) -> None:
    text = "".join(f"{name}={value}\n" for name, value in {**GOOD, "package": "missing"}.items())
    job = replace(JOB, enable_node_check=True, allow_submit_without_clean_nodes=anyway)
    assert len(check_jobs([job], context(tmp_path), cluster(srun=said(text)))) == count


def test_a_doctor_looks_at_everything(tmp_path: Path) -> None:
    text = "".join(f"{name}={value}\n" for name, value in GOOD.items())
    found = examine_jobs([JOB], context(tmp_path), cluster(srun=said(text)))
    assert [each.subject for each in found][-1] == "compute node n1"
    assert "partition debug" in [each.subject for each in found]


def test_a_doctor_starts_nothing_on_a_cluster_that_would_refuse(tmp_path: Path) -> None:
    slurm = cluster()
    examine_jobs([replace(JOB, partition="nope")], context(tmp_path), slurm)
    assert slurm.count("srun") == 0
