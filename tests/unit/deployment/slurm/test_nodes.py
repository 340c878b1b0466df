"""What each node left, and what it says of the node."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.deployment.slurm.folders import RUN, evidence, log, marker, number, order

from madengine.deployment.base import Observed
from madengine.deployment.slurm.nodes import NodeReading, observed, read_nodes
from madengine.verdict.evidence import Evidence, Interruption, InterruptionKind, NodeReport
from madengine.verdict.evidence_json import to_json

ONE = order(nnodes=1, reporters=1)


def node(run_dir: Path) -> NodeReading:
    (reading,) = read_nodes(run_dir, ONE)
    return reading


def test_a_node_that_did_well_has_its_host_its_code_and_its_evidence(tmp_path: Path) -> None:
    marker(tmp_path, 0)
    told = evidence(tmp_path, 0, measurements=(number(1.5),))
    reading = node(tmp_path)
    assert reading.report == NodeReport(0, "h0", 0)
    assert reading.evidence == told
    assert reading.name == "node 0 (h0)"


def test_a_node_without_a_marker_never_reported_whatever_it_measured(tmp_path: Path) -> None:
    evidence(tmp_path, 0, measurements=(number(1.5),))
    reading = node(tmp_path)
    assert reading.report.exit_code is None
    assert "there is no" in reading.report.detail
    assert reading.evidence is not None and reading.evidence.measurements


@pytest.mark.parametrize(
    ("told", "own", "code", "script"),
    [
        (0, NodeReport(0, "h0", 0, script=True), 0, False),
        (3, NodeReport(0, "h0", 3, script=True), 3, False),
        (1, NodeReport(0, "h0", 5, script=True), 5, True),
        (143, NodeReport(0, "h0", 0, script=True), 143, False),
        (0, NodeReport(0, "h0", 7, script=True), 7, True),
        (5, NodeReport(0, "h0", 0, script=True), 5, False),
    ],
)
def test_the_code_that_counts_is_the_nodes_or_what_the_script_itself_said(
    tmp_path: Path, told: int, own: NodeReport, code: int, script: bool
) -> None:
    marker(tmp_path, 0, told)
    evidence(tmp_path, 0, nodes=(own,))
    report = node(tmp_path).report
    assert (report.exit_code, report.script) == (code, script)


def test_a_refusal_on_a_node_is_that_nodes_failure_with_its_sentence(tmp_path: Path) -> None:
    marker(tmp_path, 0, 125)
    evidence(tmp_path, 0, nodes=(), interruption=Interruption(InterruptionKind.REFUSED, "the image i is not here"))
    assert node(tmp_path).report == NodeReport(0, "h0", 125, "the image i is not here")


def test_out_of_memory_and_details_of_the_nodes_own_word_are_kept(tmp_path: Path) -> None:
    marker(tmp_path, 0, 137)
    evidence(tmp_path, 0, nodes=(NodeReport(0, "h0", 137, "pre-script x exited 1", True),))
    report = node(tmp_path).report
    assert (report.detail, report.out_of_memory) == ("pre-script x exited 1", True)


@pytest.mark.parametrize("content", ["{", "[]", json.dumps({"kind": "x"})])
def test_evidence_that_cannot_be_read_is_named_and_takes_nothing_from_the_marker(tmp_path: Path, content: str) -> None:
    marker(tmp_path, 0)
    (tmp_path / "node_0" / "evidence.json").write_text(content)
    reading = node(tmp_path)
    assert (reading.report.exit_code, reading.evidence) == (0, None)
    assert "evidence cannot be read" in reading.notes[0]


def test_evidence_of_another_run_is_none(tmp_path: Path) -> None:
    marker(tmp_path, 0)
    other = Evidence("other", measurements=(number(9.0),), nodes=(NodeReport(0, "h", 0),))
    (tmp_path / "node_0" / "evidence.json").write_text(json.dumps(to_json(other)))
    reading = node(tmp_path)
    assert reading.evidence is None
    assert "is of another run, other" in reading.notes[0]


def test_without_evidence_the_last_line_on_standard_error_explains_a_failure(tmp_path: Path) -> None:
    marker(tmp_path, 0, 127)
    (tmp_path / "node_0" / "stderr").write_text("first\nmadengine is not on this node\n\n")
    assert node(tmp_path).report.detail == "madengine is not on this node"


def test_a_clean_node_needs_no_explanation(tmp_path: Path) -> None:
    marker(tmp_path, 0, 5)
    (tmp_path / "node_0" / "stderr").write_text("workspace\n")
    assert node(tmp_path).report.detail == ""


def test_a_metric_of_a_node_that_died_is_salvaged_from_its_log(tmp_path: Path) -> None:
    marker(tmp_path, 0, 137)
    log(tmp_path, 0, "step 1\nperformance: 12.5 samples/s\n")
    reading = node(tmp_path)
    assert reading.evidence is not None
    assert [item.value for item in reading.evidence.measurements] == [12.5]
    assert "salvaged from run.log:2" in reading.notes[-1]


def test_a_log_without_a_metric_gives_its_errors(tmp_path: Path) -> None:
    marker(tmp_path, 0, 137)
    log(tmp_path, 0, "RuntimeError: boom\n")
    reading = node(tmp_path)
    assert reading.evidence is not None and not reading.evidence.measurements
    assert reading.evidence.log_findings[0].text == "RuntimeError: boom"


CSV = "model,performance,metric\na,1.5,ms\n"


@pytest.mark.parametrize(
    ("before", "values"),
    [
        ({"run_id": RUN, "files": {}}, [1.5]),
        ({"run_id": RUN, "files": {"r.csv": {"size": 1, "mtime_ns": 1}}}, []),
        ({"run_id": "other", "files": {}}, []),
        ({"run_id": RUN}, []),
        (None, []),
    ],
)
def test_a_results_file_is_salvaged_only_when_it_was_not_there_before(
    tmp_path: Path, before: dict[str, object] | None, values: list[float]
) -> None:
    marker(tmp_path, 0, 137)
    log(tmp_path, 0, "no number\n")
    workspace = tmp_path / "node_0" / "workspace"
    workspace.mkdir()
    (workspace / "r.csv").write_text(CSV)
    if before is not None:
        (tmp_path / "node_0" / "before.json").write_text(json.dumps(before))
    (reading,) = read_nodes(tmp_path, order(nnodes=1, reporters=1, results_file="r.csv"))
    assert reading.evidence is not None
    assert [item.value for item in reading.evidence.measurements] == values


def record(run_dir: Path, rank: int, **facts: object) -> None:
    shape = {
        "kind": "madengine-run",
        "version": 1,
        "run_id": RUN,
        "model": "m",
        "machine": {"host": f"h{rank}"},
        "command": [],
        "started": "",
        "key": "",
        "target": "slurm",
        "engine": "host",
        "package": "",
        "package_git": None,
        "image": {"digest": "sha256:1"},
        "gpus": {"vendor": "AMD", "indices": [0, 1], "total": 8, "architecture": "gfx942"},
        "spec": {},
        "ended": None,
        "duration": 2.0 + rank,
        "exit_code": 0,
        "verdict": None,
        "rows": [],
        "notes": [],
        **facts,
    }
    folder = run_dir / f"node_{rank}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(json.dumps(shape))


def test_what_nodes_know_of_themselves_comes_from_their_records(tmp_path: Path) -> None:
    record(tmp_path, 0)
    record(tmp_path, 1)
    marker(tmp_path, 0, host="node7")
    marker(tmp_path, 1, host="node8")
    seen = observed(tmp_path, order())
    assert (seen.hosts, seen.duration, seen.exit_code) == (("node7", "node8"), 3.0, 0)
    assert seen.gpus is not None and (seen.gpus.indices, seen.gpus.architecture) == ((0, 1), "gfx942")
    assert seen.image_digest == "sha256:1"


def test_without_markers_the_records_name_the_hosts(tmp_path: Path) -> None:
    record(tmp_path, 1, duration=None)
    seen = observed(tmp_path, order())
    assert (seen.hosts, seen.duration) == (("h1",), None)


def test_of_nodes_that_left_no_record_nothing_is_known(tmp_path: Path) -> None:
    assert observed(tmp_path, order()) == Observed()
