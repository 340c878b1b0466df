"""What is kept of runs: rows, records, workspaces."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.orchestration.worlds import EIGHT, manifest, planned

from madengine.deployment.base import Observed
from madengine.execution.spec import GpuGrant, Place, RunSpec
from madengine.orchestration import recorder as module
from madengine.orchestration.facts import run_facts
from madengine.orchestration.recorder import CommandFacts, FileRecorder
from madengine.orchestration.report import FinishedRun
from madengine.reporting.git_state import GitState
from madengine.reporting.perf_entry import perf_files
from madengine.reporting.run_record import Machine
from madengine.verdict.evidence import Evidence, Measurement, NodeReport, Outcome
from madengine.verdict.judge import judge

CANARY = "canary-7f3a9e"
MACHINE = Machine("gpu-07", "Linux", "3.11", "0.1.0")


def recorder(tmp_path: Path, **fields: Any) -> FileRecorder:
    facts = CommandFacts(
        files=perf_files(tmp_path),
        manifest=manifest(context={"docker_env_vars": {"HF_TOKEN": CANARY}}),
        command=("madengine", "run", "--additional-context", json.dumps({"docker_env_vars": {"HF_TOKEN": CANARY}})),
        machine=MACHINE,
        package_git=GitState("b" * 40, False),
        digest_of={"img:1": "sha256:1"}.__getitem__,
        environ={"BUILD_NUMBER": "7", "pipeline": "nightly"},
    )
    return FileRecorder(replace(facts, **fields))


def spec(tmp_path: Path, **fields: Any) -> RunSpec:
    one = planned(tmp_path, context={"docker_env_vars": {"HF_TOKEN": CANARY}})
    return replace(one, **{"key": "k0", **fields})


def evidence(run: RunSpec, *, exit_code: int = 0, measured: bool = True, text: str = "x") -> Evidence:
    measurements = (Measurement(12.5, text),) if measured else ()
    return Evidence(run.run_id, measurements=measurements, nodes=(NodeReport(0, "gpu-07", exit_code, script=True),))


def record(keeper: FileRecorder, run: RunSpec, seen: Evidence | None = None) -> FinishedRun:
    seen = seen or evidence(run)
    keeper.opened(run)
    (run.workspace / "run_directory").mkdir(parents=True, exist_ok=True)
    return keeper.closed(run, seen, judge(seen))


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_run_leaves_its_row_the_moment_it_is_judged(tmp_path: Path) -> None:
    finished = record(recorder(tmp_path), spec(tmp_path))
    (row,) = rows(tmp_path / "perf.csv")
    assert finished.saved
    assert [dict(found) for found in finished.rows] == [row]
    expected = {
        "model": "m",
        "performance": "12.5",
        "status": "SUCCESS",
        "machine_name": "gpu-07",
        "git_commit": "b" * 40,
        "build_number": "7",
        "pipeline": "nightly",
        "docker_image": "img:1",
        "deployment_type": "local",
        "nnodes": "1",
    }
    assert {name: row[name] for name in expected} == expected


def test_a_run_that_began_says_what_it_is_before_it_ends(tmp_path: Path) -> None:
    run, keeper = spec(tmp_path), recorder(tmp_path)
    keeper.opened(run)
    begun = json.loads((run.run_dir / "run.json").read_text())
    assert (begun["run_id"], begun["ended"], begun["machine"]["host"]) == (run.run_id, None, "gpu-07")
    assert list(json.loads((run.run_dir / "manifest.json").read_text())["built_models"]) == ["k0"]


def test_the_record_of_a_run_ends_with_its_verdict_and_its_image(tmp_path: Path) -> None:
    run = spec(tmp_path)
    record(recorder(tmp_path), run, evidence(run, exit_code=3))
    ended = json.loads((run.run_dir / "run.json").read_text())
    assert (ended["exit_code"], ended["verdict"]["outcome"]) == (3, "INCOMPLETE")
    assert ended["image"] == {"reference": "img:1", "digest": "sha256:1"}
    assert ended["ended"] >= ended["started"]


@pytest.mark.parametrize("fields", [{}, {"refusal": "no GPU"}, {"skip": "not wanted"}])
def test_no_secret_is_written_whatever_becomes_of_the_run(tmp_path: Path, fields: dict[str, str]) -> None:
    run = spec(tmp_path, **fields)
    keeper = recorder(tmp_path)
    record(keeper, run, evidence(run, text=f"x {CANARY}"))
    keeper.finish()
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or CANARY not in path.read_text()


@pytest.mark.parametrize(
    ("exit_code", "measured", "fields", "stays"),
    [
        (0, True, {}, False),
        (3, True, {}, True),
        (3, False, {}, True),
        (0, False, {}, True),
        (0, True, {"keep_workspace": True}, True),
        (0, True, {"keep_alive": True}, True),
    ],
)
def test_the_workspace_of_a_success_goes_and_every_other_explains(
    tmp_path: Path, exit_code: int, measured: bool, fields: dict[str, bool], stays: bool
) -> None:
    run = spec(tmp_path, **fields)
    record(recorder(tmp_path), run, evidence(run, exit_code=exit_code, measured=measured))
    assert run.workspace.exists() is stays


def test_a_workspace_that_cannot_be_removed_is_a_remark_and_no_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "remove_tree", lambda path: [path / "busy", path / "other"])
    keeper = recorder(tmp_path)
    record(keeper, spec(tmp_path))
    assert keeper.problems == []
    assert "2 files of the workspace could not be removed" in keeper.remarks[0]


def test_rows_that_cannot_be_appended_lie_in_the_run_directory_and_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "perf.csv").mkdir()
    keeper, run = recorder(tmp_path), spec(tmp_path)
    finished = record(keeper, run)
    assert not finished.saved
    saved = run.run_dir / "rows.json"
    assert json.loads(saved.read_text())[0]["performance"] == "12.5"
    assert "m has no rows in perf.csv" in keeper.problems[0]
    assert str(saved) in keeper.problems[1]


def test_rows_that_can_be_written_nowhere_are_still_shown_and_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "perf.csv").mkdir()
    (tmp_path / "runs").write_text("a file where the folder of runs should be")
    keeper, run = recorder(tmp_path), spec(tmp_path)
    keeper.opened(run)
    seen = evidence(run)
    finished = keeper.closed(run, seen, judge(seen))
    assert finished.rows[0]["performance"] == "12.5"
    assert any("Not a directory" in problem or "File exists" in problem for problem in keeper.problems)
    assert not any("are in" in problem for problem in keeper.problems)


def test_a_configuration_that_args_name_and_that_is_not_there_is_a_remark(tmp_path: Path) -> None:
    run = spec(tmp_path)
    keeper = recorder(tmp_path)
    record(keeper, replace(run, script=replace(run.script, args="--config missing.yaml")))
    assert keeper.problems == []
    assert keeper.remarks == [f"m: --config missing.yaml names no file in {run.script.folder}"]


def test_at_the_end_the_rows_of_the_command_stand_in_files_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "perf.csv").write_text("model,performance\nold,1\n")
    keeper = recorder(tmp_path)
    record(keeper, spec(tmp_path))
    record(keeper, replace(spec(tmp_path), run_id="other", run_dir=tmp_path / "runs" / "other"))
    keeper.finish()
    assert [row["model"] for row in rows(tmp_path / "perf.csv")] == ["old", "m", "m"]
    assert [row["model"] for row in rows(tmp_path / "perf_entry.csv")] == ["m", "m"]
    assert keeper.files.entry_json.exists()


def test_files_of_the_command_that_are_not_wanted_are_removed(tmp_path: Path) -> None:
    keeper = recorder(tmp_path)
    for path in keeper.files.entries:
        path.write_text("of an earlier command")
    record(keeper, spec(tmp_path))
    keeper.finish(unwanted=keeper.files.entries[1:])
    assert [path.exists() for path in keeper.files.entries] == [True, False, False, False]
    assert [row["model"] for row in rows(tmp_path / "perf_entry.csv")] == ["m"]
    assert (tmp_path / "perf.csv").exists()


@pytest.mark.parametrize("wanted", [True, False])
def test_an_entry_that_cannot_be_written_or_removed_is_a_problem_not_an_exception(tmp_path: Path, wanted: bool) -> None:
    keeper = recorder(tmp_path)
    record(keeper, spec(tmp_path))
    (tmp_path / "perf_entry.csv").mkdir()
    keeper.finish(unwanted=() if wanted else keeper.files.entries)
    assert "perf_entry.csv" in keeper.problems[0]


@pytest.mark.parametrize(
    ("card", "rest", "expected"),
    [
        ({"n_gpus": "-1"}, {}, {"n_gpus": 0, "gpus_per_node": 0, "gpu_architecture": ""}),
        ({"n_gpus": "2"}, {"inventory": EIGHT}, {"n_gpus": 2, "gpus_per_node": 2, "gpu_architecture": "gfx942"}),
        ({"n_gpus": "16"}, {"inventory": EIGHT}, {"n_gpus": 16}),
        ({"data": "hub"}, {}, {"dataname": "hub", "data_provider_type": ""}),
        ({"data": "d"}, {"data": {"d": {"local": {"path": "/"}}}}, {"dataname": "d", "data_provider_type": "local"}),
        ({"args": "--x", "tags": "a, b", "training_precision": "fp16"}, {},
         {"args": "--x", "tags": ("a", "b"), "training_precision": "fp16"}),
    ],
)  # fmt: skip
def test_the_plain_columns_come_from_the_spec(
    tmp_path: Path, card: dict[str, Any], rest: dict[str, Any], expected: Mapping[str, Any]
) -> None:
    facts = run_facts(planned(tmp_path, card, **rest), duration=1.23456, git_commit="c", machine="h", environ={})
    assert {name: getattr(facts, name) for name in expected} == expected
    assert (facts.test_duration, facts.build_number, facts.pipeline) == (1.235, 0, "")


def test_the_outcome_of_a_finished_run_is_the_judges(tmp_path: Path) -> None:
    run = spec(tmp_path)
    assert record(recorder(tmp_path), run, evidence(run, measured=False)).verdict.outcome is Outcome.NO_METRIC


TWO_NODES = Place("slurm", nnodes=2, gpus_per_node=8, elsewhere=True)


@pytest.mark.parametrize(
    ("observed", "expected"),
    [
        (
            Observed(("n1", "n2"), 61.5, GpuGrant("AMD", (0, 1, 2, 3), 8, "gfx942"), "sha256:2", 3),
            ("n1,n2", "61.5", "8", "4", "gfx942"),
        ),
        (Observed(("n1",), 1.0, GpuGrant("CPU")), ("n1", "1.0", "0", "0", "")),
        (Observed(), ("", "0.0", "16", "8", "")),
    ],
    ids=["reported", "without GPUs", "never reported"],
)
def test_a_run_elsewhere_has_the_facts_of_its_own_machines(
    tmp_path: Path, observed: Observed, expected: tuple[str, ...]
) -> None:
    run, keeper = spec(tmp_path, place=TWO_NODES), recorder(tmp_path)
    keeper.opened(run)
    finished = keeper.closed(run, evidence(run), judge(evidence(run)), observed)
    (row,) = rows(tmp_path / "perf.csv")
    names = ("machine_name", "test_duration", "n_gpus", "gpus_per_node", "gpu_architecture")
    assert tuple(row[name] for name in names) == expected
    assert (row["nnodes"], row["deployment_type"], finished.observed) == ("2", "slurm", observed)


def test_the_record_of_a_run_elsewhere_takes_image_code_and_gpus_from_there(tmp_path: Path) -> None:
    run, keeper = spec(tmp_path, place=TWO_NODES), recorder(tmp_path)
    keeper.opened(run)
    seen = Observed(("n1", "n2"), 61.5, GpuGrant("AMD", (0, 1), 8, "gfx942"), "sha256:2", 3)
    keeper.closed(run, evidence(run), judge(evidence(run)), seen)
    ended = json.loads((run.run_dir / "run.json").read_text())
    assert (ended["target"], ended["exit_code"], ended["duration"]) == ("slurm", 3, 61.5)
    assert ended["image"] == {"reference": "img:1", "digest": "sha256:2"}
    assert (ended["gpus"]["indices"], ended["gpus"]["architecture"]) == ([0, 1], "gfx942")


def test_a_run_elsewhere_of_which_no_gpus_are_known_has_those_that_the_card_asks_for(tmp_path: Path) -> None:
    run = replace(planned(tmp_path, {"n_gpus": 4}), place=replace(TWO_NODES, gpus_per_node=None))
    facts = run_facts(run, duration=0, git_commit="", machine="", environ={})
    assert (facts.n_gpus, facts.gpus_per_node) == (4, "")
