"""``run.json``: the provenance of one run, in its run directory.

Written when the run starts and again when it ends, each time in one step, so that a run that was killed still says what
it was. Variables stand there by name only; command lines are masked, and every text goes through the redactor of the
run's secrets.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import madengine
from madengine.core.documents import load_json
from madengine.core.errors import ConfigurationError, ValidationError
from madengine.core.files import write_atomic
from madengine.core.redact import Redactor, mask_argv
from madengine.core.shell import quote, split_words
from madengine.reporting.csv_text import storable
from madengine.reporting.git_state import GitState, git_state
from madengine.verdict.evidence import Verdict

FILE_NAME = "run.json"
KIND = "madengine-run"
VERSION = 1
_WHAT = "run record"


@dataclass(frozen=True)
class Machine:
    """Where and with what a run was made. ``git`` is the commit of madengine's own checkout, if it is one."""

    host: str
    system: str
    python: str
    madengine: str
    git: GitState | None = None


@dataclass(frozen=True)
class RunImage:
    """The image as it was named, and the digest (``sha256:...``) that it turned out to be; empty without one."""

    reference: str = ""
    digest: str = ""


@dataclass(frozen=True)
class RunGpus:
    """The GPUs that the run was given. ``vendor`` is AMD, NVIDIA or CPU, ``total`` how many the machine has."""

    vendor: str = "CPU"
    indices: tuple[int, ...] = ()
    total: int = 0
    architecture: str = ""
    product: str = ""
    driver: str = ""


@dataclass(frozen=True)
class SpecSummary:
    """What was to be run. ``variables`` and ``secrets`` are names; ``mounts`` are ``source:target[:ro]``.

    ``timeout`` is in seconds, None for no limit.
    """

    script: str = ""
    args: str = ""
    launcher: str = ""
    timeout: float | None = None
    results_file: str = ""
    expected_results: int | None = None
    variables: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    mounts: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunRecord:
    """One run. Times are UTC in ISO 8601; ``ended`` and what follows it are empty while the run goes on.

    ``command`` is madengine's own command line. ``exit_code`` is the script's (None when it never ran), the verdict
    has the command's.
    """

    run_id: str
    model: str
    machine: Machine
    command: tuple[str, ...]
    started: str
    key: str = ""
    target: str = "local"
    engine: str = ""
    package: str = ""
    package_git: GitState | None = None
    image: RunImage = RunImage()
    gpus: RunGpus = RunGpus()
    spec: SpecSummary = SpecSummary()
    ended: str | None = None
    duration: float | None = None
    exit_code: int | None = None
    verdict: Verdict | None = None
    rows: tuple[Mapping[str, str], ...] = ()
    notes: tuple[str, ...] = field(default=())

    def finished(
        self,
        *,
        ended: datetime,
        duration: float,
        exit_code: int | None,
        verdict: Verdict,
        rows: Sequence[Mapping[str, str]] = (),
        image: RunImage | None = None,
    ) -> RunRecord:
        """The record of the run when it is over. ``duration`` is in seconds, by a clock that does not jump."""
        return replace(
            self,
            ended=utc(ended),
            duration=round(duration, 3),
            exit_code=exit_code,
            verdict=verdict,
            rows=tuple(rows),
            image=image or self.image,
        )

    def to_dict(self) -> dict[str, Any]:
        """The document as plain JSON values, with nothing masked yet."""
        return {"kind": KIND, "version": VERSION, **_plain(asdict(self))}


def this_machine() -> Machine:
    """The machine and the madengine that this process runs on. Asks git once; call it once per command."""
    return Machine(
        host=os.uname().nodename,
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=platform.python_version(),
        madengine=madengine.__version__,
        git=git_state(Path(madengine.__file__).parent),
    )


