"""Runs on this machine, on the real host engine: submitted here, watched from here and from elsewhere."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.recording_engine import RecordingEngine
from tests.unit.execution.packages import Watching, package, spec

from madengine.catalog.card import ModelCard
from madengine.config.manifest import ImageRecord
from madengine.core.errors import ConfigurationError, ExecutionError
from madengine.deployment.base import Handle, Rendering, RunState
from madengine.deployment.carrier import Carrier
from madengine.deployment.local import EVIDENCE, LocalTarget
from madengine.execution.host import HostEngine
from madengine.execution.runner import Observer
from madengine.execution.spec import RunSpec
from madengine.verdict.evidence import Evidence, InterruptionKind, Outcome
from madengine.verdict.evidence_json import to_json
from madengine.verdict.judge import judge

SECRET = "canary-7f3a9e"


def no_image(run: RunSpec, observer: Observer) -> None:
    raise AssertionError("the host engine needs no image")


def target(watching: Watching | None = None, **fields: Any) -> LocalTarget:
    seen = watching or Watching()
    return LocalTarget(
        fields.get("engine") or HostEngine(grace=0.3), lambda run: seen, fields.get("ensure_image", no_image)
    )


def submit(here: LocalTarget, run: RunSpec) -> Handle:
    return here.submit(run, here.render(run))


def wait(here: LocalTarget, *handles: Handle, patience: float = 10) -> None:
    deadline = time.monotonic() + 30
    while set(here.poll(handles, patience).values()) != {RunState.ENDED}:
        assert time.monotonic() < deadline


def carry_out(run: RunSpec, watching: Watching | None = None, **fields: Any) -> Evidence:
    here = target(watching, **fields)
    handle = submit(here, run)
    wait(here, handle)
    return here.collect(handle)


@pytest.fixture
def blocked(tmp_path: Path) -> Iterator[tuple[RunSpec, Callable[[], None]]]:
    """A run that waits until it is told to go on."""
    gate = tmp_path / "gate"
    run = spec(package(tmp_path, f"touch ../begun; until test -e {gate}; do sleep 0.02; done; echo performance: 1 x"))
    yield run, gate.touch
    gate.touch()


def test_a_run_is_carried_to_its_evidence(tmp_path: Path) -> None:
    watching = Watching()
    evidence = carry_out(spec(package(tmp_path)), watching)
    assert judge(evidence).outcome is Outcome.SUCCESS
    assert watching.phases[-1] == ""


def test_a_submit_leaves_what_others_need_to_know(tmp_path: Path) -> None:
    run = spec(package(tmp_path))
    carry_out(run)
    assert (run.run_dir / "plan.txt").read_text() == target().render(run).files["plan.txt"]
    assert Carrier.read(run.run_dir) == Carrier.this_process()
    assert json.loads((run.run_dir / EVIDENCE).read_text())["run_id"] == run.run_id


def test_another_process_collects_the_same_evidence(tmp_path: Path) -> None:
    run = spec(package(tmp_path))
    evidence, elsewhere, handle = carry_out(run), target(), Handle(run.run_id, run.run_dir)
    assert elsewhere.poll([handle], 0) == {run.run_id: RunState.ENDED}
    assert elsewhere.collect(handle) == evidence


def test_a_run_that_goes_on_is_running_from_here_and_from_elsewhere(
    blocked: tuple[RunSpec, Callable[[], None]],
) -> None:
    run, let_go = blocked
    here, elsewhere = target(), target()
    handle = submit(here, run)
    assert here.poll([handle], 0) == elsewhere.poll([handle], 0) == {run.run_id: RunState.RUNNING}
    let_go()
    wait(elsewhere, handle)
    wait(here, handle)


def test_a_poll_waits_for_a_change_and_not_longer(blocked: tuple[RunSpec, Callable[[], None]]) -> None:
    run, let_go = blocked
    here, elsewhere = target(), target()
    handle = submit(here, run)
    for one in (here, elsewhere):
        began = time.monotonic()
        assert one.poll([handle], 0.15) == {run.run_id: RunState.RUNNING}
        assert 0.15 <= time.monotonic() - began < 5
    threading.Timer(0.1, let_go).start()
    began = time.monotonic()
    assert here.poll([handle], 60) == {run.run_id: RunState.ENDED}
    assert time.monotonic() - began < 30


def test_a_poll_tells_as_soon_as_the_first_of_several_ends(
    tmp_path: Path, blocked: tuple[RunSpec, Callable[[], None]]
) -> None:
    slow, _ = blocked
    quick = spec(package(tmp_path / "quick"), run_id="quick")
    here = target()
    handles = [submit(here, slow), submit(here, quick)]
    began = time.monotonic()
    states = here.poll(handles, 60)
    assert time.monotonic() - began < 30
    assert states == {slow.run_id: RunState.RUNNING, "quick": RunState.ENDED}
    assert here.poll(handles[1:], 60) == {"quick": RunState.ENDED}


def test_a_cancel_from_here_ends_the_run_and_may_come_twice(blocked: tuple[RunSpec, Callable[[], None]]) -> None:
    run, _ = blocked
    here = target()
    handle = submit(here, run)
    here.cancel(handle)
    here.cancel(handle)
    wait(here, handle)
    here.cancel(handle)
    interruption = here.collect(handle).interruption
    assert interruption is not None
    assert interruption.kind is InterruptionKind.CANCELLED


CHILD = """
import sys, time, signal
from pathlib import Path
from madengine.deployment.carrier import Carrier
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
Carrier.this_process().write(Path(sys.argv[1]))
print("ready", flush=True)
time.sleep(60)
"""


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[tuple[Handle, subprocess.Popen[bytes]]]:
    """A run that another process carries; it exits 7 when it is asked to end."""
    handle = Handle("run-1", tmp_path / "runs" / "run-1")
    handle.run_dir.mkdir(parents=True)
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(handle.run_dir)], stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    yield handle, child
    child.kill()
    child.wait()
    child.stdout.close()


def test_a_cancel_from_another_process_asks_the_carrier(elsewhere: tuple[Handle, subprocess.Popen[bytes]]) -> None:
    handle, child = elsewhere
    here = target()
    assert here.poll([handle], 0) == {"run-1": RunState.RUNNING}
    here.cancel(handle)
    assert child.wait(timeout=20) == 7
    assert here.poll([handle], 0) == {"run-1": RunState.ENDED}
    here.cancel(handle)


def test_a_carrier_that_died_without_evidence_never_reported(
    elsewhere: tuple[Handle, subprocess.Popen[bytes]],
) -> None:
    handle, child = elsewhere
    child.send_signal(signal.SIGKILL)
    here = target()
    wait(here, handle, patience=0.05)  # a child that nobody has waited for is dead, too
    evidence = here.collect(handle)
    assert evidence.nodes[0].exit_code is None
    assert str(handle.run_dir / EVIDENCE) in evidence.nodes[0].detail
    assert judge(evidence).outcome is Outcome.FAILURE


@pytest.mark.parametrize("pid", ["", "x", "1", "1 2 3 4", None])
def test_a_run_directory_that_names_no_carrier_has_ended(tmp_path: Path, pid: str | None) -> None:
    if pid is not None:
        (tmp_path / "pid").write_text(pid)
    handle = Handle("run-1", tmp_path)
    assert target().poll([handle], 0) == {"run-1": RunState.ENDED}
    assert judge(target().collect(handle)).outcome is Outcome.FAILURE


def test_a_process_id_that_was_given_away_again_is_another_process_and_is_left_alone(tmp_path: Path) -> None:
    replace(Carrier.this_process(), started=1).write(tmp_path)
    handle = Handle("run-1", tmp_path)
    assert target().poll([handle], 0) == {"run-1": RunState.ENDED}
    target().cancel(handle)


def measured(run_id: str) -> dict[str, Any]:
    from madengine.verdict.evidence import Measurement, NodeReport

    return to_json(Evidence(run_id, measurements=(Measurement(1.0, "x"),), nodes=(NodeReport(0, "h", 0),)))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        json.dumps(measured("run-1"))[:-5],
        json.dumps(measured("another run")),
        json.dumps({**measured("run-1"), "version": 99}),
        json.dumps({**measured("run-1"), "nodes": None}),
        "[" * 100_000,
        "\0" * 100,
    ],
)
def test_evidence_that_is_broken_or_of_another_run_is_never_a_success(tmp_path: Path, text: str) -> None:
    (tmp_path / EVIDENCE).write_text(text)
    handle = Handle("run-1", tmp_path)
    assert target().poll([handle], 0) == {"run-1": RunState.ENDED}
    evidence = target().collect(handle)
    assert evidence.run_id == "run-1"
    assert judge(evidence).outcome is Outcome.FAILURE
    assert EVIDENCE in judge(evidence).reason


def test_evidence_of_this_run_is_believed(tmp_path: Path) -> None:
    (tmp_path / EVIDENCE).write_text(json.dumps(measured("run-1")))
    assert judge(target().collect(Handle("run-1", tmp_path))).outcome is Outcome.SUCCESS


def refuse(run: RunSpec, observer: Observer) -> None:
    raise ExecutionError(f"the image cannot be had with {SECRET}")


def fail(run: RunSpec, observer: Observer) -> None:
    raise KeyError(f"no {SECRET}")


def test_an_error_of_the_engine_is_a_refusal_without_secrets(tmp_path: Path) -> None:
    run = spec(package(tmp_path), secrets={"MAD_SECRETS_X": SECRET})
    evidence = carry_out(run, engine=RecordingEngine(), ensure_image=refuse)
    assert evidence.interruption is not None
    assert evidence.interruption.kind is InterruptionKind.REFUSED
    assert evidence.interruption.detail == "the image cannot be had with ***"
    assert judge(evidence).outcome is Outcome.FAILURE


def test_a_defect_of_our_own_is_evidence_too_and_says_so(tmp_path: Path) -> None:
    run = spec(package(tmp_path), secrets={"MAD_SECRETS_X": SECRET})
    evidence = carry_out(run, engine=RecordingEngine(), ensure_image=fail)
    assert evidence.nodes[0].detail == "madengine itself failed: KeyError: 'no ***'"
    assert judge(evidence).outcome is Outcome.FAILURE


def test_a_run_directory_that_cannot_be_made_is_a_refusal(tmp_path: Path) -> None:
    run = spec(package(tmp_path))
    run.run_dir.parent.touch()
    evidence = carry_out(run)
    assert evidence.interruption is not None
    assert "the run directory cannot be written" in evidence.interruption.detail


def test_evidence_that_cannot_be_written_is_still_handed_back_with_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = spec(package(tmp_path))
    (run.run_dir / EVIDENCE).mkdir(parents=True)
    evidence = carry_out(run)
    assert evidence.measurements
    assert "evidence.json was not written" in evidence.notes[-1]


class Torn(Watching):
    """An observer whose terminal has gone away."""

    def phase(self, name: str) -> None:
        if not name:
            raise OSError("no terminal")


def test_whoever_waits_hears_of_the_end_whatever_happens_to_the_observer(tmp_path: Path) -> None:
    assert "no terminal" in carry_out(spec(package(tmp_path)), Torn()).notes[-1]


def test_a_machine_that_works_has_no_problems(tmp_path: Path) -> None:
    assert target().check([spec(package(tmp_path))]) == ()


class Broken(RecordingEngine):
    """An engine that does not work."""

    def problem(self) -> str | None:
        return "no socket"


def test_an_engine_that_does_not_work_is_a_problem_with_a_remedy(tmp_path: Path) -> None:
    (problem,) = target(engine=Broken()).check([spec(package(tmp_path))])
    assert (problem.message, problem.remedy) == ("engine docker: no socket", "see `madengine doctor`")


@pytest.mark.parametrize(("fields", "count"), [({}, 1), ({"skip": "x"}, 0), ({"refusal": "x"}, 0)])
def test_a_run_that_will_start_needs_an_image_where_the_engine_does(
    tmp_path: Path, fields: dict[str, str], count: int
) -> None:
    run = spec(package(tmp_path), image=ImageRecord({"docker_image": None}), **fields)
    problems = target(engine=RecordingEngine()).check([run])
    assert ["has no image for engine docker" in problem.message for problem in problems] == [True] * count


def test_a_rendering_is_taken_as_it_is(tmp_path: Path) -> None:
    run, here = spec(package(tmp_path)), target()
    wait(here, here.submit(run, Rendering({"plan.txt": "mine"})))
    assert (run.run_dir / "plan.txt").read_text() == "mine"


def test_a_run_of_another_machine_may_still_go_on_and_cannot_be_ended_from_here(tmp_path: Path) -> None:
    Carrier(os.getpid(), 1, "another-host").write(tmp_path)
    handle = Handle("run-1", tmp_path)
    assert target().poll([handle], 0) == {"run-1": RunState.RUNNING}
    with pytest.raises(ExecutionError, match="another-host"):
        target().cancel(handle)


@pytest.mark.parametrize(
    ("card", "nodes"), [({"distributed": {"launcher": "torchrun", "nnodes": 2}}, 2), ({"slurm": {"nodes": 4}}, 4)]
)
def test_a_card_for_several_nodes_does_not_become_a_run_on_this_one(card: dict[str, Any], nodes: int) -> None:
    with pytest.raises(ConfigurationError, match=f"the card is for {nodes} nodes"):
        target().place(ModelCard({"name": "m", **card}))


def test_a_run_here_has_one_node() -> None:
    assert target().place(ModelCard({"name": "m"})).nnodes == 1


def test_what_was_observed_here_is_what_the_recorder_knows_itself() -> None:
    assert target().observed(Handle("r", Path("r"))).hosts == ()
