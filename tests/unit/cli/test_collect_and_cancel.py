"""The commands ``collect`` and ``cancel`` as they are typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.unit.orchestration.orders import RUN_ID, run_directory
from tests.unit.orchestration.test_collect import Cluster

from madengine.cli.main import main
from madengine.orchestration import cancel as cancelling
from madengine.orchestration import collect as collecting


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    run_dir = run_directory(tmp_path, directory=str(tmp_path))
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / RUN_ID).symlink_to(run_dir)
    monkeypatch.chdir(tmp_path)
    made = Cluster()
    monkeypatch.setattr(collecting, "target_for", lambda runs, environ: made)
    monkeypatch.setattr(cancelling, "target_for", lambda runs, environ: made)
    return made


def test_collect_finishes_the_story_and_then_has_nothing_to_do(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["collect"]) == 0
    shown = capsys.readouterr()
    assert "SUCCESS" in shown.out
    assert "1 row appended to perf.csv" in shown.err
    assert main(["collect"]) == 0
    assert capsys.readouterr().err == "nothing to collect: every run of this folder is recorded\n"
    assert main(["collect", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"exit_code": 0, "runs": []}
    assert main(["collect", RUN_ID]) == 0
    shown = capsys.readouterr()
    assert f"recorded before, so that nothing was added for: {RUN_ID}" in shown.err
    assert "appended" not in shown.err


def test_collect_without_waiting_shows_what_goes_on(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.ends_after = 99
    assert main(["collect", "--no-wait", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [run["run_id"] for run in document["left"]] == [RUN_ID]


def test_a_run_that_nobody_knows_is_an_argument_that_cannot_be_used(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["collect", "nope"]) == 4
    assert f"runs here: {RUN_ID}" in capsys.readouterr().err


def test_cancel_ends_the_runs_that_are_named_and_all_only_when_asked(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.ends_after = 99
    assert main(["cancel"]) == 4
    assert main(["cancel", RUN_ID, "--all"]) == 4
    assert main(["cancel", "--all"]) == 0
    assert "cancelled" in capsys.readouterr().out
    assert main(["cancel", RUN_ID, "--json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert (run["run_id"], run["outcome"]) == (RUN_ID, "cancelled")
    cluster.trouble = "permission denied"
    assert main(["cancel", RUN_ID]) == 1
    assert "permission denied" in capsys.readouterr().out


def test_cancel_all_of_nothing_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["cancel", "--all"]) == 0
    assert "nothing to cancel" in capsys.readouterr().err