def utc(moment: datetime) -> str:
    """A moment in ISO 8601, UTC, to the millisecond: ``2026-01-31T23:59:59.123Z``."""
    return moment.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def write_run_record(run_dir: Path, record: RunRecord, *, secrets: Iterable[str] = (), durable: bool = True) -> Path:
    """Write ``run.json`` in one step and return its path. ``secrets`` are the values that must not stand in it.

    ``durable`` False does not wait for the disk, see ``core.files``. Raises :class:`MADEngineError` when it cannot be
    written.
    """
    import json

    hidden = tuple(secrets)
    masked = replace(
        record,
        command=mask_argv(record.command, hidden),
        spec=replace(
            record.spec, options=mask_argv(record.spec.options, hidden), args=_masked_text(record.spec.args, hidden)
        ),
    )
    redactor = Redactor(hidden)
    document = _redacted(masked.to_dict(), redactor)
    path = run_dir / FILE_NAME
    write_atomic(path, json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n", durable=durable)
    return path


def read_run_record(run_dir: Path) -> dict[str, Any]:
    """The document of a run directory's ``run.json``.

    Raises :class:`ConfigurationError` when there is none or it is not JSON, :class:`ValidationError` when it is not a
    run record of this version or lacks what each one has. Keys that are not known are kept.
    """
    path = run_dir / FILE_NAME
    return run_record_of(load_json(path, what=_WHAT), str(path))


def run_record_of(document: object, source: str) -> dict[str, Any]:
    """A document as the run record that it is; ``source`` names it in errors, which are those of a reader."""
    if not isinstance(document, dict) or document.get("kind") != KIND:
        raise _invalid(source, "", "is not a run record", allowed=f'an object with "kind": "{KIND}"')
    if document.get("version") != VERSION:
        found = repr(document.get("version"))
        raise _invalid(source, "/version", "is a run record of another version", found=found, allowed=str(VERSION))
    for name, kinds in _SHAPE.items():
        if name not in document:
            raise _invalid(source, "", f"lacks '{name}'")
        if not isinstance(document[name], kinds) or isinstance(document[name], bool):
            allowed = " or ".join("null" if kind is type(None) else kind.__name__ for kind in kinds)
            raise _invalid(source, f"/{name}", "has a value of the wrong kind", allowed=allowed)
    return document


def resumed_record(run_dir: Path) -> RunRecord:
    """The record of a run that was begun before, so that it can be finished. Raises as :func:`read_run_record`."""
    document = read_run_record(run_dir)
    machine, git = document["machine"], document["package_git"]
    try:
        return RunRecord(
            run_id=document["run_id"],
            model=document["model"],
            machine=Machine(**{**machine, "git": GitState(**machine["git"]) if machine.get("git") else None}),
            command=tuple(document["command"]),
            started=document["started"],
            key=document["key"],
            target=document["target"],
            engine=document["engine"],
            package=document["package"],
            package_git=GitState(**git) if git else None,
            image=RunImage(**document["image"]),
            gpus=RunGpus(**{**document["gpus"], "indices": tuple(document["gpus"].get("indices") or ())}),
            spec=SpecSummary(**{name: _frozen(value) for name, value in document["spec"].items()}),
        )
    except TypeError as error:
        raise _invalid(str(run_dir / FILE_NAME), "", f"is no record of this version: {error}") from error


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


_TEXT, _OBJECT, _LIST = (str,), (dict,), (list,)
_SHAPE: Mapping[str, tuple[type, ...]] = {
    "run_id": _TEXT,
    "model": _TEXT,
    "machine": _OBJECT,
    "command": _LIST,
    "started": _TEXT,
    "key": _TEXT,
    "target": _TEXT,
    "engine": _TEXT,
    "package": _TEXT,
    "package_git": (dict, type(None)),
    "image": _OBJECT,
    "gpus": _OBJECT,
    "spec": _OBJECT,
    "ended": (str, type(None)),
    "duration": (int, float, type(None)),
    "exit_code": (int, type(None)),
    "verdict": (dict, type(None)),
    "rows": _LIST,
    "notes": _LIST,
}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value.value if hasattr(value, "value") else value


def _masked_text(text: str, secrets: tuple[str, ...]) -> str:
    """Shell text with its secrets masked; as it is when there are none, so that it can be used again."""
    try:
        words = split_words(text)
    except ConfigurationError:
        return mask_argv((text,), secrets)[0]
    masked = mask_argv(words, secrets)
    return text if masked == words else " ".join(map(quote, masked))


def _redacted(value: Any, redactor: Redactor) -> Any:
    if isinstance(value, str):
        return storable(redactor.text(value))
    if isinstance(value, dict):
        return {storable(redactor.text(str(name))): _redacted(member, redactor) for name, member in value.items()}
    if isinstance(value, list):
        return [_redacted(item, redactor) for item in value]
    return value


def _invalid(source: str, pointer: str, message: str, *, found: str = "", allowed: str = "") -> ValidationError:
    told = f"{message}, allowed: {allowed}" if allowed else message
    return ValidationError(told, source=source, pointer=pointer, found=found, allowed=allowed)
