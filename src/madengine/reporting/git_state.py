"""Which commit a folder is at, for provenance."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from madengine.core.process import run

TIMEOUT = 10.0  # seconds; a repository on a slow disk must not hold up a run


@dataclass(frozen=True)
class GitState:
    """``commit`` is the full hash. ``dirty``: tracked files of the folder differ from it; None when git did not say.

    Untracked files do not count, since a run leaves its own in the folder that it was started in.
    """

    commit: str
    dirty: bool | None = None


def git_state(folder: Path) -> GitState | None:
    """The state of the repository that ``folder`` belongs to, None when it belongs to none or there is no git.

    A folder that merely lies in a repository without being part of its commit (an installed package in a virtual
    environment, for one) belongs to none.
    """
    answer = _git(folder, "rev-parse", "HEAD", "HEAD:./")
    lines = (answer or "").split()
    if len(lines) != 2:
        return None
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", ".")
    return GitState(commit=lines[0], dirty=None if changes is None else bool(changes.strip()))


def _git(folder: Path, *words: str) -> str | None:
    # A repository's own settings may name a program that watches its files: it is not to be started for this.
    argv = ("git", "-C", str(folder), "-c", "core.fsmonitor=false", *words)
    done = run(argv, timeout=TIMEOUT, env=_environment(os.environ))
    return done.stdout if done.exit_code == 0 else None


def _environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """Without ``GIT_DIR`` and its like, which would name another repository, and without touching the index."""
    clean = {name: value for name, value in inherited.items() if not name.startswith("GIT_")}
    return {**clean, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
