"""The words of docker's and podman's command lines: pure functions from a request to an argv.

Both understand the same words; a :class:`Dialect` holds the few differences. No value of a variable is among them.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from madengine.execution.client_environment import is_stated
from madengine.execution.engine import BuildRequest, ContainerRequest, Mount

WORKSPACE = "/myworkspace"

WAITING = ("tail", "-f", "/dev/null")
"""What a container does while it waits for commands. Every image that has bash has ``tail`` too."""

WRAPPER = 'while [ "$1" != -- ]; do export "$1=${!2}"; unset "$2"; shift 2; done; shift; exec "$@" 2>&1'
"""Runs a command inside: ``bash -c WRAPPER _ [NAME CARRIER]... -- COMMAND...``.

Carried variables get their names back. Both outputs go into one pipe, for between two of them the engine keeps no order
and may put a piece of the one into a line of the other. It uses no variable of its own, since any name may be one that
the script was given.
"""

SIGNALLER = """
for process in /proc/[0-9]*; do
    while IFS= read -r -d '' variable; do
        [ "$variable" = "$2" ] && kill -s "$1" "${process##*/}"
    done <"$process/environ"
done 2>/dev/null
exit 0
"""
"""Signals every process inside whose environment holds a given variable: ``bash -c SIGNALLER _ TERM NAME=VALUE``.

Process groups do not do: a script's children may have left its group. Nor does "every process there is": with
``--pid=host`` these would be the machine's.
"""


@dataclass(frozen=True)
class Dialect:
    """Where podman differs from docker."""

    program: str
    gpus: Callable[[str], list[str]]
    build_progress: bool = True
    keep_id: bool = False


def docker_gpus(indices: str) -> list[str]:
    """``--gpus`` is read as a CSV record, so a list of devices has to be quoted inside."""
    return ["--gpus", csv_record(f"device={indices}")]


def podman_gpus(indices: str) -> list[str]:
    """Podman takes NVIDIA devices by their names in the Container Device Interface."""
    return [word for index in indices.split(",") for word in ("--device", f"nvidia.com/gpu={index}")]


DOCKER = Dialect("docker", docker_gpus)
PODMAN = Dialect("podman", podman_gpus, build_progress=False, keep_id=os.geteuid() != 0)


def run_words(dialect: Dialect, request: ContainerRequest, names: Sequence[str], cidfile: Path) -> list[str]:
    """``run`` for a container that waits. Ours come after the user's options, so that they cannot be overridden."""
    words = ["run", "--pull", "never", "--detach", *request.options, "--init"]
    words += ["--name", request.name, "--cidfile", str(cidfile), "--entrypoint", WAITING[0], "--workdir", WORKSPACE]
    words += _pairs("--label", [f"{name}={value}" for name, value in request.labels.items()])
    words += mount_words(Mount(request.workspace, WORKSPACE))
    for mount in request.mounts:
        words += mount_words(mount)
    words += _pairs("--device", request.devices)
    if request.gpus:
        words += dialect.gpus(request.gpus)
    if request.cpus:
        words += ["--cpuset-cpus", request.cpus]
    if request.user:
        words += ["--user", request.user, *(["--userns", "keep-id"] if dialect.keep_id else [])]
        words += _pairs("--group-add", device_groups(request.devices))
    return [*words, *_pairs("--env", names), "--", request.image, *WAITING[1:]]


def exec_words(
    container: str, argv: Sequence[str], *, cwd: str, user: str, names: Sequence[str], settings: Mapping[str, str]
) -> list[str]:
    """``exec`` with variables by name; ``settings`` are variables of ours whose values everybody may see."""
    words = ["exec", "--workdir", cwd, *(["--user", user] if user else []), *_pairs("--env", names)]
    return [*words, *_pairs("--env", [f"{name}={value}" for name, value in settings.items()]), container, *argv]


def build_words(dialect: Dialect, request: BuildRequest, *, buildkit: bool) -> list[str]:
    """``build``. Arguments and secrets stand by name, the client takes their values from its environment.

    Podman's builder and BuildKit know secrets; for the old builder they are build arguments only.
    """
    words = ["build", "--tag", request.tag, "--file", str(request.dockerfile), "--network", request.network]
    words += ["--pull"] if request.pull else []
    words += ["--no-cache"] if request.no_cache else []
    words += ["--progress", "plain"] if buildkit and dialect.build_progress else []
    for name, value in request.build_args.items():
        words += ["--build-arg", f"{name}={value}" if is_stated(name) else name]
    words += _pairs("--build-arg", [name for name in request.secrets if name not in request.build_args])
    if buildkit:
        words += _pairs("--secret", [csv_record(f"id={name}", f"env={name}") for name in request.secrets])
    words += _pairs("--build-context", [f"{name}={folder}" for name, folder in request.contexts.items()])
    return [*words, str(request.context)]


def mount_words(mount: Mount) -> list[str]:
    """``--mount``, not ``-v``: a path may hold colons, and a source that is missing is an error, not a new folder."""
    fields = ["type=bind", f"source={mount.source}", f"target={mount.target}"]
    return ["--mount", csv_record(*fields, *(["readonly"] if mount.read_only else []))]


def device_groups(devices: Sequence[str]) -> list[str]:
    """The groups that own the device files, which a user other than root has to be a member of."""
    groups = {path.stat().st_gid for path in (Path(device.split(":")[0]) for device in devices) if path.exists()}
    return [str(group) for group in sorted(groups) if group]


def sets_user(options: Sequence[str]) -> bool:
    """Whether options for the run command choose the container's user."""
    return any(word in ("-u", "--user") or word.startswith("--user=") or _short_user(word) for word in options)


def csv_record(*fields: str) -> str:
    """One CSV record, as the values of ``--mount``, ``--gpus`` and ``--secret`` are read."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\r\n").writerow(fields)  # quotes a field with one of these characters
    return line.getvalue()[: -len("\r\n")]


def _short_user(word: str) -> bool:
    return word.startswith("-u") and not word.startswith("--") and len(word) > 2


def _pairs(option: str, values: Sequence[str]) -> list[str]:
    return [word for value in values for word in (option, value)]
