"""A run is recorded exactly once, whoever does it and wherever they are killed."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.orchestration.test_recorder import MACHINE
from tests.unit.orchestration.worlds import manifest, planned

from madengine.core.errors import MADEngineError
from madengine.deployment.base import Observed
from madengine.execution.spec import Place, RunSpec
from madengine.orchestration.recorder import CommandFacts
from madengine.orchestration.recording import APPENDING, RECORDED, OnceRecorder, read_recorded
from madengine.orchestration.report import FinishedRun
from madengine.reporting.perf_entry import perf_files
from madengine.verdict.evidence import Evidence, Measurement, NodeReport, Outcome
from madengine.verdict.judge import judge

ELSEWHERE = Place("slurm", 2, elsewhere=True)
SEEN = Observed(hosts=("n1", "n2"), duration=7.5, job="4711")


def recorder(tmp_path: Path, **environ: str) -> OnceRecorder:
    facts = CommandFacts(
        files=perf_files(tmp_path),
        manifest=manifest(),
        command=("madengine", "run"),
        machine=MACHINE,
        package_git=None,
        digest_of=lambda _: "",
        environ=environ,
    )
    return OnceRecorder(facts)


def spec(tmp_path: Path, **fields: Any) -> RunSpec:
    one = planned(tmp_path)
    return replace(one, **{"key": "k0", "run_id": "r1", "run_dir": tmp_path / "r1", "place": ELSEWHERE, **fields})


def evidence(value: float = 12.5) -> Evidence:
    return Evidence("r1", measurements=(Measurement(value, "x"),), nodes=(NodeReport(0, "n1", 0),))


def record(keeper: OnceRecorder, run: RunSpec, seen: Evidence | None = None) -> FinishedRun:
    seen = seen or evidence()
    keeper.opened(run)
    return keeper.closed(run, seen, judge(seen), SEEN)


def rows(tmp_path: Path) -> list[dict[str, str]]:
    with (tmp_path / "perf.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_recording_again_adds_nothing_and_says_what_was_recorded(tmp_path: Path) -> None:
    run = spec(tmp_path)
    first = record(recorder(tmp_path), run)
    again = record(recorder(tmp_path), run, evidence(99.0))
    assert (first.saved, first.before, again.saved, again.before) == (True, False, False, True)
    assert (again.evidence, again.verdict, again.rows) == (first.evidence, first.verdict, first.rows)
    assert (again.job, again.duration) == ("4711", 7.5)
    assert [row["performance"] for row in rows(tmp_path)] == ["12.5"]


def test_many_at_once_record_it_once(tmp_path: Path) -> None:
    run = spec(tmp_path)
    keepers = [recorder(tmp_path) for _ in range(8)]
    for keeper in keepers:
        keeper.opened(run)
    threads = [threading.Thread(target=lambda k=keeper: record(k, run)) for keeper in keepers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(rows(tmp_path)) == 1


def test_a_run_on_this_machine_needs_no_such_care(tmp_path: Path) -> None:
    run = spec(tmp_path, place=Place())
    record(recorder(tmp_path), run)
    assert not (run.run_dir / RECORDED).exists()


def test_a_run_whose_rows_could_not_be_written_is_not_recorded(tmp_path: Path) -> None:
    run = spec(tmp_path)
    (tmp_path / "perf.csv").mkdir()
    keeper = recorder(tmp_path)
    assert not record(keeper, run).saved
    assert keeper.problems
    (tmp_path / "perf.csv").rmdir()
    assert record(recorder(tmp_path), run).saved


def test_a_run_directory_that_cannot_be_written_keeps_no_row_from_perf_csv(tmp_path: Path) -> None:
    run = spec(tmp_path)
    (run.run_dir / APPENDING).mkdir(parents=True)
    keeper = recorder(tmp_path)
    assert record(keeper, run).saved
    assert len(rows(tmp_path)) == 1
    assert any(APPENDING in problem for problem in keeper.problems)


def test_what_perf_csv_holds_is_what_the_run_came_to(tmp_path: Path) -> None:
    run = spec(tmp_path)
    record(recorder(tmp_path), run)
    (run.run_dir / RECORDED).unlink()
    lost = Evidence("r1", nodes=(NodeReport(0, "n1", 3),))
    assert record(recorder(tmp_path), run, lost).verdict.outcome is Outcome.SUCCESS
    assert [row["performance"] for row in rows(tmp_path)] == ["12.5"]


def test_cells_with_line_ends_of_other_kinds_are_recognised(tmp_path: Path) -> None:
    run = spec(tmp_path)
    odd = Evidence("r1", measurements=(Measurement(1.0, "a\u2028b\x0cc"),), nodes=(NodeReport(0, "n1", 0),))
    record(recorder(tmp_path), run, odd)
    (run.run_dir / RECORDED).unlink()
    record(recorder(tmp_path), run, odd)
    assert len((tmp_path / "perf.csv").read_bytes().split(b"\n")) == 3


def test_no_secret_is_in_what_is_recorded(tmp_path: Path) -> None:
    run = spec(tmp_path, secrets={"HF_TOKEN": "canary-7f3a9e"})
    seen = Evidence("r1", nodes=(NodeReport(0, "n1", 1, "canary-7f3a9e"),), notes=("canary-7f3a9e",))
    record(recorder(tmp_path), run, seen)
    assert not [path for path in run.run_dir.rglob("*") if path.is_file() and b"canary-7f3a9e" in path.read_bytes()]


KILLED = """
import os, sys
from pathlib import Path
from madengine.orchestration import recorder as r, recording
from tests.unit.orchestration.test_recording import record, recorder, spec
root, stage = Path(sys.argv[1]), sys.argv[2]
def die(*_):
    os._exit(9)
