"""Whole runs on a real Docker engine, from the script to the verdict."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.execution.packages import Watching, package, spec

from madengine.config.manifest import ImageRecord
from madengine.core.files import remove_tree
from madengine.execution import devices, docker_words
from madengine.execution.docker import CommandEngine
from madengine.execution.runner import container_name, run_model
from madengine.execution.spec import GpuGrant, RunSpec
from madengine.verdict.evidence import Evidence, InterruptionKind, Outcome
from madengine.verdict.judge import judge

pytestmark = [pytest.mark.docker, pytest.mark.usefixtures("docker_engine")]

MEASURES = "echo 'performance: 12.5 tokens/s'"
CSV = "printf 'model,performance,metric\\na,2,y\\n'"


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that every user may enter, with the client and the engine's socket in it."""
    place = Path(tempfile.mkdtemp(prefix="madengine-test-"))
    place.chmod(0o755)
    socket = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")
    os.link(socket, place / "docker.sock")
    client = shutil.which("docker")
    assert client is not None
    shutil.copy(client, place / "docker")
    yield place
    shutil.rmtree(place)


def docker(*words: str) -> str:
    return subprocess.run(["docker", *words], check=True, capture_output=True, text=True).stdout.strip()


def a_name() -> str:
    """An image that nobody else makes at the same time."""
    return f"local/test-{uuid.uuid4().hex[:10]}:1"


def a_run(folder: Path, script: str, **fields: Any) -> RunSpec:
    return spec(package(folder, script), run_id=f"test-{uuid.uuid4().hex[:10]}", engine="docker", **fields)


def carry_out(run: RunSpec, watching: Watching | None = None, cancel: threading.Event | None = None) -> Evidence:
    engine = CommandEngine(docker_words.DOCKER, grace=0.5)
    return run_model(run, engine, observer=watching or Watching(), cancel=cancel or threading.Event())


def containers(run: RunSpec) -> list[str]:
    return docker("ps", "--all", "--quiet", "--filter", f"label=madengine.run={run.run_id}").split()


@pytest.mark.parametrize(
    ("script", "fields", "outcome", "reason"),
    [
        (MEASURES, {}, Outcome.SUCCESS, "12.5 tokens/s"),
        (f"{CSV} >../r.csv", {"results_file": "r.csv"}, Outcome.SUCCESS, "2 y"),
        ("echo nothing", {}, Outcome.NO_METRIC, "performance:"),
        ("exit 7", {}, Outcome.FAILURE, "exited 7"),
        (f"{MEASURES}; exit 3", {}, Outcome.INCOMPLETE, "exited 3"),
        (f"{CSV} >../result.csv", {"results_file": "r.csv"}, Outcome.NO_METRIC, "'r.csv' was not written"),
        ("echo performance: nan x", {}, Outcome.NO_METRIC, "nan"),
        ("sleep 60", {"timeout": 0.5}, Outcome.FAILURE, "timed out after 0.5 s"),
        (f"{MEASURES}; sleep 60", {"timeout": 1.0}, Outcome.INCOMPLETE, "timed out after 1 s"),
        ("echo 'RuntimeError: boom'", {}, Outcome.FAILURE, "run.log:1"),
    ],
    ids=lambda value: str(value)[:30] if isinstance(value, str) else "",
)
def test_a_run_says_what_happened(
    tmp_path: Path, script: str, fields: Mapping[str, Any], outcome: Outcome, reason: str
) -> None:
    run = a_run(tmp_path, script, **fields)
    verdict = judge(carry_out(run))
    assert verdict.outcome is outcome
    assert reason in verdict.reason
    assert containers(run) == []
    assert remove_tree(run.workspace) == []


def test_a_misspelt_results_file_is_named(tmp_path: Path) -> None:
    verdict = judge(carry_out(a_run(tmp_path, f"{CSV} >../result.csv", results_file="r.csv")))
    assert any("result.csv" in line for line in verdict.explanation)


def test_a_container_that_is_killed_from_outside_is_told(tmp_path: Path) -> None:
    run = a_run(tmp_path, "touch ../started; sleep 60")
    killer = threading.Thread(target=_when_started, args=(run, "kill"))
    killer.start()
    evidence = carry_out(run)
    killer.join()
    assert evidence.nodes[0].exit_code == 137
    assert "was ended from outside" in evidence.nodes[0].detail
    assert judge(evidence).outcome is Outcome.FAILURE


def test_a_container_that_is_removed_from_outside_is_told(tmp_path: Path) -> None:
    run = a_run(tmp_path, "touch ../started; sleep 60")
    remover = threading.Thread(target=_when_started, args=(run, "rm", "--force"))
    remover.start()
    evidence = carry_out(run)
    remover.join()
    assert evidence.nodes[0].exit_code != 0
    assert "from outside" in evidence.nodes[0].detail


