"""Cloning the repository that a card's ``url`` names into the run's workspace.

Credentials reach git through its environment, read by a credential helper that git starts; none stands in an argv, in
the address or in the clone's configuration.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

from madengine.core.errors import ExecutionError
from madengine.core.process import run
from madengine.core.shell import quote

CLONE_LIMIT = 1800.0  # seconds
TRANSPORTS = "https:http:ssh:git:file"  # not git's ext:, which runs any command
RESERVED = frozenset(("scripts", "."))

_HELPER = (
    '!f() { test "$1" = get && echo "username=$MADENGINE_GIT_USERNAME" && echo "password=$MADENGINE_GIT_PASSWORD"; }; f'
)


def repository_folder(url: str) -> str:
    """The folder that a clone of ``url`` is put into: its last part without ``.git``.

    Raises ``ExecutionError`` when that is no plain name.
    """
    name = re.split(r"[/:]", url.rstrip("/"))[-1].removesuffix(".git")
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*", name) or name in RESERVED:
        raise ExecutionError(f"the card's url {url!r} does not end in a repository's name")
    return name


def clone(url: str, target: Path, *, credential: str = "", variables: Mapping[str, str] | None = None) -> str:
    """Clone ``url`` with its submodules into ``target`` and return the commit.

    ``credential`` is the card's ``cred``; its variables ``<cred>_USERNAME``, ``<cred>_PASSWORD`` and
    ``<cred>_SSH_KEY_FILE`` are taken from ``variables``; a name and password that stand in the address itself count
    without them. Raises ``ExecutionError`` in git's words.
    """
    address, username, password = _parted(url)
    given = {f"{credential}_USERNAME": username, f"{credential}_PASSWORD": password} if username else {}
    words, environment = _access(credential, {**given, **(variables or {})})
    command = ["git", *words, "clone", "--quiet", "--recurse-submodules", "--", address, str(target)]
    done = run(command, env=environment, timeout=CLONE_LIMIT)
    if done.exit_code:
        said = (
            "no answer in time" if done.timed_out else " ".join(done.stderr.split()) or f"git exited {done.exit_code}"
        )
        raise ExecutionError(
            f"{_shown(url)} cannot be cloned: {said.replace(url, _shown(url))}", hint=_hint(credential)
        )
    return run(["git", "-C", str(target), "rev-parse", "HEAD"], timeout=60).stdout.strip()


def _parted(url: str) -> tuple[str, str, str]:
    """An address without the user and password in it, and these two: in git's argv everybody could read them."""
    match = re.fullmatch(r"(https?://)([^/@:]*)(?::([^/]*))?@([^@]*)", url, re.DOTALL)
    if match is None:
        return url, "", ""
    return match[1] + match[4], unquote(match[2]), unquote(match[3] or "")


def _access(credential: str, variables: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Words for git, and its environment, with which it may read a private repository; it never asks a person."""
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": TRANSPORTS, "LC_ALL": "C"}
    password = variables.get(f"{credential}_PASSWORD", "")
    key = variables.get(f"{credential}_SSH_KEY_FILE", "")
    ssh = f"ssh -i {quote(key)} -o IdentitiesOnly=yes" if key else "ssh"
    environment["GIT_SSH_COMMAND"] = f"{ssh} -o BatchMode=yes -o StrictHostKeyChecking=accept-new"
    if not password:
        return [], environment
    environment["MADENGINE_GIT_USERNAME"] = variables.get(f"{credential}_USERNAME", "")
    environment["MADENGINE_GIT_PASSWORD"] = password
    return ["-c", "credential.helper=", "-c", f"credential.helper={_HELPER}"], environment


def _hint(credential: str) -> str:
    if credential:
        return f"check the entry {credential!r} of credential.json"
    return "a private repository needs the card's cred to name an entry of credential.json"


def _shown(url: str) -> str:
    """An address without a user and password that somebody wrote into it."""
    return re.sub(r"://[^/@]*@", "://", url)
