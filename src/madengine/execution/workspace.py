"""The private workspace of a run: what the script sees at ``/myworkspace``.

::

    workspace/
      scripts/            a copy of the package's scripts
        common/           in it also madengine's own pre-, post-scripts and tools, but never in a package file's place
      run_directory/      a copy of the script's folder, or the clone of the card's ``url`` with that folder over it

The package is only read. Every run has a workspace of its own, so that two runs of a model never meet.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from madengine.core.errors import ExecutionError
from madengine.execution.clone import clone, repository_folder
from madengine.execution.copying import copy_folder
from madengine.execution.docker_words import WORKSPACE
from madengine.execution.spec import RunSpec
from madengine.profiling import SCRIPTS

RUN_DIRECTORY = "run_directory"


@dataclass(frozen=True)
class Workspace:
    """A prepared workspace: its folder here, and the name of the folder in it that the script runs in."""

    root: Path
    run_name: str

    @property
    def run_directory(self) -> Path:
        """Where the script runs, as a path of this machine."""
        return self.root / self.run_name

    @property
    def inside(self) -> str:
        """Where the script runs, as it sees it."""
        return f"{WORKSPACE}/{self.run_name}"


def prepare(spec: RunSpec, *, note: Callable[[str], None]) -> Workspace:
    """Fill the run's workspace. Raises ``ExecutionError`` for a script that the package does not have."""
    folder = _script_folder(spec)
    url = spec.card.text("url")
    workspace = Workspace(spec.workspace, repository_folder(url) if url else RUN_DIRECTORY)
    try:
        workspace.root.mkdir(parents=True)
        if url:
            variables = {**spec.environment, **spec.secrets}
            commit = clone(url, workspace.run_directory, credential=spec.card.text("cred"), variables=variables)
            note(f"cloned {workspace.run_name} at commit {commit}")
        _fill(spec, folder, workspace)
        _leave_files(spec, workspace)
    except OSError as error:
        raise ExecutionError(f"the workspace {workspace.root} cannot be prepared: {error}") from error
    return workspace


def open_to_everyone(workspace: Workspace) -> None:
    """Let any user write into a workspace: for a run whose options choose another user than the caller.

    Links are left alone, what they lead to may lie elsewhere.
    """
    for folder, _, files in os.walk(workspace.root):
        for path in (Path(folder), *(Path(folder, name) for name in files)):
            if not path.is_symlink():
                mode = path.stat().st_mode
                path.chmod(mode | 0o666 | (0o111 if mode & 0o100 else 0))


def _fill(spec: RunSpec, folder: Path, workspace: Workspace) -> None:
    own = (spec.run_dir, spec.run_dir.parent, spec.workspace, *spec.folders.others)
    skip = {folder.resolve() for folder in own}
    scripts = spec.package / "scripts"
    target = workspace.root / "scripts"
    target.mkdir()
    if scripts.is_dir():
        copy_folder(scripts, target, package=spec.package, skip=skip)
    copy_folder(SCRIPTS, target / "common", package=SCRIPTS)
    copy_folder(folder, workspace.run_directory, package=spec.package, skip=skip, replace=True)


def _leave_files(spec: RunSpec, workspace: Workspace) -> None:
    """What the launcher wants beside the script; a link of that name in the package is not written through."""
    for name, text in spec.files.items():
        path = workspace.run_directory / name
        path.unlink(missing_ok=True)
        path.write_text(text, encoding="utf-8")


def _script_folder(spec: RunSpec) -> Path:
    """The script's folder, resolved; it and the script lie in the package, whatever the card says."""
    package, folder = spec.package.resolve(), spec.script.folder.resolve()
    script = (folder / spec.script.file).resolve()
    if not folder.is_relative_to(package) or not script.is_relative_to(package):
        raise ExecutionError(f"the script of {spec.card.name} lies outside its package: {spec.script.file!r}")
    if not script.is_file():
        raise ExecutionError(f"the package has no {folder.relative_to(package) / spec.script.file}")
    return folder
