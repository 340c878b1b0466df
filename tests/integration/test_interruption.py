"""Ctrl-C, as a terminal sends it, to a whole command on the host engine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.integration.packages import MADENGINE, read_csv

SLEEPS = "echo $$ >../../../../script.pid\nsleep 300\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
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


def interrupted(folder: Path, number: signal.Signals) -> tuple[subprocess.CompletedProcess[str], int]:
    """Run two models and send the signal while the first one's script sleeps; also the script's process id."""
    package(folder / "package")
    command = [*MADENGINE, "run", "--model-dir", "package", "--tags", "first,second", "--engine", "host"]
    process = subprocess.Popen(command, cwd=folder, env=environment(), stderr=subprocess.PIPE, text=True)
    try:
        script = int(written(folder / "script.pid"))
        process.send_signal(number)
        _, said = process.communicate(timeout=30)
    finally:
        process.kill()
    return subprocess.CompletedProcess(command, process.returncode, stderr=said), script


def package(folder: Path) -> None:
    (folder / "scripts").mkdir(parents=True)
    (folder / "scripts" / "run.sh").write_text(SLEEPS)
    cards = [{"name": name, "scripts": "scripts/run.sh", "n_gpus": "0"} for name in ("first", "second")]
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
