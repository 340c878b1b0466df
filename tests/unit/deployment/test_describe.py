"""A run in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.execution.packages import package, spec

from madengine.deployment.base import Rendering
from madengine.deployment.describe import describe
from madengine.execution.engine import Mount
from madengine.execution.spec import GpuGrant, HookScript, ScriptPlan

CANARY = "canary-7f3a9e"


def shown(tmp_path: Path, **fields: Any) -> Rendering:
    return describe(spec(package(tmp_path), **fields))


@pytest.mark.parametrize(
    ("fields", "name", "value"),
    [
        ({}, "model", "m/model"),
        ({}, "engine", "host"),
        ({}, "image", "local/debian-py:1"),
        ({}, "timeout", "none"),
        ({"timeout": 90.0}, "timeout", "90 s"),
        ({"skip": "why"}, "skipped", "why"),
        ({"refusal": "why"}, "refused", "why"),
        ({}, "gpus", "none: this run is on the CPU"),
        ({"gpus": GpuGrant("AMD", (1, 3), 8, "gfx942")}, "gpus", "AMD 1,3 of 8 gfx942"),
        ({"launcher": "docker"}, "launcher", ""),
        ({"launcher": "torchrun"}, "launcher", "torchrun"),
        ({"mounts": (Mount(Path("/a"), "/b", True), Mount(Path("/c"), "/d"))}, "mounts",
         ["/a -> /b (read only)", "/c -> /d"]),
        ({"environment": {"B": "1", "A": "2"}}, "variables", ["A", "B"]),
        ({"secrets": {"B": "1", "A": "2"}}, "secrets", ["A", "B"]),
        ({"run_options": ("--label", "a b")}, "engine_options", ["--label", "'a b'"]),
        ({"pre_scripts": (HookScript("x.sh", "--y"), HookScript("z.sh"))}, "pre_scripts", ["x.sh --y", "z.sh"]),
        ({"post_scripts": (HookScript("x.sh"),)}, "post_scripts", ["x.sh"]),
        ({}, "results", "a 'performance: <number> <metric>' line of the script's output"),
        ({"results_file": "r.csv"}, "results", "r.csv"),
        ({"expected_results": 3}, "expected_results", 3),
        ({}, "expected_results", ""),
        ({}, "command", "cd run_directory && bash run.sh"),
        ({"args": "--a 'b c'  --d"}, "command", "cd run_directory && bash run.sh --a 'b c'  --d"),
        ({"prefix": ("nice", "a b")}, "command", "cd run_directory && nice 'a b' bash run.sh"),
    ],
)  # fmt: skip
def test_each_fact_is_told(tmp_path: Path, fields: dict[str, Any], name: str, value: Any) -> None:
    assert shown(tmp_path, **fields).facts[name] == value


def test_a_run_without_an_image_on_the_host_says_where_the_script_runs(tmp_path: Path) -> None:
    from madengine.config.manifest import ImageRecord

    bare = ImageRecord({"docker_image": None})
    assert shown(tmp_path / "a", image=bare).facts["image"] == "none: the script runs on this machine"
    assert shown(tmp_path / "b", image=bare, engine="docker").facts["image"] == ""


def test_the_text_has_one_fact_a_line_and_leaves_out_what_there_is_not(tmp_path: Path) -> None:
    text = shown(tmp_path, environment={"A": "1", "B": "2"}).files["plan.txt"]
    assert "variables         A, B\n" in text
    assert "secrets" not in text
    assert text.startswith("model             m/model\nrun               run-1\nengine            host\n")


def test_a_name_cannot_forge_a_fact(tmp_path: Path) -> None:
    text = shown(tmp_path, card={"name": "m\nimage             other"}).files["plan.txt"]
    assert text.count("\nimage ") == 1
    assert text.startswith("model             m\\nimage")


@pytest.mark.parametrize(
    "fields",
    [
        {"args": f"--hf_token {CANARY}"},
        {"args": f"--hf_token={CANARY} --x 'a b'"},
        {"args": f"'open --hf_token={CANARY}"},
        {"args": f"--x {CANARY}", "secrets": {"MAD_SECRETS_X": CANARY}},
        {"prefix": ("env", f"HF_TOKEN={CANARY}")},
        {"run_options": ("-e", f"HF_TOKEN={CANARY}")},
        {"run_options": (f"--label=x={CANARY}",), "secrets": {"MAD_SECRETS_X": CANARY}},
        {"refusal": f"no {CANARY}", "secrets": {"MAD_SECRETS_X": CANARY}},
        {"environment": {"HF_TOKEN": CANARY}, "args": CANARY},
        {"script": ScriptPlan(Path("/x"), f"{CANARY}.sh"), "secrets": {"MAD_SECRETS_X": CANARY}},
    ],
)
def test_no_value_of_a_secret_is_shown(tmp_path: Path, fields: dict[str, Any]) -> None:
    rendering = shown(tmp_path, **fields)
    assert CANARY not in repr(rendering.facts)
    assert CANARY not in rendering.files["plan.txt"]


def test_args_are_shown_as_they_are_written_when_they_hold_no_secret(tmp_path: Path) -> None:
    args = '--a "b c" --max-tokens 5 --q \'{"x": 1}\''
    assert shown(tmp_path, args=args).facts["command"].endswith(args)
