"""``madengine node`` as a job's script gives it: a process per rank, told by a run directory and the environment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.integration.packages import MADENGINE
from tests.unit.orchestration.orders import RUN_ID, run_directory

CANARY = "canary-4d1b77c0"
LIMIT = 60  # seconds


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "MAD_", "MASTER_"))}
    return {**kept, "MADENGINE_HOSTS": "n0,n1", "MASTER_ADDR": "n0", "MASTER_PORT": "29511", **more}


def start(run_dir: Path, rank: int, *words: str, **more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*MADENGINE, "node", str(run_dir), "--rank", str(rank), *words],
        env=environment(**more),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def node(run_dir: Path, rank: int = 0, *words: str, **more: str) -> tuple[int, str]:
    process = start(run_dir, rank, *words, **more)
    out, err = process.communicate(timeout=LIMIT)
    assert out == ""
    assert "Traceback" not in err
    return process.returncode, err


def evidence(run_dir: Path, rank: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run_dir / f"node_{rank}" / "evidence.json").read_text())
    return found


def log(run_dir: Path, rank: int = 0) -> str:
    return (run_dir / f"node_{rank}" / "logs" / "run.log").read_text()


def waited_for(path: Path) -> str:
    deadline = time.monotonic() + LIMIT
    while not path.exists() or not path.read_text().endswith("\n"):
        assert time.monotonic() < deadline, f"{path} does not come"
        time.sleep(0.02)
    return path.read_text().strip()


def test_help_does_not_show_it_and_it_has_help_of_its_own() -> None:
    shown = subprocess.run([*MADENGINE, "--help"], check=True, capture_output=True, text=True).stdout
    assert not any(line.strip().startswith("node ") for line in shown.splitlines())
    own = subprocess.run([*MADENGINE, "node", "--help"], check=True, capture_output=True, text=True).stdout
    assert "--rank" in own


def test_two_ranks_at_once_run_in_folders_of_their_own_and_one_of_them_measures(tmp_path: Path) -> None:
    script = """\
echo "rank $RANK of $NNODES at $MASTER_ADDR:$MASTER_PORT"
pwd >>../../../seen.txt
[ "$RANK" = 0 ] || echo "performance: 42 tokens/s"
"""
    run_dir = run_directory(tmp_path, script, deployment={"distributed": {"launcher": "torchrun", "nnodes": 2}})
    processes = [start(run_dir, rank) for rank in (0, 1)]
    for process in processes:
        process.communicate(timeout=LIMIT)
    assert [process.returncode for process in processes] == [5, 0]
    assert [log(run_dir, rank).splitlines()[0] for rank in (0, 1)] == [
        "rank 0 of 2 at n0:29511",
        "rank 1 of 2 at n0:29511",
    ]
    assert [len(evidence(run_dir, rank)["measurements"]) for rank in (0, 1)] == [0, 1]
    assert evidence(run_dir, 1)["measurements"][0]["rank"] == 1
    assert len(set((run_dir / "seen.txt").read_text().splitlines())) == 2


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("echo performance: 1 x", 0),
        ("echo performance: 1 x; exit 7", 7),
        ("echo hello", 5),
        ("exit 7", 7),
        ("exit 5", 1),
        ("kill -SEGV $$", 139),
    ],
)
def test_the_exit_code_says_how_the_rank_ended(tmp_path: Path, script: str, code: int) -> None:
    run_dir = run_directory(tmp_path, f"{script}\n")
    assert node(run_dir)[0] == code
    assert evidence(run_dir)["run_id"] == RUN_ID


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_rank_that_is_told_to_end_ends_its_script_keeps_its_measurement_and_leaves_evidence(
    tmp_path: Path, number: signal.Signals
) -> None:
    script = "echo performance: 9 x; echo $$ >../../../script.pid; exec sleep 300\n"
    run_dir = run_directory(tmp_path, script)
    process = start(run_dir, 0)
    pid = waited_for(run_dir / "script.pid")
    process.send_signal(number)
    process.communicate(timeout=LIMIT)
    assert process.returncode == 143
    assert not Path(f"/proc/{pid}").exists()
    seen = evidence(run_dir)
    assert [item["value"] for item in seen["measurements"]] == [9.0]
    assert seen["interruption"]["kind"] == "cancelled"
    assert json.loads((run_dir / "node_0" / "run.json").read_text())["verdict"]["outcome"] == "INCOMPLETE"


def test_a_rank_that_is_killed_leaves_its_log_and_what_lay_there_before(tmp_path: Path) -> None:
    script = "echo performance: 9 x; echo $$ >../../../script.pid; exec sleep 300\n"
    run_dir = run_directory(tmp_path, script, card={"multiple_results": "r.csv"}, results_file="r.csv")
    process = start(run_dir, 0)
    pid = int(waited_for(run_dir / "script.pid"))
    process.kill()
    process.communicate(timeout=LIMIT)
    os.kill(pid, signal.SIGKILL)
    assert log(run_dir) == "performance: 9 x\n"
    assert json.loads((run_dir / "node_0" / "before.json").read_text())["results_file"] == "r.csv"
    assert json.loads((run_dir / "node_0" / "run.json").read_text())["ended"] is None
    assert not (run_dir / "node_0" / "evidence.json").exists()


def _truncated(run_dir: Path) -> None:
    path = run_dir / "job.json"
    path.write_text(path.read_text()[:80])


def _of_another_version(run_dir: Path) -> None:
    path = run_dir / "job.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 7, "madengine": "9.9.9"}))


def _without_manifest(run_dir: Path) -> None:
    (run_dir / "manifest.json").unlink()


def _without_order(run_dir: Path) -> None:
    (run_dir / "job.json").unlink()


@pytest.mark.parametrize(
    ("fields", "spoil", "said"),
    [
        ({"card": {"scripts": "scripts/m/rum.sh"}}, None, "the package has no scripts/m/rum.sh"),
        ({"key": "other"}, None, "the manifest has no model 'other'"),
        ({"card": {"n_gpus": "10000"}}, None, "the card asks for 10000 GPUs"),
        ({"env_file": "/nowhere/mad.env"}, None, "/nowhere/mad.env"),
        ({"nnodes": 3, "reporters": 3}, None, "the run has 3 nodes, and MADENGINE_HOSTS names 2"),
        ({}, _truncated, "job.json:"),
        ({}, _of_another_version, "written by madengine 9.9.9 (job orders of version 7), and this is madengine"),
        ({}, _without_manifest, "manifest.json"),
        ({}, _without_order, "job.json"),
    ],
)
def test_what_cannot_be_carried_out_is_refused_with_4_and_a_sentence(
    tmp_path: Path, fields: Mapping[str, Any], spoil: Any, said: str
) -> None:
    run_dir = run_directory(tmp_path, **fields)
    if spoil:
        spoil(run_dir)
    code, told = node(run_dir)
    assert code == 4
    assert said in told
    seen = evidence(run_dir)
    assert (seen["run_id"], seen["interruption"]["kind"]) == (RUN_ID, "refused")
    assert said in seen["interruption"]["detail"]


def test_a_rank_that_the_run_does_not_have_is_refused(tmp_path: Path) -> None:
    code, told = node(run_directory(tmp_path), 2)
    assert (code, "there is no rank 2: the run has 2 nodes" in told) == (4, True)


def test_an_engine_that_does_not_work_here_is_125(tmp_path: Path) -> None:
    code, told = node(run_directory(tmp_path, engine="podman"), PATH=str(tmp_path))
    assert (code, "error: " in told) == (125, True)


def test_references_resolve_on_the_node_from_the_env_file_that_is_read_there(tmp_path: Path) -> None:
    (tmp_path / "mad.env").write_text("export HF_HOME=\"$TMP_OF_NODE/hf\"\nTEXT=$'two\\nlines'\n")
    run_dir = run_directory(
        tmp_path,
        'echo "$A|$B|$C|$HF_HOME"\n',
        env_file=str(tmp_path / "mad.env"),
        deployment={"env_vars": {"A": "${HF_HOME}/x", "B": "$TEXT", "C": "$(id)"}},
    )
    node(run_dir, TMP_OF_NODE="/scratch")
    assert log(run_dir) == "/scratch/hf/x|two\nlines|$(id)|/scratch/hf\n"


def test_a_secret_that_is_inherited_reaches_the_script_and_no_file(tmp_path: Path) -> None:
    script = """\