def test_two_runs_of_a_model_at_once_do_not_meet(tmp_path: Path) -> None:
    root = package(tmp_path, 'printf "model,performance,metric\\na,$N,y\\n" >../r.csv; sleep 0.5; cat ../r.csv')
    runs = [
        spec(root, run_id=f"test-{uuid.uuid4().hex[:10]}", environment={"N": str(n)}, results_file="r.csv")
        for n in (1, 2)
    ]
    found: dict[str, Evidence] = {}
    threads = [threading.Thread(target=lambda run=run: found.update({run.run_id: carry_out(run)})) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[run.run_id].measurements[0].value for run in runs] == [1.0, 2.0]


def test_running_out_of_memory_is_what_the_engine_says(tmp_path: Path) -> None:
    run = a_run(
        tmp_path, "python3 -c 'x = bytearray(400 << 20)'", run_options=("--memory", "60m", "--memory-swap", "60m")
    )
    evidence = carry_out(run)
    assert (evidence.nodes[0].exit_code, evidence.nodes[0].out_of_memory) == (137, True)
    assert "out of memory" in judge(evidence).reason


def test_an_image_without_bash_is_told(tmp_path: Path) -> None:
    run = replace(a_run(tmp_path, MEASURES), image=ImageRecord({"docker_image": "local/busybox:1"}))
    evidence = carry_out(run)
    assert evidence.nodes[0].exit_code in (126, 127)
    assert evidence.nodes[0].detail == "the image local/busybox:1 has no bash, which a model's script needs"
    assert "no bash" in judge(evidence).reason


def test_an_image_that_is_not_there_is_refused_without_asking_a_registry(tmp_path: Path) -> None:
    run = replace(a_run(tmp_path, MEASURES), image=ImageRecord({"docker_image": "local/not-there:1"}))
    began = time.monotonic()
    evidence = carry_out(run)
    assert time.monotonic() - began < 5
    assert evidence.interruption is not None
    assert evidence.interruption.kind is InterruptionKind.REFUSED
    assert "No such image: local/not-there:1" in evidence.interruption.detail
    assert not run.workspace.exists()


def test_options_that_the_engine_refuses_are_quoted(tmp_path: Path) -> None:
    evidence = carry_out(a_run(tmp_path, MEASURES, run_options=("--memory", "zzz")))
    assert evidence.interruption is not None
    assert "(125)" in evidence.interruption.detail
    assert "zzz" in evidence.interruption.detail


def test_somebody_elses_container_of_the_same_name_is_left_alone(tmp_path: Path) -> None:
    run = a_run(tmp_path, MEASURES)
    theirs = docker("run", "--detach", "--name", container_name(run.run_id), "local/busybox:1", "sleep", "60")
    try:
        evidence = carry_out(run)
        assert evidence.interruption is not None
        assert "already in use" in evidence.interruption.detail
        assert docker("inspect", "--format", "{{.State.Running}}", theirs) == "true"
    finally:
        docker("rm", "--force", theirs)


def test_what_real_manifests_ask_for_is_granted(tmp_path: Path) -> None:
    options = (
        "--privileged",
        "--ulimit",
        "memlock=-1",
        "--ulimit",
        "nofile=1048576",
        "--shm-size",
        "64m",
        "-e",
        "K=V w",
    )
    watching = Watching()
    carry_out(a_run(tmp_path, 'echo "$K"; df -m /dev/shm | tail -1', run_options=options), watching)
    assert watching.shown.startswith(b"V w\nshm")


def test_device_files_are_those_that_were_granted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [tmp_path / name for name in ("kfd", "renderD128", "renderD129")]
    for node in nodes:
        os.mknod(node, 0o660 | 0o020000, os.makedev(1, 3))
    monkeypatch.setattr(devices, "KFD", str(nodes[0]))
    grant = GpuGrant("AMD", (1,), 2, render_nodes=(str(nodes[2]),))
    watching = Watching()
    script = "for node in " + " ".join(map(str, nodes)) + '; do test -c "$node" && echo "${node##*/}"; done; true'
    carry_out(a_run(tmp_path, script, gpus=grant), watching)
    assert watching.shown.split() == [b"kfd", b"renderD129"]


def test_a_cpu_set_is_handed_on(tmp_path: Path) -> None:
    watching = Watching()
    carry_out(a_run(tmp_path, "nproc", cpus="0"), watching)
    assert watching.shown == b"1\n"


