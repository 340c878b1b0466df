"""Images on the nodes of a job, with a real Docker engine."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.integration.slurm.desk import Desk, wrapper
from tests.integration.slurm.faults import MEASURE_ON_1, general
from tests.services.cluster import Cluster

IMAGE = "local/debian-py:1"
ABSENT_ON_ONE = """#!/bin/sh
# Stands in for a node that has no image: one machine has one engine, whatever node it plays.
if [ "${{SLURM_PROCID:-}}" = 1 ] && [ "$1" = image ] && [ "$2" = inspect ]; then
    echo "Error: No such image: $3" >&2
    exit 1
fi
exec {docker} "$@"
"""


@pytest.fixture
def desk(slurm_cluster: Cluster, docker_engine: Mapping[str, str], tmp_path: Path) -> Desk:
    made = Desk(tmp_path, slurm_cluster)
    made.furnish(
        MEASURE_ON_1, slurm=general(), card={}, distributed={"launcher": "torchrun", "nnodes": 2, "nproc_per_node": 1}
    )
    document = json.loads((tmp_path / "m.json").read_text())
    document["built_images"]["k0"] = {"docker_image": IMAGE}
    (tmp_path / "m.json").write_text(json.dumps(document))
    return made


def run(desk: Desk) -> object:
    words = ("run", "-m", "m.json", "--model-dir", str(desk.package), "--engine", "docker", "-s", "summary.json")
    return desk.ended(desk.start(*words))


def test_a_job_runs_in_the_image_of_its_manifest_on_every_node(desk: Desk) -> None:
    seen = run(desk)
    assert (seen.outcomes, seen.numbers) == (["SUCCESS"], [("SUCCESS", "12.5")]), seen.said


def test_an_image_that_one_node_does_not_have_is_that_nodes_failure(desk: Desk) -> None:
    wrapper(desk, "docker", ABSENT_ON_ONE.format(docker=shutil.which("docker")))
    seen = run(desk)
    assert (seen.outcomes, seen.code) == (["FAILURE"], 3), seen.said
    assert "node 1 (node" in seen.said and IMAGE in seen.said, seen.said
