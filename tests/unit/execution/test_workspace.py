"""A run's private workspace."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.execution.packages import package, spec

from madengine.core.errors import ExecutionError
from madengine.execution.clone import clone, repository_folder
from madengine.execution.copying import copy_folder
from madengine.execution.spec import Folders, RunSpec, ScriptPlan
from madengine.execution.workspace import Workspace, prepare


def prepared(run: RunSpec) -> Workspace:
    return prepare(run, note=lambda text: None)


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_script_lies_in_run_directory_and_the_package_beside_it(tmp_path: Path) -> None:
    root = package(tmp_path)
    (root / "scripts" / "m" / "lib").mkdir()
    (root / "scripts" / "m" / "lib" / "x.py").write_text("x")
    made = prepared(spec(root))
    assert made.inside == "/myworkspace/run_directory"
    assert (made.run_directory / "lib" / "x.py").read_text() == "x"
    assert (made.root / "scripts" / "m" / "run.sh").is_file()


def test_the_package_is_only_read(tmp_path: Path) -> None:
    root = package(tmp_path)
    before = tree(root)
    made = prepared(spec(root))
    (made.run_directory / "run.sh").write_text("changed")
    (made.root / "scripts" / "m" / "run.sh").write_text("changed")
    assert {name: data for name, data in tree(root).items() if not name.startswith("runs/")} == before


def test_own_scripts_stand_beside_the_packages_and_never_in_their_place(tmp_path: Path) -> None:
    root = package(tmp_path)
    tools = root / "scripts" / "common" / "tools"
    tools.mkdir(parents=True)
    (tools / "sampler.py").write_text("theirs")
    (tools / "cluster.sh").write_text("theirs too")
    common = prepared(spec(root)).root / "scripts" / "common"
    assert (common / "tools" / "sampler.py").read_text() == "theirs"
    assert (common / "tools" / "cluster.sh").is_file()
    assert (common / "tools" / "rocprof_wrapper.sh").is_file()
    assert (common / "pre_scripts" / "system_environment.sh").is_file()


def test_a_script_in_the_packages_root_does_not_copy_the_runs(tmp_path: Path) -> None:
    root = package(tmp_path)
    (root / "run.sh").write_text("echo")
    (root / "runs" / "older").mkdir(parents=True)
    made = prepared(spec(root, script=ScriptPlan(root, "run.sh")))
    assert (made.run_directory / "run.sh").is_file()
    assert not (made.run_directory / "runs").exists()


def test_folders_of_other_runs_are_never_copied(tmp_path: Path) -> None:
    root = package(tmp_path)
    (root / "run.sh").write_text("echo")
    results = root / "slurm_results"
    run = spec(root, script=ScriptPlan(root, "run.sh"), run_dir=results / "run-1" / "node_0")
    run = replace(run, folders=Folders(workspace=root / "spaces" / "node_0", others=(results, root / "spaces")))
    (results / "older").mkdir(parents=True)
    made = prepared(run)
    assert made.root == root / "spaces" / "node_0"
    assert not (made.run_directory / "slurm_results").exists()
    assert not (made.run_directory / "spaces").exists()


def test_the_launchers_files_lie_beside_the_script(tmp_path: Path) -> None:
    root = package(tmp_path)
    (tmp_path / "outside").write_text("theirs")
    (root / "scripts" / "m" / "hostfile").symlink_to(tmp_path / "outside")
    made = prepared(spec(root, files={"hostfile": "a slots=8\nb slots=8\n"}))
    assert (made.run_directory / "hostfile").read_text() == "a slots=8\nb slots=8\n"
    assert (tmp_path / "outside").read_text() == "theirs"


@pytest.mark.parametrize("file", ["../../../outside.sh", "/etc/passwd", "../../../package-too/run.sh"])
def test_a_script_outside_the_package_is_refused(tmp_path: Path, file: str) -> None:
    root = package(tmp_path)
    (tmp_path / "outside.sh").write_text("x")
    (tmp_path / "package-too").mkdir()
    (tmp_path / "package-too" / "run.sh").write_text("x")
    with pytest.raises(ExecutionError, match="outside its package"):
        prepared(spec(root, script=ScriptPlan(root / "scripts" / "m", file)))


def test_a_link_to_a_script_outside_the_package_is_refused(tmp_path: Path) -> None:
    root = package(tmp_path)
    (tmp_path / "outside.sh").write_text("x")
    (root / "scripts" / "m" / "link.sh").symlink_to(tmp_path / "outside.sh")
    with pytest.raises(ExecutionError, match="outside its package"):
        prepared(spec(root, script=ScriptPlan(root / "scripts" / "m", "link.sh")))


def test_a_script_that_is_not_there_is_named(tmp_path: Path) -> None:
    root = package(tmp_path)
    with pytest.raises(ExecutionError, match=r"no scripts/m/nope\.sh"):
        prepared(spec(root, script=ScriptPlan(root / "scripts" / "m", "nope.sh")))


def test_a_workspace_is_never_shared(tmp_path: Path) -> None:
    root = package(tmp_path)
    prepared(spec(root))
    with pytest.raises(ExecutionError, match="cannot be prepared"):
        prepared(spec(root))


def test_links_stay_links_where_their_goal_is_copied_and_become_files_where_it_is_not(tmp_path: Path) -> None:
    root = package(tmp_path)
    folder = root / "scripts" / "m"
    (root / "docker").mkdir()
    (root / "docker" / "shared").write_text("shared")
    (folder / "inside").symlink_to("run.sh")
    (folder / "absolute").symlink_to(folder / "run.sh")
    (folder / "elsewhere").symlink_to("../../docker/shared")
    (folder / "folder").symlink_to("../../docker")
    (folder / "outside").symlink_to("/etc/hostname")
    (folder / "dangling").symlink_to("nothing")
    (folder / "loop").symlink_to(".")
    copy = prepared(spec(root)).run_directory
    assert copy.joinpath("inside").readlink() == copy.joinpath("absolute").readlink() == Path("run.sh")
    assert not copy.joinpath("elsewhere").is_symlink()
    assert copy.joinpath("elsewhere").read_text() == copy.joinpath("folder", "shared").read_text() == "shared"
    assert copy.joinpath("outside").readlink() == Path("/etc/hostname")
    assert copy.joinpath("dangling").readlink() == Path("nothing")
    assert copy.joinpath("loop").readlink() == Path()


def test_a_link_below_a_followed_folder_leads_into_the_copy(tmp_path: Path) -> None:
    root = package(tmp_path)
    (root / "other").mkdir()
    (root / "other" / "back").symlink_to("../scripts/m/run.sh")
    (root / "other" / "up").symlink_to("..")
    (root / "scripts" / "m" / "other").symlink_to("../../other")
    copy = prepared(spec(root)).run_directory
    assert (copy / "other" / "back").resolve() == (copy / "run.sh").resolve()


def test_permissions_are_kept_and_the_copy_can_be_written(tmp_path: Path) -> None:
    root = package(tmp_path)
    tool = root / "scripts" / "m" / "tool"
    tool.write_text("x")
    tool.chmod(0o555)
    assert (prepared(spec(root)).run_directory / "tool").stat().st_mode & 0o777 == 0o755


def test_what_is_no_file_is_left_out(tmp_path: Path) -> None:
    root = package(tmp_path)
    os.mkfifo(root / "scripts" / "m" / "pipe")
    (root / "scripts" / "m" / ".git").mkdir()
    copy = prepared(spec(root)).run_directory
    assert not (copy / "pipe").exists()
    assert not (copy / ".git").exists()


def test_nothing_is_written_through_a_link_that_is_there_already(tmp_path: Path) -> None:
    source, target, outside = tmp_path / "source", tmp_path / "target", tmp_path / "outside"
    for folder in (source / "data", target, outside):
        folder.mkdir(parents=True)
    (source / "data" / "x").write_text("new")
    (source / "file").write_text("new")
    (outside / "y").write_text("old")
    (target / "data").symlink_to(outside)
    (target / "file").symlink_to(outside / "y")
    copy_folder(source, target, package=source, replace=True)
    assert tree(outside) == {"y": b"old"}
    assert tree(target) == {"data/x": b"new", "file": b"new"}


def test_a_file_system_that_cannot_share_blocks_gets_a_plain_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(95, "not supported")

    monkeypatch.setattr(os, "copy_file_range", refuse)
    root = package(tmp_path, "echo whole\n")
    assert (prepared(spec(root)).run_directory / "run.sh").read_text() == "echo whole\n"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit, holding a ``run.sh`` and a link that leads out."""
    folder = tmp_path / "upstream" / "project.git"
    folder.mkdir(parents=True)
    (folder / "run.sh").write_text("upstream")
    (folder / "only-here").write_text("upstream")
    git = ["git", "-C", str(folder), "-c", "user.name=n", "-c", "user.email=e@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "m"]):
        subprocess.run([*git, *words], check=True)
    return folder


def test_a_cards_url_is_cloned_and_the_script_laid_over_it(tmp_path: Path, repository: Path) -> None:
    root = package(tmp_path, "ours")
    notes: list[str] = []
    made = prepare(spec(root, card={"url": f"file://{repository}"}), note=notes.append)
    assert made.inside == "/myworkspace/project"
    assert (made.run_directory / "run.sh").read_text() == "ours"
    assert (made.run_directory / "only-here").read_text() == "upstream"
    assert notes[0].startswith("cloned project at commit ")


def test_a_url_that_cannot_be_cloned_is_an_error_in_gits_words(tmp_path: Path) -> None:
    root = package(tmp_path)
    run = spec(root, card={"url": f"file://user:hidden@{tmp_path}/none"})
    with pytest.raises(ExecutionError, match="cannot be cloned") as refused:
        prepared(run)
    assert "hidden" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "folder"),
    [
        ("https://h/o/DeepLearningExamples.git", "DeepLearningExamples"),
        ("https://h/o/r/", "r"),
        ("git@h:o/r.git", "r"),
        ("git@h:r.name", "r.name"),
    ],
)
def test_a_clone_is_named_after_its_repository(url: str, folder: str) -> None:
    assert repository_folder(url) == folder


