"""The story of one rank, in this process."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.recording_engine import RecordingEngine
from tests.unit.orchestration.orders import RUN_ID, run_directory

from madengine.core.errors import ConfigurationError, ExecutionError
from madengine.execution.engine import ContainerEngine, Output
from madengine.execution.gpu import GpuInventory
from madengine.execution.host import HostEngine
from madengine.orchestration.node import (
    Finders,
    engine_for_images,
    engine_for_run,
    make_image_available,
    run_node,
)
from madengine.orchestration.node_plan import NodeInputs, read_inputs
from madengine.reporting.run_record import read_run_record
from madengine.verdict.evidence import Evidence, InterruptionKind
from madengine.verdict.evidence_json import from_json

ENVIRON = {"MADENGINE_HOSTS": "n0,n1", "PATH": os.environ["PATH"]}


def finders(engine: ContainerEngine) -> Finders:
    return Finders(lambda inputs: (engine, "engine: it"), lambda vendor: GpuInventory())


def run(run_dir: Path, rank: int = 0, engine: ContainerEngine | None = None, **environ: str) -> tuple[int, list[str]]:
    said: list[str] = []
    here = finders(engine or HostEngine(grace=0.3))
    return run_node(run_dir, rank, {**ENVIRON, **environ}, said.append, here), said


def evidence(run_dir: Path, rank: int = 0) -> Evidence:
    return from_json(json.loads((run_dir / f"node_{rank}" / "evidence.json").read_text()))


def test_a_rank_that_measures_leaves_evidence_of_its_rank_and_exits_0(tmp_path: Path) -> None:
    run_dir = run_directory(tmp_path)
    code, said = run(run_dir, 1)
    seen = evidence(run_dir, 1)
    assert (code, seen.run_id) == (0, RUN_ID)
    assert [(m.value, m.rank) for m in seen.measurements] == [(1.0, 1)]
    assert [(node.rank, node.exit_code) for node in seen.nodes] == [(1, 0)]
    assert said[-1] == "SUCCESS: measured 1 x"


def test_a_clean_rank_without_a_metric_exits_5_and_keeps_its_workspace(tmp_path: Path) -> None:
    run_dir = run_directory(tmp_path, "echo hello\n")
    assert run(run_dir)[0] == 5
    assert (run_dir / "node_0" / "workspace" / "run_directory" / "run.sh").is_file()


@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("exit 5", 1), ("kill -9 $$", 137)])
def test_the_scripts_code_is_the_ranks_and_what_is_in_the_evidence_stays_the_scripts(
    tmp_path: Path, script: str, code: int
) -> None:
    run_dir = run_directory(tmp_path, script)
    assert run(run_dir)[0] == code
    assert evidence(run_dir).nodes[0].script
    assert evidence(run_dir).nodes[0].exit_code == (5 if script == "exit 5" else code)


def test_the_record_says_what_was_run_where_and_how_it_ended(tmp_path: Path) -> None:
    run_dir = run_directory(tmp_path)
    run(run_dir)
    record = read_run_record(run_dir / "node_0")
    assert (record["run_id"], record["target"], record["engine"]) == (RUN_ID, "slurm", "host")
    assert (record["exit_code"], record["verdict"]["outcome"]) == (0, "SUCCESS")
    assert record["machine"]["host"] == os.uname().nodename
    assert record["ended"] is not None


def test_a_success_needs_no_second_look_at_its_workspace(tmp_path: Path) -> None:
    run_dir = run_directory(tmp_path, workspaces=str(tmp_path / "spaces"))
    run(run_dir)
    assert not os.path.lexists(run_dir / "node_0" / "workspace")
    assert not (tmp_path / "spaces" / RUN_ID / "node_0").exists()


def test_a_workspace_that_is_asked_for_stays_and_is_found_from_the_ranks_folder(tmp_path: Path) -> None:
    run_dir = run_directory(tmp_path, workspaces=str(tmp_path / "spaces"), options={"keep_workspace": True})
    run(run_dir)
    assert (run_dir / "node_0" / "workspace").resolve() == tmp_path / "spaces" / RUN_ID / "node_0"
    assert (run_dir / "node_0" / "workspace" / "run_directory" / "run.sh").is_file()


def test_what_lay_there_before_the_model_began_is_left_for_who_has_to_read_a_dead_node(tmp_path: Path) -> None:
    script = 'cat ../../before.json; printf "model,performance,metric\\na,2,y\\n" >r.csv'
    run_dir = run_directory(tmp_path, script, card={"multiple_results": "r.csv"}, results_file="r.csv")
    old = tmp_path / "package" / "scripts" / "m" / "r.csv"
    old.write_text("model,performance,metric\n")
    run(run_dir)
    before = json.loads((run_dir / "node_0" / "before.json").read_text())
    assert (before["run_id"], before["results_file"]) == (RUN_ID, "r.csv")
    assert before["files"]["run_directory/r.csv"]["size"] == old.stat().st_size
    assert '"run_directory/r.csv"' in (run_dir / "node_0" / "logs" / "run.log").read_text()


def test_a_traces_that_cannot_be_left_ends_no_run(tmp_path: Path) -> None:
    run_dir = run_directory(tmp_path)
    (run_dir / "node_0" / "before.json").mkdir(parents=True)
    assert run(run_dir)[0] == 0


def test_a_skipped_model_is_skipped_here_too(tmp_path: Path) -> None:
    run_dir = run_directory(tmp_path, options={"skip_model_run": True})
    assert run(run_dir)[0] == 0
    assert evidence(run_dir).skipped == "--skip-model-run was given"


def test_a_missing_script_is_refused_with_4_and_evidence(tmp_path: Path) -> None:
    run_dir = run_directory(tmp_path, card={"scripts": "scripts/m/rum.sh"})
    assert run(run_dir)[0] == 4
    interruption = evidence(run_dir).interruption
    assert interruption is not None
    assert interruption.kind is InterruptionKind.REFUSED
    assert "the package has no scripts/m/rum.sh" in interruption.detail


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("job.json", '{"kind": "madengine-job", "ver', "job.json"),
        ("job.json", '{"kind": "madengine-job", "version": 99, "madengine": "9.9"}', "written by madengine 9.9"),
        ("manifest.json", "{}", "manifest.json"),
        ("manifest.json", None, "manifest.json"),
    ],
)
def test_what_cannot_be_read_is_refused_with_4_and_evidence_of_the_run(
    tmp_path: Path, name: str, text: str | None, said: str
) -> None:
    run_dir = run_directory(tmp_path)
    (run_dir / name).unlink()
    if text is not None:
        (run_dir / name).write_text(text)
    code, told = run(run_dir)
    assert code == 4
    assert said in told[-1]
    assert evidence(run_dir).run_id == RUN_ID
    assert said in str(evidence(run_dir).interruption)


def test_an_env_file_that_fails_names_no_value(tmp_path: Path) -> None:
    (tmp_path / "mad.env").write_text("API_TOKEN=canary-5b2f\nls /canary-5b2f-$API_TOKEN\n")
    run_dir = run_directory(tmp_path, env_file=str(tmp_path / "mad.env"))
    code, said = run(run_dir)
    assert code == 4
    assert "canary-5b2f" not in (run_dir / "node_0" / "evidence.json").read_text() + "".join(said)


def test_an_engine_that_does_not_work_here_is_125(tmp_path: Path) -> None:
    run_dir = run_directory(tmp_path)

    def none_works(inputs: NodeInputs) -> tuple[ContainerEngine, str]:
        raise ExecutionError("the engine docker cannot be used: no daemon")

    said: list[str] = []
    assert run_node(run_dir, 0, ENVIRON, said.append, Finders(none_works)) == 125
    assert said == ["error: the engine docker cannot be used: no daemon"]


def test_an_image_that_cannot_be_had_is_125_and_its_log_says_why(tmp_path: Path) -> None:
    run_dir = run_directory(tmp_path)
    assert run(run_dir, engine=RecordingEngine())[0] == 125
    interruption = evidence(run_dir).interruption
    assert interruption is not None
    assert "docker cannot pull img:1: not found" in interruption.detail


def test_a_time_limit_is_124(tmp_path: Path) -> None:
    run_dir = run_directory(tmp_path, "sleep 60\n", options={"timeout": 0.2})
    assert run(run_dir)[0] == 124


def test_remarks_of_the_plan_and_of_another_version_are_in_the_evidence(tmp_path: Path) -> None:
    run_dir = run_directory(tmp_path, madengine="0.1", deployment={"env_vars": {"A": "${NOT_SET}"}})
    run(run_dir)
    notes = evidence(run_dir).notes
    assert any(note.startswith("submitted by madengine 0.1") for note in notes)
    assert "m: A refers to ${NOT_SET}, which is not set here" in notes


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    run_dir = run_directory(tmp_path)
    (run_dir / "node_0").write_text("")
    with pytest.raises(ConfigurationError, match="the rank's folder cannot be made"):
        run(run_dir)


def test_a_node_is_named_as_the_scheduler_calls_it(tmp_path: Path) -> None:
    run_dir = run_directory(tmp_path)
    run(run_dir, SLURMD_NODENAME="gpu-07")
    assert [node.host for node in evidence(run_dir).nodes] == ["gpu-07"]
    assert read_run_record(run_dir / "node_0")["machine"]["host"] == "gpu-07"


@pytest.mark.parametrize(
    ("fields", "noted"),
    [({"engine": ""}, True), ({"engine": "host"}, False), ({"engine": "", "launcher": "slurm_multi"}, False)],
)
def test_a_node_where_no_container_engine_works_says_that_it_ran_without_the_image(
    tmp_path: Path, fields: dict[str, str], noted: bool
) -> None:
    run_dir = run_directory(tmp_path, **fields)
    run(run_dir)
    assert ("rank 0 ran without its image: engine: it" in evidence(run_dir).notes) == noted


# --- told to end


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_rank_that_is_told_to_end_ends_its_script_and_leaves_evidence(tmp_path: Path, number: signal.Signals) -> None:
    run_dir = run_directory(tmp_path, f"echo performance: 3 x\nkill -{int(number)} {os.getpid()}\nsleep 60\n")
    code, said = run(run_dir)
    assert code == 143
    seen = evidence(run_dir)
    assert [m.value for m in seen.measurements] == [3.0]
    assert seen.interruption is not None
    assert seen.interruption.kind is InterruptionKind.CANCELLED
    assert "told to end: ending the run" in said


def test_a_script_that_ends_well_when_all_are_told_to_end_is_not_clean_without_a_number(tmp_path: Path) -> None:
    run_dir = run_directory(tmp_path, f"kill -TERM {os.getpid()}\n")
    assert run(run_dir)[0] == 143
    assert evidence(run_dir).interruption is not None


def test_a_rank_that_is_told_to_end_while_it_reads_its_orders_leaves_evidence(tmp_path: Path) -> None:
    (tmp_path / "mad.env").write_text(f"kill {os.getpid()}; sleep 60\n")
    run_dir = run_directory(tmp_path, env_file=str(tmp_path / "mad.env"))
    assert run(run_dir)[0] == 143
    interruption = evidence(run_dir).interruption
    assert interruption is not None
    assert (interruption.kind, interruption.detail) == (InterruptionKind.CANCELLED, "cancelled before it began")


class _Hanging(RecordingEngine):
    """Its pull never ends by itself, and whoever started it is told to end."""

    def __init__(self) -> None:
        super().__init__()
        self.end = threading.Event()

    def pull(self, reference: str, *, output: Output) -> None:
        output(b"pulling " + reference.encode())
        os.kill(os.getpid(), signal.SIGTERM)
        self.end.wait(60)


@pytest.fixture
def hanging() -> Iterator[_Hanging]:
    engine = _Hanging()
    yield engine
    engine.end.set()


def test_a_pull_is_not_waited_for_by_a_rank_that_is_told_to_end(tmp_path: Path, hanging: _Hanging) -> None:
    run_dir = run_directory(tmp_path)
    assert run(run_dir, engine=hanging)[0] == 143
    interruption = evidence(run_dir).interruption
    assert interruption is not None
    assert interruption.detail == "cancelled while its image img:1 was made available"
    assert (run_dir / "node_0" / "image.log").read_bytes() == b"pulling img:1"


# --- images only


def images(run_dir: Path, engine: ContainerEngine) -> tuple[int, list[str]]:
    said: list[str] = []
    return make_image_available(run_dir, 1, ENVIRON, said.append, finders(engine)), said


def test_an_image_is_made_available_and_nothing_is_run(tmp_path: Path) -> None:
    engine = RecordingEngine()
    engine.remote.add("img:1")
    run_dir = run_directory(tmp_path)
    code, said = images(run_dir, engine)
    assert (code, said[-1]) == (0, "image img:1: pulled")
    assert not (run_dir / "node_1" / "evidence.json").exists()


def test_an_image_that_cannot_be_had_says_why_on_the_screen_and_in_its_log(tmp_path: Path) -> None:
    run_dir = run_directory(tmp_path)
    code, said = images(run_dir, RecordingEngine())
    assert code == 125
    assert "docker cannot pull img:1: not found" in said[-1]
    assert "docker cannot pull img:1: not found" in (run_dir / "node_1" / "image.log").read_text()


@pytest.mark.parametrize("engine", [HostEngine(), RecordingEngine(needs_image=False)])
def test_without_containers_there_is_no_image_to_get(tmp_path: Path, engine: ContainerEngine) -> None:
    assert images(run_directory(tmp_path), engine) == (0, [])


@pytest.mark.parametrize(
    ("fields", "engine", "code", "reason"),
    [
        ({"key": "other"}, "host", 4, "no model 'other'"),
        ({}, "warp", 125, "there is no container engine 'warp'"),
    ],
)
def test_what_keeps_an_image_from_being_asked_for_is_in_its_log_too(
    tmp_path: Path, fields: dict[str, str], engine: str, code: int, reason: str
) -> None:
    run_dir = run_directory(tmp_path, engine=engine, **fields)
    said: list[str] = []
    assert make_image_available(run_dir, 1, ENVIRON, said.append) == code
    assert reason in said[-1]
    assert reason in (run_dir / "node_1" / "image.log").read_text()


# --- which engine


def _inputs(tmp_path: Path, **fields: Any) -> NodeInputs:
    return replace(read_inputs(run_directory(tmp_path, **fields), 0, {}), environ={"MAD_CONTAINER_ENGINE": "host"})


@pytest.mark.parametrize(
    ("fields", "name"),
    [({"engine": "host"}, "host"), ({"engine": ""}, "host"), ({"engine": "", "launcher": "slurm-multi"}, "host")],
)
def test_the_engine_is_the_orders_else_the_nodes_own_choice(tmp_path: Path, fields: dict[str, Any], name: str) -> None:
    assert engine_for_run(_inputs(tmp_path, **fields))[0].name == name


def test_an_engine_that_was_ordered_and_is_not_known_is_an_engines_problem(tmp_path: Path) -> None:
    with pytest.raises(ExecutionError, match="'warp'"):
        engine_for_run(_inputs(tmp_path, engine="warp"))


def test_the_images_of_a_script_without_a_container_are_for_an_engine_with_containers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, object]] = []

    def choose(name: str, *, environ: object, order: object) -> tuple[ContainerEngine, str]:
        asked.append((name, order))
        return HostEngine(), ""

    monkeypatch.setattr("madengine.orchestration.node.choose_engine", choose)
    engine_for_images(_inputs(tmp_path, engine="host", launcher="slurm_multi"))
    assert asked == [("", ("docker", "podman"))]
