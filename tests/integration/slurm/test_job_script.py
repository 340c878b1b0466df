"""The scripts of a job on a real Slurm, with a small program in madengine's place."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.slurm.desk import Desk, wrapper
from tests.integration.slurm.faults import general
from tests.services.cluster import Cluster

PROGRAM = """#!/bin/bash
# Stands in for madengine on a node: `madengine node RUN_DIR --rank R`.
rank=$4
{does}
"""


@pytest.fixture
def desk(slurm_cluster: Cluster, tmp_path: Path) -> Desk:
    return Desk(tmp_path, slurm_cluster)


def job(desk: Desk, does: str, act: Callable[[str], None] | None = None, **slurm: object) -> dict[int, dict[str, str]]:
    """Submit the rendered scripts with a program that does something else; the markers by rank."""
    desk.furnish("true\n", slurm=general(**slurm), card={}, distributed={"launcher": "torchrun", "nnodes": 2})
    wrapper(desk, "sbatch", "#!/bin/sh\necho 999999\n")
    desk.ended(desk.start_run("--detach"))
    run_dir = desk.run_dir()
    program = desk.folder / "program"
    program.write_text(PROGRAM.format(does=does))
    program.chmod(0o755)
    node = (run_dir / "node.sh").read_text()
    (run_dir / "node.sh").write_text(node.replace(desk.command[0], str(program)))
    submitted = desk.cluster.ask("sbatch", "--parsable", str(run_dir / "job.sh")).strip()
    if act is not None:
        act(submitted)
    final = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")
    desk.wait(lambda: desk.cluster.ask("squeue", "-h", "-t", "all", "-j", submitted, "-o", "%T").strip() in final)
    markers = {rank: run_dir / f"node_{rank}" / "node.status" for rank in range(2)}
    read = {rank: path.read_text().splitlines() for rank, path in markers.items() if path.exists()}
    return {rank: dict(line.split("=", 1) for line in lines) for rank, lines in read.items()}


def codes(markers: dict[int, dict[str, str]]) -> dict[int, str]:
    return {rank: facts["exit_code"] for rank, facts in markers.items()}


def test_every_node_leaves_its_own_code_and_host(desk: Desk) -> None:
    markers = job(desk, "exit $((rank * 5))")
    assert codes(markers) == {0: "0", 1: "5"}
    assert [facts["host"] for facts in markers.values()] == ["node1", "node2"]
    assert markers[0]["run"] == desk.run_dir().name
    assert desk.cluster.ask("squeue", "-h", "-t", "all", "-j", markers[0]["job"], "-o", "%T") == "COMPLETED\n"


def test_a_command_that_is_killed_is_told_as_a_shell_tells_it(desk: Desk) -> None:
    assert codes(job(desk, "[ $rank = 0 ] || kill -KILL $$")) == {0: "0", 1: "137"}


def test_term_reaches_the_command_on_every_node_and_its_last_word_counts(desk: Desk) -> None:
    does = "trap 'sleep 0.2; exit 7' TERM; touch $2/ready_$rank; while :; do sleep 0.1; done"

    def cancel(submitted: str) -> None:
        desk.wait(lambda: len(list(desk.run_dir().glob("ready_*"))) == 2)
        desk.cluster.ask("scancel", submitted)

    assert codes(job(desk, does, cancel)) == {0: "7", 1: "7"}


def test_a_command_that_is_deaf_leaves_143(desk: Desk) -> None:
    does = "trap '' TERM; touch $2/ready_$rank; while :; do sleep 0.1; done"

    def cancel(submitted: str) -> None:
        desk.wait(lambda: len(list(desk.run_dir().glob("ready_*"))) == 2)
        desk.cluster.ask("scancel", submitted)

    try:
        assert codes(job(desk, does, cancel)) == {0: "143", 1: "143"}
    finally:
        _end(str(desk.folder / "program"))


def test_a_term_that_is_no_notice_is_not_taken_for_the_time_limit(desk: Desk) -> None:
    does = "touch $2/ready_$rank; sleep 30"

    def term(submitted: str) -> None:
        desk.wait(lambda: len(list(desk.run_dir().glob("ready_*"))) == 2)
        desk.cluster.ask("scancel", "--batch", "--signal=TERM", submitted)

    assert codes(job(desk, does, term)) == {0: "143", 1: "143"}
    assert not (desk.run_dir() / "time_limit").exists()


def test_modules_that_cannot_be_loaded_are_the_first_nodes_failure(desk: Desk) -> None:
    markers = job(desk, "exit 0", modules=["rocm/6.3"])
    assert codes(markers) == {0: "1"}
    assert "rocm/6.3" in (desk.run_dir() / "node_0" / "stderr").read_text()


def _end(command: str) -> None:
    found = subprocess.run(["pgrep", "-f", command], check=False, capture_output=True, text=True).stdout.split()
    for pid in found:
        try:
            os.kill(int(pid), signal.SIGKILL)
        except ProcessLookupError:
            continue
