"""An image is made available where a model is about to run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from functools import partial
from pathlib import Path

import pytest
from tests.recording_engine import RecordingEngine

from madengine.catalog.card import ModelCard
from madengine.config.manifest import ImageRecord
from madengine.config.settings import Settings
from madengine.core.errors import BuildError, ExecutionError
from madengine.execution import ensure_image as ensuring
from madengine.execution.ensure_image import (
    archive_name,
    archives_folder,
    ensure_image,
    is_rebuilt,
    keep_archive,
    rebuild_job,
)
from madengine.execution.shared_lock import SharedLock

LOCAL = ImageRecord({"docker_image": "rocm/x:1", "local_image": True, "dockerfile": "docker/x.Dockerfile"})
PUSHED = ImageRecord({"docker_image": "ci-x", "local_image": False, "registry_image": "h:5000/ci-x"})


def _quiet(chunk: bytes) -> None:
    del chunk


class _Build:
    """A build that leaves the image in the engine."""

    def __init__(self, engine: RecordingEngine) -> None:
        self.calls = 0
        self._engine = engine

    def __call__(self) -> None:
        self.calls += 1
        self._engine.local["rocm/x:1"] = "sha256:built"


def test_an_image_that_is_there_is_taken(tmp_path: Path) -> None:
    engine = RecordingEngine(local={"rocm/x:1": "sha256:1"})
    assert ensure_image(LOCAL, engine, archives=tmp_path, output=_quiet) == "present"


def test_an_archive_beats_a_build(tmp_path: Path) -> None:
    engine = RecordingEngine()
    (tmp_path / "rocm_x_1.tar").write_text("rocm/x:1")
    build = _Build(engine)
    assert ensure_image(LOCAL, engine, archives=tmp_path, build=build, output=_quiet) == "loaded"
    assert build.calls == 0


@pytest.mark.parametrize("content", ["broken", "another/image:1"])
def test_an_archive_that_does_not_help_is_built_over(tmp_path: Path, content: str) -> None:
    engine = RecordingEngine()
    archive = tmp_path / "rocm_x_1.tar"
    archive.write_text(content)
    build = _Build(engine)
    assert ensure_image(LOCAL, engine, archives=tmp_path, build=build, output=_quiet) == "built"
    assert archive.read_text() == "rocm/x:1"


def test_without_archives_it_is_built_and_nothing_is_saved() -> None:
    engine = RecordingEngine()
    assert ensure_image(LOCAL, engine, build=_Build(engine), output=_quiet) == "built"


def test_what_cannot_be_built_is_pulled() -> None:
    engine = RecordingEngine()
    engine.remote.add("rocm/x:1")

    def fails() -> None:
        raise BuildError("no such file")

    assert ensure_image(LOCAL, engine, build=fails, output=_quiet) == "pulled"


def test_a_pushed_image_is_pulled_and_gets_its_local_name(tmp_path: Path) -> None:
    engine = RecordingEngine()
    engine.remote.add("h:5000/ci-x")
    assert ensure_image(PUSHED, engine, archives=tmp_path, output=_quiet) == "pulled"
    assert engine.image_facts("ci-x") is not None


def test_when_nothing_helps_every_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "rocm_x_1.tar").write_text("broken")

    def fails() -> None:
        raise BuildError("no such file")

    with pytest.raises(ExecutionError) as error:
        ensure_image(LOCAL, RecordingEngine(), archives=tmp_path, build=fails, output=_quiet)
    for words in ("unexpected EOF", "building: no such file", "pulling: docker cannot pull rocm/x:1: not found"):
        assert words in str(error.value)


def test_of_several_nodes_one_builds_and_the_others_load(tmp_path: Path) -> None:
    engines = [RecordingEngine() for _ in range(4)]
    results: list[str] = []

    def node(engine: RecordingEngine) -> None:
        build = _Build(engine)
        results.append(ensure_image(LOCAL, engine, archives=tmp_path, build=build, output=_quiet))

    threads = [threading.Thread(target=node, args=(engine,)) for engine in engines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == ["built", "loaded", "loaded", "loaded"]


def test_a_place_for_archives_that_is_none_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ExecutionError, match="MAD_DOCKER_BUILDS"):
        ensure_image(LOCAL, RecordingEngine(), archives=tmp_path / "file" / "sub", output=_quiet)


def test_on_one_machine_an_image_is_loaded_once(tmp_path: Path) -> None:
    engine = RecordingEngine()
    (tmp_path / "rocm_x_1.tar").write_text("rocm/x:1")
    results: list[str] = []
    threads = [
        threading.Thread(target=lambda: results.append(ensure_image(LOCAL, engine, archives=tmp_path, output=_quiet)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == ["loaded", "present", "present", "present"]
    assert len(engine.loads) == 1


def test_a_build_that_failed_on_another_node_is_not_tried_by_those_who_waited_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = tmp_path / ".rocm_x_1.tar.holder"
    held.write_text('{"token": "t", "host": "far-away"}')

    def fails_elsewhere(seconds: float) -> None:
        del seconds
        failure = {"token": "t", "host": "far-away", "reason": "exit code 7"}
        (tmp_path / ".rocm_x_1.tar.failed").write_text(json.dumps(failure))
        held.unlink()

    monkeypatch.setattr(ensuring, "SharedLock", partial(SharedLock, pause=fails_elsewhere))
    engine = RecordingEngine()
    build = _Build(engine)
    with pytest.raises(ExecutionError, match="building on far-away: exit code 7; pulling"):
        ensure_image(LOCAL, engine, archives=tmp_path, build=build, output=_quiet)
    assert build.calls == 0


def test_a_build_that_fails_is_told_to_those_who_wait_for_it(tmp_path: Path) -> None:
    def fails() -> None:
        raise BuildError("exit code 7")

    with pytest.raises(ExecutionError):
        ensure_image(LOCAL, RecordingEngine(), archives=tmp_path, build=fails, output=_quiet)
    assert json.loads((tmp_path / ".rocm_x_1.tar.failed").read_text())["reason"] == "exit code 7"


def test_an_archive_that_comes_while_another_still_holds_the_lock_is_loaded_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes load at the same time, whoever has the lock."""
    held = tmp_path / ".rocm_x_1.tar.holder"
    held.write_text('{"token": "t", "host": "far-away"}')

    def comes(seconds: float) -> None:
        del seconds
        (tmp_path / "rocm_x_1.tar").write_text("rocm/x:1")

    monkeypatch.setattr(ensuring, "SharedLock", partial(SharedLock, pause=comes))
    engine = RecordingEngine()
    assert ensure_image(LOCAL, engine, archives=tmp_path, build=_Build(engine), output=_quiet) == "loaded"
    assert held.exists()


