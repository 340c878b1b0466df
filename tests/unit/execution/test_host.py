"""What is special about running without a container."""

from __future__ import annotations

from pathlib import Path

import pytest

from madengine.core.errors import BuildError, ExecutionError
from madengine.execution.engine import BuildRequest, ContainerRequest, Mount
from madengine.execution.host import HostContainer, HostEngine


def started(workspace: Path, **fields: object) -> HostContainer:
    workspace.mkdir(exist_ok=True)
    return HostEngine(grace=0.2).start(ContainerRequest("n", "", workspace, **fields))  # type: ignore[arg-type]


def said(container: HostContainer, script: str) -> str:
    heard: list[bytes] = []
    container.exec(["bash", "-c", script], cwd="/myworkspace", output=heard.append)
    return b"".join(heard).decode().strip()


@pytest.mark.parametrize("action", ["build", "pull", "push", "tag", "load", "save"])
def test_there_are_no_images(tmp_path: Path, action: str) -> None:
    engine = HostEngine()
    calls = {
        "build": lambda: engine.build(BuildRequest("t", tmp_path, tmp_path), output=print),
        "pull": lambda: engine.pull("i", output=print),
        "push": lambda: engine.push("i", output=print),
        "tag": lambda: engine.tag("i", "j"),
        "load": lambda: engine.load(tmp_path, output=print),
        "save": lambda: engine.save("i", tmp_path),
    }
    with pytest.raises(BuildError, match=f"no images and cannot {action}"):
        calls[action]()


def test_a_machine_without_bash_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert HostEngine().problem() == "bash is not installed"


def test_a_workspace_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ExecutionError, match="is not there"):
        HostEngine().start(ContainerRequest("n", "", tmp_path / "none"))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("/myworkspace", "{w}"),
        ("/myworkspace/a b", "{w}/a b"),
        ("/x:/myworkspace/lib:/y", "/x:{w}/lib:/y"),
        ("/myworkspaces/x", "/myworkspaces/x"),
        ("see /myworkspace/x", "see /myworkspace/x"),
    ],
)
def test_variables_that_hold_a_path_of_the_workspace_are_mapped(tmp_path: Path, value: str, expected: str) -> None:
    container = started(tmp_path / "w", environment={"V": value})
    assert said(container, 'echo "$V"') == expected.format(w=(tmp_path / "w").resolve())


def test_the_script_has_the_callers_environment_below_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INHERITED", "a")
    monkeypatch.setenv("BOTH", "b")
    assert said(started(tmp_path / "w", environment={"BOTH": "c"}), "echo $INHERITED $BOTH") == "a c"


def test_a_mount_leaves_with_the_container_and_its_source_stays(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x").write_text("x")
    container = started(tmp_path / "w", mounts=(Mount(tmp_path / "data", "/myworkspace/deep/data"),))
    assert said(container, "cat deep/data/x") == "x"
    container.stop()
    assert not (tmp_path / "w" / "deep" / "data").exists()
    assert (tmp_path / "data" / "x").read_text() == "x"


@pytest.mark.parametrize("target", ["/myworkspace/../escape", "/data", "/myworkspace/link/x", "/myworkspace"])
def test_a_mount_never_makes_anything_outside_the_workspace(tmp_path: Path, target: str) -> None:
    workspace = tmp_path / "w"
    workspace.mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "outside").mkdir()
    (workspace / "link").symlink_to(tmp_path / "outside")
    container = started(workspace, mounts=(Mount(tmp_path / "data", target),))
    assert "not visible" in container.notes[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "outside", "w"]
    assert list((tmp_path / "outside").iterdir()) == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("/data", "{t}/outer"),
        ("/data/x y", "{t}/outer/x y"),
        ("/data/inner/x", "{t}/inner/x"),
        ("/data/inner:/database:/data", "{t}/inner:/database:{t}/outer"),
        ("/myworkspace/x", "{t}/w/x"),
        ("x/data", "x/data"),
        ("http://h:80/data", "http://h:80/data"),
    ],
)
def test_variables_that_hold_a_path_of_a_mount_lead_to_what_is_mounted(
    tmp_path: Path, value: str, expected: str
) -> None:
    mounts = (Mount(tmp_path / "outer", "/data"), Mount(tmp_path / "inner", "/data/inner/"), Mount(tmp_path, "/"))
    container = started(tmp_path / "w", environment={"V": value}, mounts=mounts)
    assert said(container, 'echo "$V"') == expected.format(t=tmp_path.resolve())


def test_a_mount_does_not_take_the_place_of_what_is_there(tmp_path: Path) -> None:
    workspace = tmp_path / "w"
    (workspace / "scripts").mkdir(parents=True)
    container = started(workspace, mounts=(Mount(tmp_path, "/myworkspace/scripts"),))
    assert "has something there" in container.notes[0]
    assert not (workspace / "scripts").is_symlink()
