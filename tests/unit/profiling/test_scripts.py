"""The tools that travel into a run's workspace."""

from __future__ import annotations

import csv
import json
import os
import subprocess
from pathlib import Path

import pytest

from madengine.core.shell import split_words
from madengine.profiling import ENVIRONMENT_SCRIPT, SCRIPTS, TOOLS_FILE

TOOLS = json.loads(TOOLS_FILE.read_text())["tools"]
SAMPLER = SCRIPTS / "tools" / "sampler.py"
SHIPPED = "../scripts/common/"

ROCM_SMI = """#!/bin/sh
case "$*" in
    *power*) echo '{"card0": {"Average Graphics Package Power (W)": "90.0"}, "card1": {"Current Socket Graphics Package Power (W)": "91.5"}}' ;;
    *) echo '{"card0": {"VRAM Total Memory (B)": "206141652992", "VRAM Total Used Memory (B)": "298647552"}}' ;;
esac
"""  # noqa: E501 - as the tool prints it


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A run directory in a workspace."""
    folder = tmp_path / "run_directory"
    folder.mkdir()
    return folder


def run(here: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", "MAD_SAMPLER_INTERVAL": "0.02", **variables}
    python = Path(os.__file__).parents[2] / "bin" / "python3"
    argv = [str(python) if word == "python3" else word for word in words]
    return subprocess.run(argv, check=False, cwd=here, env=environment, capture_output=True, text=True)


def rows(path: Path) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file))


@pytest.mark.parametrize("name", TOOLS)
def test_a_tools_command_is_shell_words_and_its_script_is_shipped(name: str) -> None:
    words = split_words(TOOLS[name].get("cmd", ""))
    shipped = [word for word in words if word.startswith(SHIPPED)]
    assert all((SCRIPTS / word.removeprefix(SHIPPED)).is_file() for word in shipped)
    assert words or TOOLS[name]["env_vars"]
    assert not words or words[-1] == "--"


@pytest.mark.parametrize(
    "name", ["rocprofv3_communication", "gpu_info_power_profiler", "gpu_info_vram_profiler", "rccl_trace"]
)
def test_the_tools_that_people_name_are_there(name: str) -> None:
    assert name in TOOLS


def test_the_sampler_writes_samples_and_ends_as_the_command_does(here: Path) -> None:
    done = run(here, "python3", str(SAMPLER), "system", "out.csv", "--", "bash", "-c", "echo 'a  b'; sleep 0.1; exit 7")
    assert (done.returncode, done.stdout) == (7, "a  b\n")
    header, *samples = rows(here / "out.csv")
    assert header == ["time", "device", "system"]
    assert {device for _, device, _ in samples} == {"load", "memory"}
    assert len(samples) > 2


@pytest.mark.parametrize(("kind", "expected"), [("power", [["0", "90.0"], ["1", "91.5"]]), ("vram", [["0", "284"]])])
def test_the_sampler_asks_rocm_smi(here: Path, tmp_path: Path, kind: str, expected: list[list[str]]) -> None:
    (tmp_path / "rocm-smi").write_text(ROCM_SMI)
    (tmp_path / "rocm-smi").chmod(0o755)
    run(here, "python3", str(SAMPLER), kind, "out.csv", "--", "true", PATH=f"{tmp_path}:/usr/bin:/bin")
    assert [row[1:] for row in rows(here / "out.csv")[1:]][: len(expected)] == expected


def test_the_sampler_asks_nvidia_smi(here: Path, tmp_path: Path) -> None:
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\necho '0, 68.77'\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    run(here, "python3", str(SAMPLER), "power", "out.csv", "--", "true", PATH=f"{tmp_path}:/usr/bin:/bin")
    assert rows(here / "out.csv")[1][1:] == ["0", "68.77"]


def test_without_a_gpu_tool_the_command_runs_all_the_same(here: Path) -> None:
    done = run(here, "python3", str(SAMPLER), "power", "out.csv", "--", "bash", "-c", "exit 3")
    assert done.returncode == 3
    assert "without samples" in done.stderr


@pytest.mark.parametrize("words", [[], ["power"], ["power", "o", "true"], ["heat", "o", "--", "true"]])
def test_the_sampler_explains_itself(here: Path, words: list[str]) -> None:
    done = run(here, "python3", str(SAMPLER), *words)
    assert done.returncode == 4
    assert "usage" in done.stderr


def test_a_command_that_is_not_there_is_127(here: Path) -> None:
    done = run(here, "python3", str(SAMPLER), "system", "out.csv", "--", "no-such-program")
    assert done.returncode == 127
    assert "no-such-program" in done.stderr


def test_a_command_that_a_signal_ended_is_128_and_its_number(here: Path) -> None:
    done = run(here, "python3", str(SAMPLER), "system", "out.csv", "--", "bash", "-c", "kill -KILL $$")
    assert done.returncode == 137


def test_the_rocprof_wrapper_runs_the_command_without_rocprof(here: Path) -> None:
    wrapper = str(SCRIPTS / "tools" / "rocprof_wrapper.sh")
    done = run(here, "bash", wrapper, "--kernel-trace", "-d", "x", "--", "printf", "%s|", "a b", "--", "c")
    assert (done.returncode, done.stdout) == (0, "a b|--|c|")
    assert "without a profile" in done.stderr
    assert run(here, "bash", wrapper, "--kernel-trace").returncode == 4


def test_the_rocprof_wrapper_hands_options_and_command_to_rocprofv3(here: Path, tmp_path: Path) -> None:
    (tmp_path / "rocprofv3").write_text("#!/bin/sh\nprintf '%s|' \"$@\"\n")
    (tmp_path / "rocprofv3").chmod(0o755)
    wrapper = str(SCRIPTS / "tools" / "rocprof_wrapper.sh")
    done = run(here, "bash", wrapper, "-d", "a b", "--", "cmd", "x y", PATH=f"{tmp_path}:/usr/bin:/bin")
    assert done.stdout == "-d|a b|--|cmd|x y|"


def test_the_environment_script_writes_facts_and_no_values_of_variables(here: Path, tmp_path: Path) -> None:
    script = SCRIPTS / Path(ENVIRONMENT_SCRIPT).relative_to("scripts/common")
    done = run(here, "bash", str(script), MAD_MODEL_NAME="a/b$(c)", MAD_SECRETS_X="hidden")
    assert done.returncode == 0
    facts = {row[0]: row[1] for row in rows(tmp_path / "a_b__c__env.csv")}
    assert facts["kernel"] == os.uname().release
    assert "MAD_SECRETS_X" in facts["variables"]
    assert "hidden" not in (tmp_path / "a_b__c__env.csv").read_text()