[ "$MAD_SECRETS_HFTOKEN" = "$WANTED" ] && echo "it is there"
echo "token $MAD_SECRETS_HFTOKEN"; echo "typed ${API_TOKEN}"
env >x_env.csv
echo performance: 1 x
"""
    run_dir = run_directory(tmp_path, script, context={"docker_env_vars": {"API_TOKEN": "${API_TOKEN}"}})
    secrets = {"MAD_SECRETS_HFTOKEN": CANARY, "API_TOKEN": f"{CANARY}-2", "WANTED": CANARY}
    code, told = node(run_dir, **secrets)
    assert code == 0
    assert "it is there" in log(run_dir)
    files = [path for path in run_dir.rglob("*") if path.is_file()]
    assert any(path.name == "x_env.csv" for path in files)
    assert not [str(path) for path in files if CANARY.encode() in path.read_bytes()]
    assert CANARY not in told


def test_a_launchers_hostfile_lies_beside_the_script(tmp_path: Path) -> None:
    run_dir = run_directory(
        tmp_path,
        'echo "$MAD_MULTI_NODE_RUNNER"; cat deepspeed.hostfile\n',
        gpus_per_node=8,
        deployment={"distributed": {"launcher": "deepspeed", "nnodes": 2}},
    )
    node(run_dir)
    assert log(run_dir).splitlines() == [
        "deepspeed --hostfile=deepspeed.hostfile --master_addr=n0 --master_port=29511",
        "n0 slots=8",
        "n1 slots=8",
    ]


def test_a_models_own_slurm_script_runs_without_a_container_on_the_first_node(tmp_path: Path) -> None:
    run_dir = run_directory(
        tmp_path,
        card={"scripts": "scripts/m/own.slurm", "env_vars": {"A": "1"}},
        engine="",
        launcher="slurm_multi",
        reporters=1,
        deployment={"distributed": {"launcher": "slurm_multi", "nnodes": 2}},
    )
    (tmp_path / "package" / "scripts" / "m" / "own.slurm").write_text(
        "#SBATCH -N 2\necho A=$A\necho performance: 1 x\n"
    )
    assert node(run_dir)[0] == 0
    assert log(run_dir).startswith("A=1\n")
