"""Slurm's own daemons stop and come back while a run goes on. On a cluster of the test's own."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.integration.slurm.desk import Desk, running_nodes
from tests.integration.slurm.faults import MEASURE_ON_1, on
from tests.services.cluster import Cluster

TWO_NODES = {"nodes": 2, "marker_grace_seconds": 2}


@pytest.fixture
def desk(private_slurm_cluster: Cluster, tmp_path: Path) -> Desk:
    return Desk(tmp_path, private_slurm_cluster)


def test_a_controller_that_stops_and_comes_back_takes_nothing_from_a_run(desk: Desk) -> None:
    desk.furnish("sleep 4\n" + MEASURE_ON_1, slurm=TWO_NODES, card={})
    process = desk.start_run()
    running_nodes(desk, range(2))
    desk.cluster.fault("stop-controller")
    try:
        desk.file("node_1/node.status")
    finally:
        desk.cluster.fault("start-controller")
    seen = desk.ended(process)
    assert (seen.outcomes, seen.code, seen.numbers) == (["SUCCESS"], 0, [("SUCCESS", "12.5")]), seen.said


def test_without_accounting_the_controller_tells_how_a_job_ended(desk: Desk) -> None:
    desk.furnish(on(0, "exit 3"), slurm=TWO_NODES, card={})
    desk.cluster.fault("stop-database")
    try:
        seen = desk.ended(desk.start_run())
    finally:
        desk.cluster.fault("start-database")
    assert (seen.outcomes, seen.code) == (["FAILURE"], 3), seen.said
    assert "node 0 (node1) exited 3" in seen.said
    assert "Slurm says FAILED (exit code 3)" in seen.said


def test_a_cluster_that_does_not_answer_is_said_before_anything_is_submitted(desk: Desk) -> None:
    desk.furnish(MEASURE_ON_1, slurm=TWO_NODES, card={})
    desk.cluster.fault("stop-controller")
    try:
        seen = desk.ended(desk.start_run())
    finally:
        desk.cluster.fault("start-controller")
    assert (seen.code, seen.rows, desk.run_dirs) == (4, [], []), seen.said
    assert "slurmctld: does not answer" in seen.said