def test_an_images_entrypoint_does_not_stand_in_the_way(tmp_path: Path) -> None:
    image = a_name()
    (tmp_path / "Dockerfile").write_text('FROM local/debian-py:1\nENTRYPOINT ["false"]\n')
    docker("build", "--quiet", "--tag", image, str(tmp_path))
    try:
        run = replace(a_run(tmp_path, MEASURES), image=ImageRecord({"docker_image": image}))
        assert judge(carry_out(run)).outcome is Outcome.SUCCESS
    finally:
        docker("image", "rm", image)


def test_a_cancel_stops_the_container(tmp_path: Path) -> None:
    run, cancel = a_run(tmp_path, "touch ../started; sleep 60"), threading.Event()
    threading.Timer(1.0, cancel.set).start()
    evidence = carry_out(run, cancel=cancel)
    assert evidence.interruption is not None
    assert evidence.interruption.kind is InterruptionKind.CANCELLED
    assert containers(run) == []


def test_what_is_kept_alive_can_be_entered(tmp_path: Path) -> None:
    run, watching = a_run(tmp_path, MEASURES, keep_alive=True), Watching()
    carry_out(run, watching)
    try:
        assert any(f"docker exec -it {container_name(run.run_id)} bash" in note for note in watching.notes)
        assert docker("exec", container_name(run.run_id), "ls", "/myworkspace/run_directory") == "run.sh"
    finally:
        docker("rm", "--force", *containers(run))


def test_files_that_root_made_can_be_removed_by_the_caller(reachable: Path) -> None:
    """The caller is an ordinary user here: a child process that gives up root, with a way to the engine's socket."""
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    folder = reachable
    script = "mkdir -p ../deep/er; touch ../deep/er/x; chmod -R 700 ../deep; echo performance: 1 x"
    run = a_run(folder, script, run_options=("--user", "root"))
    carry_out(replace(run, run_id=run.run_id + "w", run_dir=run.run_dir.with_name("warm-up")))
    subprocess.run(["chown", "-R", "65534:65534", str(folder / "package")], check=True)
    child = os.fork()
    if child == 0:
        os._exit(_as_nobody(run, folder))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not run.workspace.exists()


@pytest.mark.parametrize("options", [("--user", "1234:1234"), ("-u1234",)])
def test_a_user_that_the_options_choose_can_write_results(reachable: Path, options: tuple[str, ...]) -> None:
    script = "id -u > who.txt; mkdir ../made && touch ../made/x run.sh && echo performance: $(cat who.txt) x"
    run = a_run(reachable, script, run_options=options)
    evidence = carry_out(run)
    assert [m.value for m in evidence.measurements] == [1234.0]
    assert remove_tree(run.workspace) == []


def test_an_image_travels_through_an_archive(tmp_path: Path) -> None:
    image = a_name()
    engine = CommandEngine(docker_words.DOCKER)
    engine.tag("local/busybox:1", image)
    facts = engine.image_facts(image)
    assert facts is not None
    engine.save(image, tmp_path / "image.tar")
    engine.remove_image(image)
    assert engine.image_facts(image) is None
    engine.load(tmp_path / "image.tar", output=lambda data: None)
    assert engine.image_facts(image) == facts
    engine.remove_image(image)
    assert facts.environment == {"PATH": "/bin"}


def test_an_image_in_which_nothing_can_wait_is_told(tmp_path: Path) -> None:
    image = a_name()
    (tmp_path / "empty").mkdir()
    archive = shutil.make_archive(str(tmp_path / "empty"), "tar", tmp_path / "empty")
    docker("import", archive, image)
    try:
        run = replace(a_run(tmp_path, MEASURES), image=ImageRecord({"docker_image": image}))
        evidence = carry_out(run)
        assert evidence.nodes[0].exit_code != 0
        assert f"the image {image} has no tail" in evidence.nodes[0].detail
        assert containers(run) == []
    finally:
        docker("image", "rm", image)


def _when_started(run: RunSpec, *words: str) -> None:
    """Do something to the run's container from outside, as soon as its script runs."""
    deadline = time.monotonic() + 30
    while not (run.workspace / "started").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    docker(*words, container_name(run.run_id))


def _as_nobody(run: RunSpec, folder: Path) -> int:
    """In a child process: 0 when an ordinary user's run succeeds and the user can remove its workspace."""
    try:
        group = (folder / "docker.sock").stat().st_gid
        os.setgroups([group])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
        os.environ.update(DOCKER_HOST=f"unix://{folder}/docker.sock", PATH=f"{folder}:/usr/bin:/bin")
        os.environ.update(DOCKER_CONFIG=str(folder), HOME=str(folder))
        evidence = carry_out(run)
        print(json.dumps({"notes": evidence.notes, "interruption": str(evidence.interruption)}))
        return 0 if evidence.measurements and not remove_tree(run.workspace) else 1
    except BaseException as error:
        print(repr(error))
        return 2
