"""Whether a cluster will take a job, asked of a real one, and what a real node sees."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.integration.slurm.desk import Desk
from tests.integration.slurm.faults import MEASURE, general
from tests.services.cluster import Cluster


@pytest.fixture
def desk(slurm_cluster: Cluster, tmp_path: Path) -> Desk:
    return Desk(tmp_path, slurm_cluster)


def furnished(desk: Desk, **slurm: Any) -> Desk:
    desk.furnish(MEASURE, slurm=general(**{"nodes": 1, **slurm}), card={})
    (desk.package / "models.json").write_text("[]")
    return desk


def examined(desk: Desk, *words: str) -> tuple[int, dict[str, tuple[str, str]]]:
    model_dir = ("--model-dir", str(desk.package))
    seen = desk.told("doctor", "--target", "slurm", "-m", "m.json", "--engine", "host", "--json", *model_dir, *words)
    findings = json.loads(seen.said)["findings"]
    return seen.code, {each["subject"]: (each["state"], each["detail"]) for each in findings}


def test_a_doctor_finds_a_good_cluster_and_a_node_that_sees_the_same(desk: Desk) -> None:
    code, found = examined(furnished(desk))
    assert code == 0
    assert found["slurmctld"] == ("ok", "answers")
    assert found["partition debug"][0] == "ok"
    (node,) = [subject for subject in found if subject.startswith("compute node")]
    assert found[node] == ("ok", "sees the same folders and the same madengine")
    assert list((desk.folder / "slurm_results").iterdir()) == []


@pytest.mark.parametrize(
    ("slurm", "said"),
    [
        ({"partition": "debgu"}, "partition: the cluster has no partition 'debgu'"),
        ({"account": "nope"}, "account: the cluster has no account 'nope'"),
        ({"qos": "nope"}, "qos: the cluster has no qos 'nope'"),
        ({"reservation": "nope"}, "reservation: the cluster has no reservation 'nope'"),
        ({"nodes": 99}, "nodes: 99 nodes: debug gives at most"),
        ({"partition": "limited", "time": "10"}, "time: 10 is longer than limited allows"),
        ({"partition": "closed", "account": "bench"}, "partition closed: it does not take the account 'bench'"),
        ({"gpus_per_node": 99}, "gpus_per_node: 99 asked for"),
    ],
)
def test_what_the_cluster_would_refuse_is_told_before_anything_is_submitted(
    desk: Desk, slurm: dict[str, Any], said: str
) -> None:
    seen = desk.ended(furnished(desk, **slurm).start_run())
    assert (seen.code, desk.run_dirs, seen.rows) == (4, [], []), seen.said
    assert said in seen.said


def test_a_file_in_the_place_of_the_output_folder_is_told_before_anything_is_submitted(desk: Desk) -> None:
    furnished(desk, output_dir="taken")
    (desk.folder / "taken").write_text("")
    seen = desk.ended(desk.start_run())
    assert (seen.code, seen.rows) == (4, []), seen.said
    assert "cannot be made" in seen.said
    assert "Traceback" not in seen.said


def test_a_check_of_a_node_that_goes_well_lets_the_run_begin(desk: Desk) -> None:
    seen = desk.ended(furnished(desk, enable_node_check=True).start_run())
    assert seen.outcomes == ["SUCCESS"], seen.said
