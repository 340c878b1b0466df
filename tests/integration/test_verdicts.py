"""Every way a run can end, on the host and in real containers: one table, the same verdicts."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.integration.verdicts import CASES, Case, write_package

from madengine.cli.main import main

BY_NAME = {case.name: case for case in CASES}
LOCAL_IMAGE = '{"MAD_CONTAINER_IMAGE": "local/debian-py:1"}'


class Outcome:
    """What one command over all cases came to: its summary, its error output, its rows."""

    def __init__(self, folder: Path, exit_code: int, errors: str) -> None:
        self.exit_code = exit_code
        self.errors = errors
        self.summary: dict[str, Any] = json.loads((folder / "summary.json").read_text())
        self.runs = {run["model"]: run for run in self.summary["runs"]}
        with (folder / "perf.csv").open(newline="") as file:
            self.rows = list(csv.DictReader(file))

    def said_of(self, name: str) -> str:
        run = self.runs[name]
        return "\n".join([run["reason"], *run["warnings"], *run["notes"], *run["explanation"]])


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_package(tmp_path_factory.mktemp("package"))


def run_all(package: Path, folder: Path, engine: str, capsys: pytest.CaptureFixture[str] | None = None) -> Outcome:
    words = ["run", "--tags", "verdicts", "--model-dir", str(package), "--engine", engine, "-s", "summary.json"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exit_code = main([*words, "-c", LOCAL_IMAGE])
    errors = capsys.readouterr().err if capsys else ""
    return Outcome(folder, exit_code, errors)


@pytest.fixture(scope="module")
def on_host(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return run_all(package, tmp_path_factory.mktemp("host"), "host")


@pytest.fixture(scope="module")
def in_docker(package: Path, tmp_path_factory: pytest.TempPathFactory, docker_engine: Mapping[str, str]) -> Outcome:
    return run_all(package, tmp_path_factory.mktemp("docker"), "docker")


@pytest.fixture(params=["on_host", pytest.param("in_docker", marks=pytest.mark.docker)])
def outcome(request: pytest.FixtureRequest) -> Outcome:
    result: Outcome = request.getfixturevalue(request.param)
    return result


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
class TestEveryCase:
    """One card, one verdict."""

    def test_has_its_outcome(self, case: Case, outcome: Outcome) -> None:
        assert outcome.runs[case.name]["outcome"] == case.outcome, outcome.said_of(case.name)

    def test_says_what_happened(self, case: Case, outcome: Outcome) -> None:
        said = outcome.said_of(case.name)
        assert [word for word in case.words if word not in said] == [], said

    def test_leaves_its_rows(self, case: Case, outcome: Outcome) -> None:
        mine = [row for row in outcome.rows if row["model"] == case.name or row["model"].startswith(case.name + "_")]
        mine = [row for row in mine if row["model"] not in BY_NAME or row["model"] == case.name]
        assert tuple(row["status"] for row in mine) == case.statuses

    def test_keeps_its_record(self, case: Case, outcome: Outcome) -> None:
        record = json.loads((Path(outcome.runs[case.name]["run_directory"]) / "run.json").read_text())
        assert record["verdict"]["outcome"] == case.outcome
        assert record["ended"] >= record["started"]


def test_the_command_ends_with_the_worst_of_all(outcome: Outcome) -> None:
    assert outcome.exit_code == 3


@pytest.mark.parametrize(
    ("name", "strict"), [(case.name, strict) for case in CASES if case.exit_code != case.strict for strict in (0, 1)]
)
def test_what_did_not_finish_exits_3_only_under_strict(
    name: str, strict: int, package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["run", "--tags", name, "--model-dir", str(package), "--engine", "host", *(["--strict"] * strict)]
    assert main(words) == (BY_NAME[name].strict if strict else BY_NAME[name].exit_code)


@pytest.mark.parametrize("name", ["measures", "silent", "exits_7"])
def test_a_single_run_exits_with_its_own_code(
    name: str, package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run", "-t", name, "--model-dir", str(package), "--engine", "host"]) == BY_NAME[name].exit_code


def test_nothing_was_written_into_the_package(package: Path, on_host: Outcome) -> None:
    assert on_host.runs
    expected = {"models.json", "docker/verdicts.Dockerfile"}
    expected |= {f"scripts/{case.name}/{name}" for case in CASES for name in ("run.sh", *case.shipped)}
    assert {str(path.relative_to(package)) for path in package.rglob("*") if path.is_file()} == expected
