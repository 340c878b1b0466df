"""What a careful colleague would remark about a manifest that keeps to its contract: warnings, never errors.

Each rule comes from a run that went wrong: a transport variable that only one of the two environment blocks had (the
run silently fell back to TCP), a node list of another length than the job, a token in a file that is shared, a comment
that became a mount.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from madengine.core.json_positions import pointer_of
from madengine.schemas.problems import Problem
from madengine.schemas.unfilled import is_comment, templates_in
from madengine.schemas.violations import object_at
from madengine.schemas.wording import quoted

Path = tuple[str | int, ...]
Keys = tuple[str, ...]

_TRANSPORT = re.compile(r"(?:NCCL_|RCCL_|GLOO_)|(?:RDMAV_DRIVERS|IBV_DRIVERS)$")
_TOKEN = re.compile(
    r"(?<![A-Za-z0-9])(?:hf_[A-Za-z0-9]{20,}|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}"
    r"|glpat-[A-Za-z0-9_-]{20,}|AKIA[0-9A-Z]{16}(?![0-9A-Z])|xox[abprs]-[A-Za-z0-9-]{10,}|sk-[A-Za-z0-9_-]{32,})"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)
_RANGE = re.compile(r"\[([0-9,-]+)\]")
_IN_CONTAINER: Keys = ("context", "docker_env_vars")
_IN_JOB: Keys = ("deployment_config", "env_vars")
_MAPS: tuple[Keys, ...] = (_IN_CONTAINER, ("context", "docker_mounts"), ("context", "docker_build_arg"), _IN_JOB)
_CARD_MAPS = ("env_vars", "docker_build_arg")
MIN_SECRET = 8  # characters; a shorter value of a secret also occurs by chance


def lint_manifest(manifest: Any, secrets: Iterable[str] = ()) -> list[Problem]:
    """Remarks about a manifest. ``secrets`` are values known to be secret; no remark ever quotes one."""
    known = [secret for secret in secrets if len(secret) >= MIN_SECRET]
    return [*_transport(manifest), *_nodelist(manifest), *_comments(manifest), *_secrets(manifest, known)]


def _warning(code: str, path: Path, message: str, hint: str | None = None) -> Problem:
    return Problem("warning", code, pointer_of(path), None, message, hint)


def _transport(manifest: Any) -> Iterator[Problem]:
    """Transport variables that the container and the job do not agree on.

    Silent while one of them is still a template value: the blocks are not finished then.
    """
    job, container = ({n: v for n, v in object_at(manifest, *p).items() if _TRANSPORT.match(n)} for p in _BOTH)
    if any(templates_in(str(value)) for value in [*job.values(), *container.values()]):
        return
    if not _runs_elsewhere(manifest) and not (object_at(manifest, *_IN_JOB) and object_at(manifest, *_IN_CONTAINER)):
        return
    for name in dict.fromkeys([*container, *job]):
        if name in container and name in job:
            if _text(container[name]) != _text(job[name]):
                shown = f"{quoted(_text(container[name]))} in {_name(_IN_CONTAINER)} and {quoted(_text(job[name]))}"
                message = f"{name} is {shown} in {_name(_IN_JOB)}"
                yield _warning("transport-differs", (*_IN_JOB, name), message, "give both blocks the same value")
        else:
            here, there = (_IN_CONTAINER, _IN_JOB) if name in container else (_IN_JOB, _IN_CONTAINER)
            message = f"{name} is in {_name(here)} but not in {_name(there)}"
            yield _warning("transport-one-sided", (*here, name), message, "give both blocks the same value")


_BOTH = (_IN_JOB, _IN_CONTAINER)


def _name(path: Keys) -> str:
    return ".".join(path)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _runs_elsewhere(manifest: Any) -> bool:
    deployment = object_at(manifest, "deployment_config")
    if "target" in deployment:
        return deployment["target"] not in {"local", "docker"}
    return any(deployment.get(block) for block in ("slurm", "k8s", "kubernetes"))


def _nodelist(manifest: Any) -> Iterator[Problem]:
    slurm = object_at(manifest, "deployment_config", "slurm")
    nodelist, nodes = slurm.get("nodelist"), slurm.get("nodes")
    if not isinstance(nodelist, str) or not isinstance(nodes, int) or templates_in(nodelist):
        return
    count = count_nodes(nodelist)
    if count is not None and count != nodes:
        message = f"nodelist names {count} {'node' if count == 1 else 'nodes'}, but nodes is {nodes}"
        yield _warning("nodelist-length", ("deployment_config", "slurm", "nodelist"), message)


def count_nodes(nodelist: str) -> int | None:
    """The number of hosts in a Slurm host list (``node-[01-04,7],gpu1``), None when it is not written as one."""
    total = 0
    for expression in re.split(r",(?![^\[\]]*\])", nodelist):
        count = 1
        for ranges in _RANGE.findall(expression):
            lengths = [_length(part) for part in ranges.split(",")]
            count *= sum(length for length in lengths if length is not None)
            if None in lengths:
                return None
        if not expression.strip() or set("[]") & set(_RANGE.sub("", expression)):
            return None
        total += count
    return total


def _length(part: str) -> int | None:
    first, dash, last = part.partition("-")
    if len(part) > 20 or not first.isdecimal() or (dash and not last.isdecimal()):
        return None
    return int(last) - int(first) + 1 if dash and int(last) >= int(first) else None if dash else 1


def _maps(manifest: Any) -> Iterator[tuple[Keys, dict[str, Any]]]:
    """The maps whose keys become variables or mounts, with their paths."""
    for path in _MAPS:
        yield path, object_at(manifest, *path)
    for key in object_at(manifest, "built_models"):
        for name in _CARD_MAPS:
            yield ("built_models", key, name), object_at(manifest, "built_models", key, name)


def _comments(manifest: Any) -> Iterator[Problem]:
    for path, members in _maps(manifest):
        for key in members:
            if is_comment(key):
                what = "mount" if path[-1] == "docker_mounts" else "variable"
                message = f"every key in here becomes a {what}, this comment, too"
                yield _warning("comment-in-map", (*path, key), message, "move it beside the block")


def _secrets(manifest: Any, known: list[str]) -> Iterator[Problem]:
    """Values that look like secrets, or are known to be some. They are never quoted."""
    from madengine.core.redact import is_secret_name

    hint = "export it where the run is started (MAD_SECRETS_*) and leave it out of the file"
    named: set[Path] = set()
    for path, members in _maps(manifest):
        for key, value in members.items():
            if is_secret_name(key) and _is_literal(value):
                named.add((*path, key))
                yield _warning("secret", (*path, key), f"{quoted(key)} holds a secret in plain text", hint)
    for place, text in strings(manifest):
        if place not in named and (_TOKEN.search(text) or any(secret in text for secret in known)):
            yield _warning("secret", place, "this value holds a secret in plain text", hint)


def _is_literal(value: Any) -> bool:
    return isinstance(value, str) and len(value) >= MIN_SECRET and "$" not in value and not templates_in(value)


def strings(document: Any) -> Iterator[tuple[Path, str]]:
    """The path and text of each string value of a document, in document order."""
    stack: list[tuple[Path, Any]] = [((), document)]
    while stack:
        path, value = stack.pop()
        if isinstance(value, str):
            yield path, value
        elif isinstance(value, (dict, list)):
            members = value.items() if isinstance(value, dict) else enumerate(value)
            stack += reversed([((*path, key), item) for key, item in members])
