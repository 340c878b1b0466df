"""``job.json``: what the nodes of a remote run have to know, and what is needed to collect it later.

It is written once, before anything is submitted, and never changed. Of variables it holds names only: their values are
in the manifest beside it, in the env file, or in the environment that the job inherits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from madengine import __version__
from madengine.core.documents import load_json
from madengine.core.errors import ValidationError
from madengine.core.files import write_atomic
from madengine.verdict.words import one_line

FILE_NAME = "job.json"
BEFORE = "before.json"
"""What a node leaves in its folder right before the model begins: the results file that was there, if any."""

KIND = "madengine-job"
VERSION = 1
_WHAT = "job order"


@dataclass(frozen=True)
class JobOrder:
    """One run of several nodes.

    ``key`` is the model's key in the manifest beside this file, ``madengine`` the version that wrote the order.
    ``package``, ``env_file``, ``data_config`` and ``tools_config`` are absolute paths, empty where there is none.
    ``engine`` is empty when each node chooses its own. ``reporters`` is the number of ranks that are expected to
    report: all ``nnodes``, or 1 where one script drives the whole allocation. ``gpus_per_node`` is 0 for a run on CPUs.
    ``results_dir`` is a folder in which a script leaves its results file besides the workspace, empty without one.
    ``workspaces`` is a folder on shared storage for the workspaces, empty when they lie in the nodes' own folders.
    ``environment`` are the variables that presets give, ``options`` the run options of the command
    (``orchestration.plan.RunOptions``), ``row`` the variables of the command that columns of perf.csv come from,
    ``command`` the masked command line, ``directory`` where it was given, ``output`` what its ``--output`` said.
    ``marker_grace`` is how long lagging storage is waited for, ``pending_timeout`` how long a job may wait for its
    nodes (None: as long as it takes), both in seconds.
    """

    run_id: str
    key: str
    model: str
    target: str
    madengine: str
    package: str
    engine: str = ""
    launcher: str = ""
    nnodes: int = 1
    reporters: int = 1
    gpus_per_node: int = 0
    master_port: int = 29500
    env_file: str = ""
    data_config: str = ""
    tools_config: str = ""
    gpu_vendor: str = ""
    workspaces: str = ""
    results_dir: str = ""
    timeout: float | None = None
    results_file: str = ""
    expected_results: int | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    row: Mapping[str, Any] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    directory: str = ""
    output: str = ""
    marker_grace: float = 30.0
    pending_timeout: float | None = None


def write_order(run_dir: Path, order: JobOrder) -> Path:
    """Write ``job.json`` in one step; returns its path. Raises ``MADEngineError``."""
    path = run_dir / FILE_NAME
    document = {"kind": KIND, "version": VERSION, **asdict(order)}
    write_atomic(path, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    return path


def read_order(run_dir: Path) -> JobOrder:
    """The order of a run directory.

    Raises ``ConfigurationError`` when there is none or it is not JSON, ``ValidationError`` when it is not an order that
    this version of madengine understands.
    """
    path = run_dir / FILE_NAME
    document = load_json(path, what=_WHAT)
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise _invalid(path, "", "is no job order")
    if document.get("version") != VERSION:
        theirs = one_line(f"madengine {document.get('madengine')} (job orders of version {document.get('version')})")
        ours = f"this is madengine {__version__}, which reads version {VERSION}"
        raise _invalid(path, "/version", f"was written by {theirs}, and {ours}")
    return JobOrder(**{name: _value(name, document, path) for name in _NAMES if name in document or _is_needed(name)})


_NAMES = tuple(each.name for each in fields(JobOrder))
_NEEDED = ("run_id", "key", "model", "target", "madengine", "package")
_KINDS: Mapping[str, tuple[type, ...]] = {
    "nnodes": (int,),
    "reporters": (int,),
    "gpus_per_node": (int,),
    "master_port": (int,),
    "timeout": (int, float, type(None)),
    "expected_results": (int, type(None)),
    "marker_grace": (int, float),
    "pending_timeout": (int, float, type(None)),
    "environment": (dict,),
    "options": (dict,),
    "row": (dict,),
    "command": (list,),
}


def _is_needed(name: str) -> bool:
    return name in _NEEDED


def _value(name: str, document: Mapping[str, Any], path: Path) -> Any:
    if name not in document:
        raise _invalid(path, "", f"lacks '{name}'")
    value = document[name]
    kinds = _KINDS.get(name, (str,))
    if not isinstance(value, kinds) or isinstance(value, bool):
        raise _invalid(path, f"/{name}", "has a value of the wrong kind")
    return tuple(map(str, document[name])) if name == "command" else value


def _invalid(path: Path, pointer: str, message: str) -> ValidationError:
    hint = "run directories are read by the version of madengine that made them"
    return ValidationError(message, source=str(path), pointer=pointer, hint=hint)
