"""The scripts of a job: what stands in them, and that no value does anything there but be a value."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.hostile import HOSTILE
from tests.unit.execution.packages import spec

from madengine.catalog.card import ModelCard
from madengine.core.errors import ConfigurationError
from madengine.deployment.base import Rendering
from madengine.deployment.slurm.options import SlurmOptions, slurm_options
from madengine.deployment.slurm.script import directives, limit_seconds, notice, render
from madengine.execution.spec import Place, RunSpec

MADENGINE = "/opt/venv/bin/madengine"
PLAIN = [text for text in HOSTILE if text.isprintable() and text]


def options(**slurm: Any) -> SlurmOptions:
    return slurm_options(ModelCard({"name": "m"}), {"slurm": slurm}, environ={"XDG_CONFIG_HOME": "/nonexistent"})


def run_spec(tmp_path: Path, **fields: Any) -> RunSpec:
    made = spec(tmp_path)
    environment = {"NPROC_PER_NODE": "4", "MASTER_PORT": "1234"}
    return replace(made, **{"environment": environment, "place": Place("slurm", 2, elsewhere=True), **fields})


def rendered(tmp_path: Path, asked: SlurmOptions | None = None, **fields: Any) -> Rendering:
    return render(run_spec(tmp_path, **fields), asked or options(nodes=2), madengine=MADENGINE)


def check(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True, check=False)


def test_the_directives_say_all_that_the_job_asks_for(tmp_path: Path) -> None:
    asked = options(
        partition="gpu",
        account="bench",
        qos="high",
        reservation="r",
        constraint="mi300x",
        exclude="n[1-2]",
        nodes=2,
        gpus_per_node=8,
        time="1:00:00",
        mem="0",
        mail_user="me@example.com",
        mail_type="END",
        requeue=False,
    )
    run = run_spec(tmp_path)
    assert list(directives(run, asked)) == [
        f"--job-name={run.run_id}",
        f"--chdir={run.run_dir}",
        f"--output={run.run_dir}/logs/job.out",
        "--open-mode=append",
        "--nodes=2",
        "--ntasks-per-node=1",
        "--partition=gpu",
        "--account=bench",
        "--qos=high",
        "--reservation=r",
        "--exclude='n[1-2]'",
        "--constraint=mi300x",
        "--time=1:00:00",
        "--mem=0",
        "--gpus-per-node=8",
        "--exclusive",
        "--no-requeue",
        "--mail-user=me@example.com",
        "--mail-type=END",
        "--signal=B:TERM@60",
    ]


def test_what_sbatch_would_expand_or_take_away_is_doubled(tmp_path: Path) -> None:
    text = list(directives(run_spec(tmp_path, run_dir=tmp_path / "50%j"), replace(options(), partition="a\\b")))
    assert f"--output={tmp_path}/50%%j/logs/job.out" in text
    assert "--partition='a\\\\b'" in text


@pytest.mark.parametrize(
    ("slurm", "there", "absent"),
    [
        ({"skip_gpus_directive": True}, "", "--gpus-per-node"),
        ({"exclusive": False}, "", "--exclusive"),
        ({"requeue": True}, "--requeue", "--no-requeue"),
        ({}, "--gpus-per-node=8", "requeue"),
        ({"time": "2"}, "--signal=B:TERM@10", ""),
    ],
)
def test_what_is_not_asked_for_is_left_out(tmp_path: Path, slurm: dict[str, Any], there: str, absent: str) -> None:
    text = "\n".join(directives(run_spec(tmp_path), options(**slurm)))
    assert there in text
    assert not absent or absent not in text


def test_the_job_knows_its_shape(tmp_path: Path) -> None:
    text = rendered(tmp_path, options(nodes=2, kill_on_bad_exit=True, modules=["rocm/6.3"])).files["job.sh"]
    for line in (
        "nodes=2",
        "processes=4",
        "master_port=1234",
        "kill_on_bad_exit=1",
        "drives_allocation=0",
        "modules=(rocm/6.3)",
    ):
        assert f"\n{line}\n" in text


def test_a_script_that_drives_the_allocation_reports_alone(tmp_path: Path) -> None:
    text = rendered(tmp_path, launcher="slurm_multi").files["job.sh"]
    assert "\ndrives_allocation=1\nhas_image=1\n" in text


@pytest.mark.parametrize("name", ["job.sh", "node.sh"])
def test_the_scripts_are_scripts(tmp_path: Path, name: str) -> None:
    text = rendered(tmp_path).files[name]
    assert text.startswith("#!/bin/bash\n")
    assert check(text).stderr == ""
    assert "@" not in text.replace("@60", "").replace('"$@"', "").replace("[@]", "")


def test_values_that_look_like_placeholders_are_values(tmp_path: Path) -> None:
    text = rendered(tmp_path, run_id="@NODES@").files["job.sh"]
    assert "run_id=@NODES@" in text


def test_hostile_values_are_only_values(tmp_path: Path) -> None:
    """Every assignment is read back by bash, byte by byte; nothing is executed and no canary is made."""
    for number, hostile in enumerate(PLAIN):
        asked = replace(options(nodes=2), partition=hostile, modules=(hostile,), constraint=hostile)
        run = run_spec(tmp_path, run_id=hostile, run_dir=tmp_path / "d" / hostile.replace("/", "_"))
        made = render(run, asked, madengine=f"/opt/{hostile}")
        for name in ("job.sh", "node.sh"):
            assert check(made.files[name]).stderr == "", (hostile, name)
        if number % 10 == 0:
            head = made.files["job.sh"].partition("\nsay()")[0]
            reading = head + '\nprintf "%s\\0" "$run_id" "$run_dir" "${modules[0]}"'
            done = subprocess.run(["bash", "-c", reading], capture_output=True, check=True, cwd=tmp_path)
            assert done.stdout.split(b"\0")[:3] == [os.fsencode(v) for v in (hostile, str(run.run_dir), hostile)]
    assert not list(tmp_path.rglob("canary*"))


def test_a_value_that_no_shell_can_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="NUL"):
        rendered(tmp_path, run_id="a\0b")


@pytest.mark.skipif(
    shutil.which("shellcheck") is None and os.environ.get("CI") != "true", reason="shellcheck is not installed"
)
@pytest.mark.parametrize("hostile", ["plain", "it's", '$(touch canary); "x" `y` \\'])
def test_shellcheck_has_nothing_to_say(tmp_path: Path, hostile: str) -> None:
    asked = replace(options(nodes=2), modules=(hostile, "b"))
    for text in render(run_spec(tmp_path, run_id=hostile), asked, madengine=hostile).files.values():
        if text.startswith("#!"):
            done = subprocess.run(["shellcheck", "-"], input=text, text=True, capture_output=True, check=False)
            assert done.returncode == 0, done.stdout


def test_a_dry_run_shows_where_each_value_comes_from(tmp_path: Path) -> None:
    made = rendered(tmp_path, options(nodes=2, partition="gpu"))
    assert "partition=gpu (manifest or context)" in made.facts["slurm"]
    assert "time=24:00:00 (built-in default)" in made.facts["slurm"]
    assert "NCCL_DEBUG=WARN (built-in default for several nodes)" in made.facts["preset_variables"]
    assert "partition=gpu (manifest or context)" in made.files["plan.txt"]


def test_no_secret_is_in_a_script(tmp_path: Path) -> None:
    made = rendered(tmp_path, secrets={"HF_TOKEN": "canary-7f3a9e"}, environment={"A": "b"})
    assert all("canary-7f3a9e" not in text for text in made.files.values())


@pytest.mark.parametrize(
    ("limit", "seconds"),
    [
        ("10", 600),
        ("10:30", 630),
        ("1:00:00", 3600),
        ("2-00", 172800),
        ("2-01:30", 178200),
        ("1-00:00:01", 86401),
        ("UNLIMITED", None),
        ("0", None),
        ("", None),
        ("soon", None),
    ],
)
def test_time_limits_are_read_as_sbatch_reads_them(limit: str, seconds: float | None) -> None:
    assert limit_seconds(limit) == seconds


@pytest.mark.parametrize(("limit", "lead"), [("1", 10), ("4:59", 10), ("5", 60), ("UNLIMITED", 60)])
def test_a_short_job_gets_short_notice(limit: str, lead: int) -> None:
    assert notice(limit) == lead
