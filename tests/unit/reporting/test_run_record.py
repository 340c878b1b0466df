"""run.json: provenance that survives a killed run and holds no secret."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import madengine
from madengine.core.errors import ConfigurationError, MADEngineError, ValidationError
from madengine.reporting.git_state import GitState
from madengine.reporting.run_record import (
    Machine,
    RunGpus,
    RunImage,
    RunRecord,
    SpecSummary,
    read_run_record,
    this_machine,
    utc,
    write_run_record,
)
from madengine.verdict.evidence import Outcome, Verdict

START = datetime(2026, 1, 31, 23, 59, 59, 123456, tzinfo=timezone.utc)
CANARY = "hf_canarysecret0123456789"
RECORD = RunRecord(
    run_id="20260131T235959Z-bert-ab12",
    model="scope/bert",
    machine=Machine("gpu-07", "Linux 6.1 x86_64", "3.11.7", "0.1.0", GitState("a" * 40, True)),
    command=("madengine", "run", "--tags", "bert"),
    started=utc(START),
    package_git=GitState("b" * 40, False),
    image=RunImage("ci-bert"),
    gpus=RunGpus("AMD", (0, 1), 8, "gfx942", "MI300X", "6.4"),
    spec=SpecSummary(script="run.sh", args="--n 2", timeout=7200.0, variables=("MAD_MODEL_NAME",)),
)


def finished(**changes: Any) -> RunRecord:
    values: dict[str, Any] = {
        "ended": START + timedelta(seconds=90),
        "duration": 90.12345,
        "exit_code": 0,
        "verdict": Verdict(Outcome.INCOMPLETE, "the numbers stand", warnings=("node 1 exited 1",), strict_exit_code=3),
        "rows": [{"model": "scope/bert", "performance": "1.50"}],
    }
    return RECORD.finished(**{**values, **changes})


def test_a_run_that_has_only_started_says_what_it_is(tmp_path: Path) -> None:
    path = write_run_record(tmp_path, RECORD)
    assert path == tmp_path / "run.json"
    found = read_run_record(tmp_path)
    assert (found["run_id"], found["started"]) == (RECORD.run_id, "2026-01-31T23:59:59.123Z")
    assert found["machine"]["git"] == {"commit": "a" * 40, "dirty": True}
    assert found["package_git"] == {"commit": "b" * 40, "dirty": False}
    assert found["gpus"]["indices"] == [0, 1]
    assert found["ended"] is found["verdict"] is found["exit_code"] is found["duration"] is None


def test_a_finished_run_says_how_it_ended(tmp_path: Path) -> None:
    write_run_record(tmp_path, RECORD)
    write_run_record(tmp_path, finished(image=RunImage("ci-bert", "sha256:1234")))
    found = read_run_record(tmp_path)
    assert (found["ended"], found["duration"], found["exit_code"]) == ("2026-02-01T00:01:29.123Z", 90.123, 0)
    assert found["verdict"]["outcome"] == "INCOMPLETE"
    assert found["verdict"]["warnings"] == ["node 1 exited 1"]
    assert found["verdict"]["strict_exit_code"] == 3
    assert found["rows"] == [{"model": "scope/bert", "performance": "1.50"}]
    assert found["image"] == {"reference": "ci-bert", "digest": "sha256:1234"}
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_the_image_stays_when_the_end_brings_no_other() -> None:
    assert finished().image == RECORD.image


def test_times_of_any_zone_are_utc() -> None:
    assert utc(START.astimezone(timezone(timedelta(hours=5, minutes=30)))) == "2026-01-31T23:59:59.123Z"


def test_no_secret_reaches_the_file(tmp_path: Path) -> None:
    record = replace(
        finished(
            verdict=Verdict(Outcome.FAILURE, f"said {CANARY}", explanation=(f"x{CANARY}",)),
            rows=[{"cmd": f"--t {CANARY}", CANARY: "x"}],
        ),
        command=(
            "madengine",
            "run",
            "--token",
            "unknown-secret",
            f"-c={CANARY}",
            "--additional-context",
            f"{{'k': '{CANARY}'}}",
        ),
        spec=SpecSummary(
            args=f"--hf-token other-secret --x {CANARY} '; y'",
            options=("-e", "HF_TOKEN=third-secret", CANARY),
            secrets=("MAD_SECRETS_HFTOKEN",),
        ),
        notes=(CANARY,),
    )
    text = write_run_record(tmp_path, record, secrets=[CANARY]).read_text()
    for secret in (CANARY, "unknown-secret", "other-secret", "third-secret"):
        assert secret not in text
    assert "MAD_SECRETS_HFTOKEN" in text


@pytest.mark.parametrize("args", ["--n 2", "--lat '128:128;128:1024'", "unclosed 'quote", ""])
def test_args_without_a_secret_stay_as_they_are(tmp_path: Path, args: str) -> None:
    write_run_record(tmp_path, replace(RECORD, spec=SpecSummary(args=args)))
    assert read_run_record(tmp_path)["spec"]["args"] == args


def test_text_that_is_no_unicode_can_be_read_back(tmp_path: Path) -> None:
    write_run_record(tmp_path, replace(RECORD, model="a\udc80\0"))
    assert read_run_record(tmp_path)["model"] == "a\\udc80\\x00"


def test_this_machine_names_the_versions() -> None:
    machine = this_machine()
    assert machine.madengine == madengine.__version__
    assert machine.python.startswith("3.")
    assert machine.host


def test_a_folder_that_cannot_be_written_is_an_error_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "run.json").mkdir()
    with pytest.raises(MADEngineError, match=r"run\.json"):
        write_run_record(tmp_path, RECORD)


def written(folder: Path, **changes: Any) -> Path:
    path = write_run_record(folder, finished())
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    return path


def test_keys_that_are_not_known_are_kept(tmp_path: Path) -> None:
    written(tmp_path, later="x")
    assert read_run_record(tmp_path)["later"] == "x"


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"kind": "other"}, ""),
        ({"version": 2}, "/version"),
        ({"version": None}, "/version"),
        ({"run_id": 1}, "/run_id"),
        ({"started": None}, "/started"),
        ({"exit_code": "0"}, "/exit_code"),
        ({"exit_code": True}, "/exit_code"),
        ({"verdict": []}, "/verdict"),
        ({"rows": {}}, "/rows"),
    ],
)
def test_what_is_no_run_record_is_refused_with_its_place(tmp_path: Path, changes: dict[str, Any], pointer: str) -> None:
    written(tmp_path, **changes)
    with pytest.raises(ValidationError) as caught:
        read_run_record(tmp_path)
    assert caught.value.pointer == pointer
    assert "run.json" in str(caught.value)


@pytest.mark.parametrize("name", ["run_id", "verdict", "rows", "package_git"])
def test_a_record_that_lacks_something_is_refused(tmp_path: Path, name: str) -> None:
    path = written(tmp_path)
    document = json.loads(path.read_text())
    del document[name]
    path.write_text(json.dumps(document))
    with pytest.raises(ValidationError, match=f"lacks '{name}'"):
        read_run_record(tmp_path)


@pytest.mark.parametrize("contents", [None, "", "{", "[]", "null", "\0", '{"kind": NaN}', "[" * 100_000])
def test_what_is_no_json_object_is_refused(tmp_path: Path, contents: str | None) -> None:
    if contents is not None:
        (tmp_path / "run.json").write_text(contents)
    with pytest.raises(ConfigurationError, match=r"run\.json"):
        read_run_record(tmp_path)