@pytest.mark.parametrize(
    "url", ["https://h/..", "https://h/.git", "-x", "https://h/a b", "https://h/scripts", "/", "$(x)"]
)
def test_a_url_without_a_repositorys_name_is_refused(url: str) -> None:
    with pytest.raises(ExecutionError, match="repository's name"):
        repository_folder(url)


def test_a_transport_that_runs_commands_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExecutionError, match="not allowed"):
        clone(f"ext::sh -c touch% {tmp_path}/canary%", tmp_path / "x")
    assert not (tmp_path / "canary").exists()


def test_credentials_reach_git_by_its_environment_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git = tmp_path / "git"
    git.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/words\nenv >>{tmp_path}/environment\n')
    git.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    secrets = {"site_USERNAME": "me", "site_PASSWORD": "hidden", "site_SSH_KEY_FILE": "/keys/a b"}
    clone("https://h/o/r", tmp_path / "r", credential="site", variables=secrets)
    words, environment = (tmp_path / "words").read_text(), (tmp_path / "environment").read_text()
    assert "hidden" not in words
    assert "credential.helper=" in words
    assert "GIT_TERMINAL_PROMPT=0" in environment
    assert "GIT_SSH_COMMAND=ssh -i '/keys/a b' -o IdentitiesOnly=yes" in environment


def test_a_password_is_answered_to_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from madengine.execution import clone as module

    words, environment = module._access("site", {"site_USERNAME": "me", "site_PASSWORD": "pa ss$x"})
    asked = subprocess.run(
        ["git", *words, "credential", "fill"], input="protocol=https\nhost=h\n\n", env=environment,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "username=me\npassword=pa ss$x\n" in asked.stdout


def test_a_prepared_run_of_another_id_is_untouched(tmp_path: Path) -> None:
    root = package(tmp_path)
    first = prepared(spec(root))
    before = tree(first.root)
    prepared(replace(spec(root), run_id="run-2", run_dir=root / "runs" / "run-2"))
    assert tree(first.root) == before


def test_a_password_in_the_address_is_in_no_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git = tmp_path / "git"
    git.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/words\nenv >>{tmp_path}/environment\n')
    git.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    clone("https://me:hid%40den@host/o/r.git", tmp_path / "r")
    words, environment = (tmp_path / "words").read_text(), (tmp_path / "environment").read_text()
    assert "https://host/o/r.git" in words
    assert "hid" not in words
    assert {"MADENGINE_GIT_USERNAME=me", "MADENGINE_GIT_PASSWORD=hid@den"} <= set(environment.splitlines())
