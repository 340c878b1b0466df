"""Ctrl-C, TERM and a terminal that is closed, for whole commands: models that run, and images that are built."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.integration.packages import MADENGINE, read_csv

RUN = ("run", "--model-dir", "package", "--engine", "host")
SLEEPS = "echo $$ >../../../../script.pid\nsleep 300\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_command_ends_its_script_records_it_and_says_what_did_not_start(
    tmp_path: Path, number: signal.Signals
) -> None:
    done, script = interrupted(tmp_path, number)
    assert done.returncode == 130
    assert not Path(f"/proc/{script}").exists()
    [row] = read_csv(tmp_path / "perf.csv")
    assert (row["model"], row["status"]) == ("first", "FAILURE")
    [folder] = (tmp_path / "runs").iterdir()
    verdict = json.loads((folder / "run.json").read_text())["verdict"]
    assert verdict["reason"].startswith("cancelled after ")
    assert (folder / "evidence.json").exists()
    assert "not started: second" in done.stderr


def test_a_terminal_that_is_closed_ends_the_script_and_leaves_a_row(tmp_path: Path) -> None:
    package(tmp_path / "package")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*MADENGINE, *RUN, "--tags", "first,second"],
        cwd=tmp_path,
        env={**environment(), "TERM": "xterm"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        script = int(written(tmp_path / "script.pid"))
        os.close(ours)  # the process has no controlling terminal, so the signal is sent by hand
        process.send_signal(signal.SIGHUP)
        assert process.wait(30) == 130
    finally:
        process.kill()
        process.wait()
    assert not Path(f"/proc/{script}").exists()
    [row] = read_csv(tmp_path / "perf.csv")
    assert (row["model"], row["status"]) == ("first", "FAILURE")
    assert len(list(tmp_path.glob("runs/*/evidence.json"))) == 1


def test_nohup_keeps_a_run_alive(tmp_path: Path) -> None:
    package(tmp_path / "package", "echo $$ >../../../../script.pid\nsleep 0.3\necho performance: 1 x\n")
    command = ["nohup", *MADENGINE, *RUN, "--tags", "first"]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    written(tmp_path / "script.pid")
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=30)
    assert process.returncode == 0
    assert [row["status"] for row in read_csv(tmp_path / "perf.csv")] == ["SUCCESS"]


# --- while images are built


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_an_interrupted_build_keeps_what_was_built_and_names_the_rest(tmp_path: Path, number: signal.Signals) -> None:
    done, builder = interrupted_build(tmp_path, number, "build")
    assert done.returncode == 130
    assert not Path(f"/proc/{builder}").exists()
    manifest = json.loads((tmp_path / "build_manifest.json").read_text())
    assert list(manifest["built_images"]) == ["ci-first_m"]
    failed = [(item["model"], item["error"]) for item in manifest["summary"]["failed_builds"]]
    assert failed == [("second", "interrupted"), ("third", "not started")]
    assert "error: interrupted; not finished: second; not started: third" in done.stderr
    assert done.stderr.count("error:") == 1


def test_a_run_that_is_interrupted_while_it_builds_records_that_build_and_names_the_rest(tmp_path: Path) -> None:
    done, builder = interrupted_build(tmp_path, signal.SIGINT, "run", "--manifest-output", "built.json")
    assert done.returncode == 130
    assert not Path(f"/proc/{builder}").exists()
    [row] = read_csv(tmp_path / "perf.csv")
    assert (row["model"], row["status"]) == ("second", "FAILURE")
    [record] = tmp_path.glob("runs/*-second-*/run.json")
    reason = json.loads(record.read_text())["verdict"]["reason"]
    assert reason.startswith("cancelled: there is no image for it (log: runs/build-")
    assert "interrupted: not started: first, third" in done.stderr
    assert list(json.loads((tmp_path / "built.json").read_text())["built_images"]) == ["ci-first_m"]


DOCKER = """#!/bin/sh
# Builds everything at once, but hangs in the second model's image.
case "$*" in
version*) echo 1 ;;
image*) echo "no such image" >&2; exit 1 ;;
build*second*) echo $$ >"$HERE/builder.pid"; exec sleep 300 ;;
esac
"""


def interrupted_build(
    folder: Path, number: signal.Signals, *words: str
) -> tuple[subprocess.CompletedProcess[str], int]:
    """Send the signal while the second of three images is built; also the builder's process id."""
    package(folder / "package")
    (folder / "bin").mkdir()
    (folder / "bin" / "docker").write_text(DOCKER)
    (folder / "bin" / "docker").chmod(0o755)
    variables = {**environment(), "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}", "HERE": str(folder)}
    command = [*MADENGINE, *words, "--engine", "docker", "--model-dir", "package", "--tags", "first,second,third"]
    command += ["-c", '{"gpu_vendor": "AMD"}'] * (words[0] == "build")
    process = subprocess.Popen(command, cwd=folder, env=variables, stderr=subprocess.PIPE, text=True)
    try:
        builder = int(written(folder / "builder.pid"))
        process.send_signal(number)
        _, said = process.communicate(timeout=30)
    finally:
        process.kill()
    return subprocess.CompletedProcess(command, process.returncode, stderr=said), builder


# --- what they share


def interrupted(folder: Path, number: signal.Signals) -> tuple[subprocess.CompletedProcess[str], int]:
    """Run two models and send the signal while the first one's script sleeps; also the script's process id."""
    package(folder / "package")
    command = [*MADENGINE, *RUN, "--tags", "first,second"]
    process = subprocess.Popen(command, cwd=folder, env=environment(), stderr=subprocess.PIPE, text=True)
    try:
        script = int(written(folder / "script.pid"))
        process.send_signal(number)
        _, said = process.communicate(timeout=30)
    finally:
        process.kill()
    return subprocess.CompletedProcess(command, process.returncode, stderr=said), script


def package(folder: Path, script: str = SLEEPS) -> None:
    (folder / "scripts").mkdir(parents=True)
    (folder / "scripts" / "run.sh").write_text(script)
    (folder / "docker").mkdir()
    (folder / "docker" / "m.Dockerfile").write_text("FROM local/base:1\n")
    card = {"scripts": "scripts/run.sh", "dockerfile": "docker/m", "n_gpus": "0"}
    cards = [{"name": name, **card} for name in ("first", "second", "third")]
    (folder / "models.json").write_text(json.dumps(cards))


def environment() -> Mapping[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("MAD_", "MODEL_DIR"))}


def written(path: Path) -> str:
    """What a file holds once there is something in it."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if path.exists() and path.read_text().strip():
            return path.read_text()
        time.sleep(0.02)
    raise AssertionError(f"{path} was not written")
