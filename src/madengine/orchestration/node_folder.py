"""What a rank leaves in its folder: its record, its evidence, and traces for the case that it dies before these.

::

    node_<rank>/
      run.json        written when the run starts and again when it ends
      before.json     the declared results file as it was when the model began, wherever it lay
      image.log       what getting the image printed
      logs/run.log    the model's own output, as it comes
      workspace/      the script's world; with slurm.shared_workspace a link to it
      evidence.json   last: whoever finds it need not look at anything else
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from madengine.core.errors import MADEngineError
from madengine.core.files import remove_tree, write_atomic
from madengine.core.redact import Redactor
from madengine.deployment.local import EVIDENCE
from madengine.deployment.order import BEFORE
from madengine.execution.runlog import recording
from madengine.execution.spec import RunSpec
from madengine.orchestration.provenance import started_record
from madengine.reporting.run_record import RunImage, RunRecord, this_machine, write_run_record
from madengine.verdict.evidence import Evidence, Outcome, Verdict
from madengine.verdict.evidence_json import to_json

IMAGE_LOG = "image.log"
MODEL = "model"  # the phase in which the model's script runs
IMAGE = "image"  # how the phase begins in which the image is made available

Say = Callable[[str], None]


class NodeObserver:
    """Watches the run of one rank (``execution.runner.Observer``): narrates, and keeps what salvage would need."""

    def __init__(self, spec: RunSpec, say: Say) -> None:
        self._spec, self._say = spec, say
        self._open = ExitStack()
        self._log: Callable[[bytes], None] | None = None
        self.current = ""

    def phase(self, name: str) -> None:
        """What begins; an empty name means that all has ended."""
        self._open.close()
        self._log, self.current = None, name
        if name == MODEL:
            with suppress(OSError, MADEngineError):  # it is for the case of a death, and no reason for one
                write_before(self._spec)
        if name:
            self._say(name)

    def output(self, data: bytes) -> None:
        """Output of a script is in its log already; that of the engine goes to a log of its own."""
        if not self.current.startswith(IMAGE):
            return
        if self._log is None:
            path, redactor = self._spec.run_dir / IMAGE_LOG, Redactor(self._spec.hidden)
            self._log = self._open.enter_context(recording(path, redactor, lambda data: None))  # noqa: ARG005
        self._log(data)

    def note(self, text: str) -> None:
        """A remark."""
        self._say(text)


def write_before(spec: RunSpec) -> None:
    """Leave the sizes (bytes) and times (nanoseconds since the epoch) of the declared results file in the workspace."""
    name = spec.results_file
    found = [] if not name or "/" in name else [spec.workspace / name, *_in_folders(spec.workspace, name)]
    files = {str(path.relative_to(spec.workspace)): _facts(path) for path in found if path.is_file()}
    document = {"run_id": spec.run_id, "results_file": name, "files": files}
    write_atomic(spec.run_dir / BEFORE, json.dumps(document, indent=1) + "\n", durable=False)


def _in_folders(workspace: Path, name: str) -> list[Path]:
    return [folder / name for folder in workspace.iterdir() if folder.is_dir()]


def _facts(path: Path) -> dict[str, int]:
    facts = path.stat()
    return {"size": facts.st_size, "mtime_ns": facts.st_mtime_ns}


def opened(spec: RunSpec, *, target: str, host: str, command: Sequence[str]) -> RunRecord:
    """Write the beginning of ``run.json``; returns it. ``host`` is the machine's name. Raises ``MADEngineError``."""
    machine = replace(this_machine(), host=host)
    record = replace(started_record(spec, machine=machine, command=command, package_git=None), target=target)
    _link_workspace(spec)
    write_run_record(spec.run_dir, record, secrets=spec.hidden, durable=False)
    return record


def closed(
    spec: RunSpec, record: RunRecord, evidence: Evidence, verdict: Verdict, *, duration: float, digest: str
) -> None:
    """Write the end of ``run.json`` and then the evidence, which is on the disk when this returns.

    A success needs no second look at the workspace. Raises ``MADEngineError``.
    """
    ended = record.finished(
        ended=datetime.now(timezone.utc),
        duration=duration,
        exit_code=evidence.nodes[0].exit_code if evidence.nodes else None,
        verdict=verdict,
        image=RunImage(spec.image.docker_image, digest),
    )
    try:
        write_run_record(spec.run_dir, ended, secrets=spec.hidden)
    finally:
        write_evidence(spec.run_dir, evidence)
    if verdict.outcome in (Outcome.SUCCESS, Outcome.SKIPPED) and not (spec.keep_workspace or spec.keep_alive):
        remove_tree(spec.workspace)
        if spec.folders.workspace is not None:
            _workspace_link(spec).unlink(missing_ok=True)


def write_evidence(folder: Path, evidence: Evidence) -> None:
    """Write ``evidence.json``, so that it is whole, and on the disk when this returns. Raises ``MADEngineError``."""
    write_atomic(folder / EVIDENCE, json.dumps(to_json(evidence), indent=1) + "\n")


def _workspace_link(spec: RunSpec) -> Path:
    return spec.run_dir / "workspace"


def _link_workspace(spec: RunSpec) -> None:
    """A workspace that lies elsewhere is found from the rank's folder all the same."""
    link = _workspace_link(spec)
    if spec.folders.workspace is None or link.is_symlink():
        return
    try:
        link.symlink_to(spec.folders.workspace)
    except OSError as error:
        raise MADEngineError(f"no link to the workspace can be made: {error.strerror}", where=str(link)) from error