if stage == "before the intent":
    recording._size = die
elif stage == "before the rows":
    r.append_cumulative = die
elif stage == "before the mark":
    recording._write_recorded = die
elif stage == "while writing the mark":
    real = recording.write_atomic
    recording.write_atomic = lambda path, text: die() if path.name == recording.RECORDED else real(path, text)
record(recorder(root, BUILD_NUMBER="first"), spec(root))
"""


@pytest.mark.parametrize(
    "stage", ["before the intent", "before the rows", "before the mark", "while writing the mark", "nowhere"]
)
def test_whoever_is_killed_where_loses_no_row_and_doubles_none(tmp_path: Path, stage: str) -> None:
    others = recorder(tmp_path)
    record(others, spec(tmp_path, run_id="r0", run_dir=tmp_path / "r0"))
    argv = [sys.executable, "-c", KILLED, str(tmp_path), stage]
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(argv, check=False, env={**os.environ, "PYTHONPATH": str(root)}, cwd=root)
    assert done.returncode == (0 if stage == "nowhere" else 9)
    record(others, spec(tmp_path, run_id="r2", run_dir=tmp_path / "r2"))
    keeper = recorder(tmp_path, BUILD_NUMBER="second")
    finished = record(keeper, spec(tmp_path))
    assert keeper.problems == []
    written = [row["build_number"] for row in rows(tmp_path)]
    assert len(written) == 3
    assert finished.verdict.outcome is Outcome.SUCCESS
    assert ("second" in written) == (stage in ("before the intent", "before the rows"))
    assert (tmp_path / "r1" / RECORDED).exists()


def test_rows_are_recognised_when_others_added_columns_meanwhile(tmp_path: Path) -> None:
    run = spec(tmp_path)
    record(recorder(tmp_path), run)
    (run.run_dir / RECORDED).unlink()
    text = (tmp_path / "perf.csv").read_text().splitlines()
    (tmp_path / "perf.csv").write_text(f"{text[0]},more\n{text[1]},\n")
    record(recorder(tmp_path), run)
    assert len(rows(tmp_path)) == 1


def test_rows_of_a_perf_csv_that_somebody_removed_are_written_again(tmp_path: Path) -> None:
    run = spec(tmp_path)
    record(recorder(tmp_path), run)
    (run.run_dir / RECORDED).unlink()
    (tmp_path / "perf.csv").unlink()
    record(recorder(tmp_path), run)
    assert len(rows(tmp_path)) == 1


def test_a_note_of_rows_that_cannot_be_read_is_no_note(tmp_path: Path) -> None:
    run = spec(tmp_path)
    run.run_dir.mkdir()
    (run.run_dir / APPENDING).write_text("{")
    record(recorder(tmp_path), run)
    assert len(rows(tmp_path)) == 1


@pytest.mark.parametrize("text", ["{", "[]", json.dumps({"rows": []})])
def test_a_record_that_cannot_be_understood_is_said_and_the_run_is_shown_all_the_same(
    tmp_path: Path, text: str
) -> None:
    run = spec(tmp_path)
    run.run_dir.mkdir()
    (run.run_dir / RECORDED).write_text(text)
    with pytest.raises(MADEngineError):
        read_recorded(run.run_dir)
    keeper = recorder(tmp_path)
    assert record(keeper, run).verdict.outcome is Outcome.SUCCESS
    assert any("could not be recorded once" in problem for problem in keeper.problems)