def test_an_image_that_cannot_be_kept_for_the_others_is_used_here_and_it_is_said(tmp_path: Path) -> None:
    class Full(RecordingEngine):
        def save(self, reference: str, archive: Path) -> None:
            raise BuildError(f"docker cannot save {reference}: no space left on device")

    engine = Full()
    how = ensure_image(LOCAL, engine, archives=tmp_path, build=_Build(engine), output=_quiet)
    assert how == "built, and not kept for other nodes: docker cannot save rocm/x:1: no space left on device"


def test_an_image_is_kept_for_later_runs(tmp_path: Path) -> None:
    keep_archive("rocm/x:1", RecordingEngine(), tmp_path / "new")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["rocm_x_1.tar"]


def test_a_temporary_folder_that_cannot_be_used_keeps_nobody_from_an_image(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "not" / "there"))
    engine = RecordingEngine()
    assert ensure_image(LOCAL, engine, build=_Build(engine), output=_quiet) == "built"


@pytest.mark.parametrize(
    ("reference", "name"),
    [("rocm/vllm:v1", "rocm_vllm_v1.tar"), ("a//b::c d", "a_b_c_d.tar"), ("../../x", ".._.._x.tar")],
)
def test_archives_are_named_after_their_image(reference: str, name: str) -> None:
    assert archive_name(reference) == name


def test_the_environment_names_the_archives() -> None:
    assert archives_folder({"MAD_DOCKER_BUILDS": "/shared"}) == Path("/shared")
    assert archives_folder({"MAD_DOCKER_BUILDS": ""}) is None


def test_an_image_of_a_manifest_is_built_again_under_its_own_name(tmp_path: Path) -> None:
    (tmp_path / "docker").mkdir()
    (tmp_path / "docker" / "x.Dockerfile").write_text("FROM b:1\nARG MAD_SYSTEM_GPU_ARCHITECTURE\n")
    image = ImageRecord({**LOCAL.raw, "gpu_architecture": "gfx942"})
    job = rebuild_job(image, ModelCard({"name": "m"}), Settings(docker_build_arg={"A": "1"}), tmp_path, {})
    assert job.request.tag == "rocm/x:1"
    assert job.request.build_args == {"A": "1", "MAD_SYSTEM_GPU_ARCHITECTURE": "gfx942"}


@pytest.mark.parametrize("dockerfile", ["N/A (local image mode)", "", None])
def test_a_given_image_is_not_built_again(dockerfile: str | None) -> None:
    assert not is_rebuilt(ImageRecord({"docker_image": "x:1", "dockerfile": dockerfile}))
    assert is_rebuilt(LOCAL)


NODE = """\
import os, signal, sys, time
from pathlib import Path
from tests.recording_engine import RecordingEngine
from madengine.config.manifest import ImageRecord
from madengine.execution.ensure_image import ensure_image

archives, name = Path(sys.argv[1]), sys.argv[2]
engine = RecordingEngine()

def build():
    with (archives / "builds").open("a") as file:
        file.write(name + "\\n")
    if name == "dies":
        print("builds", flush=True)
        time.sleep(0.3)  # the others come meanwhile
        os.kill(os.getpid(), signal.SIGKILL)
    engine.local["rocm/x:1"] = "sha256:built"

image = ImageRecord({"docker_image": "rocm/x:1", "local_image": True})
print(ensure_image(image, engine, archives=archives, build=build, output=lambda data: None))
"""


def test_a_builder_that_is_killed_is_followed_by_one_other_whose_archive_all_the_rest_load(tmp_path: Path) -> None:
    def node(name: str) -> subprocess.Popen[str]:
        own = tmp_path / f"tmp-{name}"  # what belongs to one machine is there
        own.mkdir()
        environ = {**os.environ, "TMPDIR": str(own), "PYTHONPATH": str(Path(__file__).parents[3])}
        command = [sys.executable, "-c", NODE, str(tmp_path), name]
        return subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True)

    first = node("dies")
    assert first.stdout is not None
    assert first.stdout.readline() == "builds\n"
    others = [node(str(number)) for number in range(4)]
    told = sorted(process.communicate(timeout=60)[0].strip() for process in others)
    first.communicate(timeout=60)
    assert first.returncode == -9
    assert told == ["built", "loaded", "loaded", "loaded"]
    assert len((tmp_path / "builds").read_text().splitlines()) == 2
    assert not list(tmp_path.glob(".*.holder*"))
