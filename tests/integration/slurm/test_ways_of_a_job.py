"""What jobs do besides failing: scripts that drive an allocation, secrets, launchers, images-free nodes, presets."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.integration.slurm.desk import Desk, Seen
from tests.integration.slurm.faults import MEASURE, MEASURE_ON_1, general, on
from tests.services.cluster import Cluster

CANARY = "canary-7f3a9e-secret"
MULTI = """\
srun --overlap --ntasks-per-node=1 bash -c 'echo "rank $SLURM_PROCID"' > ranks.txt
mkdir -p "$RESULTS"
printf 'model,performance,metric\\na,%s,nodes\\n' "$(wc -l < ranks.txt)" > "$RESULTS/r.csv"
"""


@pytest.fixture
def desk(slurm_cluster: Cluster, tmp_path: Path) -> Desk:
    return Desk(tmp_path, slurm_cluster)


def furnish_multi(desk: Desk) -> None:
    desk.furnish(
        MULTI,
        slurm=general(results_dir="results of ${WHO}"),
        card={"scripts": "scripts/m/run.slurm", "multiple_results": "r.csv"},
        distributed={"launcher": "slurm_multi"},
        env_vars={"RESULTS": f"{desk.folder}/results of ${{WHO}}"},
    )
    desk.environment["WHO"] = "me"


def test_a_models_own_slurm_script_drives_the_allocation(desk: Desk) -> None:
    furnish_multi(desk)
    seen = desk.ended(desk.start_run())
    assert (seen.outcomes, seen.numbers) == (["SUCCESS"], [("SUCCESS", "2")]), seen.said
    assert seen.rows[0]["launcher"] == "slurm_multi"
    assert len(seen.document["runs"][0]["nodes"]) == 1


def test_inside_of_an_allocation_it_runs_at_once(desk: Desk) -> None:
    furnish_multi(desk)
    words = ["run", "-m", "m.json", "--model-dir", str(desk.package), "--engine", "host", "-s", "summary.json"]
    before = len(desk.cluster.ask("squeue", "-h", "-t", "all", "-o", "%A").split())
    desk.command = [str(shutil.which("salloc")), "-N2", "--exclude=node[9-16]", "--mem=200", *desk.command]
    seen = desk.ended(desk.start(*words), "summary.json")
    assert (seen.outcomes, seen.code, seen.numbers) == (["SUCCESS"], 0, [("SUCCESS", "2")]), seen.said
    assert len(desk.cluster.ask("squeue", "-h", "-t", "all", "-o", "%A").split()) >= before + 1
    assert not seen.document["runs"][0]["warnings"]


def test_secrets_reach_the_nodes_and_stand_nowhere(desk: Desk) -> None:
    script = 'test "$MAD_SECRETS_TOKEN$HF_TOKEN$FROM_FILE_TOKEN" = "{0}-1{0}-2{0}-3" && {1}echo "$HF_TOKEN"\n'
    named = {"FROM_FILE_TOKEN": "${FROM_FILE_TOKEN}"}
    desk.furnish(script.format(CANARY, MEASURE), slurm=general(), card={}, env_file="mad.env", env_vars=named)
    (desk.folder / "mad.env").write_text(f"FROM_FILE_TOKEN={CANARY}-3\n")
    desk.environment["MAD_SECRETS_TOKEN"] = f"{CANARY}-1"
    context = json.dumps({"docker_env_vars": {"HF_TOKEN": f"{CANARY}-2"}})
    seen = desk.ended(desk.start_run("-c", context))
    assert seen.outcomes == ["SUCCESS"], seen.said
    assert CANARY not in seen.said
    (desk.package / "scripts/m/run.sh").unlink()
    written = [path for path in desk.folder.rglob("*") if path.is_file() and path.name != "mad.env"]
    assert len(written) > 10
    assert [path for path in written if CANARY.encode() in path.read_bytes()] == []


def test_every_rank_is_given_its_place_and_the_launchers_command(desk: Desk) -> None:
    script = (
        'echo "$NODE_RANK/$NNODES $RANK $WORLD_SIZE $NPROC_PER_NODE" > ../a.csv\n'
        'echo "$MAD_DEPLOYMENT_TYPE $MAD_IS_MASTER_NODE" >> ../a.csv\n'
        'echo "$MAD_MULTI_NODE_RUNNER" >> ../a.csv\n'
    )
    desk.furnish(
        script + MEASURE_ON_1,
        slurm=general(),
        card={},
        distributed={"launcher": "torchrun", "nnodes": 2, "nproc_per_node": 4, "port": 29511},
    )
    seen = desk.ended(desk.start_run("--keep-model-dir"))
    assert seen.outcomes == ["SUCCESS"], seen.said
    told = [(desk.run_dir() / f"node_{rank}" / "workspace" / "a.csv").read_text().splitlines() for rank in range(2)]
    assert [lines[:2] for lines in told] == [["0/2 0 8 4", "slurm true"], ["1/2 1 8 4", "slurm false"]]
    runner = "torchrun --nnodes=2 --nproc_per_node=4 --node_rank={} --master_addr=127.0.0.1 --master_port=29511"
    assert [lines[2] for lines in told] == [runner.format(0), runner.format(1)]


def test_gpus_are_asked_for_and_only_those_are_seen(desk: Desk) -> None:
    desk.furnish(
        'echo "gpus $SLURM_JOB_GPUS"\n' + MEASURE, slurm=general(nodes=1, gpus_per_node=2), card={"n_gpus": "-1"}
    )
    seen = desk.ended(desk.start_run())
    assert seen.outcomes == ["SUCCESS"], seen.said
    assert "--gpus-per-node=2" in desk.file("job.sh").read_text()
    log = (desk.run_dir() / "node_0" / "logs" / "run.log").read_text()
    assert len(log.split("\n")[0].removeprefix("gpus ").split(",")) == 2


def test_more_models_than_jobs_wait_for_each_other_also_when_nobody_watches(desk: Desk) -> None:
    models = [{"name": f"m{n}", "scripts": "scripts/m/run.sh", "n_gpus": "0"} for n in range(3)]
    desk.furnish(MEASURE, slurm=general(nodes=1), card={})
    desk.write_manifest("m.json", models, slurm=general(nodes=1))
    seen = desk.ended(desk.start_run("--detach", "--max-jobs", "1", "--json"))
    assert seen.code == 0, seen.said
    assert len(seen.document["left"]) == 3
    dependencies = desk.cluster.ask("squeue", "-h", "-t", "all", "-o", "%j %E")
    assert dependencies.count("afterany") >= 1
    collected = desk.told("collect")
    assert collected.code == 0, collected.said
    assert [row["model"] for row in desk.rows()] == ["m0", "m1", "m2"]


def test_cancel_ends_a_job_from_another_shell_and_collect_tells_who_did_it(desk: Desk) -> None:
    desk.furnish(on(0, MEASURE) + "sleep 100\n", slurm=general(), card={})
    desk.ended(desk.start_run("--detach"))
    desk.wait(lambda: b"performance" in desk.file("node_0/logs/run.log").read_bytes())
    assert "cancelled" in desk.told("cancel", desk.job_id()).said
    seen: Seen = desk.told("collect", "--strict")
    assert (seen.code, seen.numbers) == (3, [("SUCCESS", "12.5")]), seen.said
    assert "cancelled by root on" in seen.said
    assert "it is recorded already" in desk.told("cancel", desk.run_dir().name).said


def test_what_is_wrong_with_the_env_file_is_told_before_anything_is_submitted(desk: Desk) -> None:
    for text, said in ((None, "mad.env"), ("exit 3\n", "mad.env"), ("if\n", "mad.env")):
        desk.furnish(MEASURE, slurm=general(), card={}, env_file="mad.env")
        if text is not None:
            (desk.folder / "mad.env").write_text(text)
        seen = desk.ended(desk.start_run())
        assert (seen.code, desk.run_dirs) == (4, []), seen.said
        assert said in seen.said
