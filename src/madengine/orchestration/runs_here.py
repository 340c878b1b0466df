"""Runs that were submitted before: where their directories are, and what they were."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from madengine.config.manifest import BuildManifest
from madengine.config.manifest_io import read_manifest
from madengine.core.documents import load_json
from madengine.core.errors import ConfigurationError, MADEngineError
from madengine.deployment.order import FILE_NAME, JobOrder, read_order
from madengine.execution.spec import GpuGrant, Place, RunSpec, ScriptPlan
from madengine.orchestration.recorder import MANIFEST
from madengine.orchestration.recording import RECORDED
from madengine.orchestration.scripts import script_plan

FOLDERS = ("runs", "slurm_results")
JOB_RECORD = "submitted.json"
JOB_ID = "job_id"
SHOWN = 5


@dataclass(frozen=True)
class FoundRun:
    """A run directory with its order and its manifest; ``spec`` is the run without the values of its variables."""

    run_dir: Path
    order: JobOrder
    manifest: BuildManifest
    spec: RunSpec

    @property
    def is_recorded(self) -> bool:
        """Whether its rows are written."""
        return (self.run_dir / RECORDED).exists()


def named_runs(words: Sequence[str], folder: Path) -> list[FoundRun]:
    """The runs that a person names: by run id, its beginning or its end, by job id, or by directory; each once.

    Raises ``ConfigurationError`` for a name that none or several have.
    """
    here = list(run_directories(folder))
    found = dict.fromkeys(_named(word, here) for word in words)
    return [read_run(run_dir) for run_dir in found]


def open_runs(folder: Path, note: Callable[[str], object] = str) -> list[FoundRun]:
    """All runs of ``folder`` that are not recorded, oldest first.

    A directory that cannot be understood is left out, and ``note`` is told why.
    """
    found = []
    for run_dir in run_directories(folder):
        if (run_dir / RECORDED).exists():
            continue
        try:
            found.append(read_run(run_dir))
        except MADEngineError as error:
            note(f"left out: {error}")
    return found


def run_directories(folder: Path) -> Iterator[Path]:
    """The directories of runs elsewhere that commands in ``folder`` have made, oldest first, each once."""
    found: dict[Path, None] = {}
    for name in FOLDERS:
        parent = folder / name
        for entry in sorted(parent.iterdir()) if parent.is_dir() else ():
            if (entry / FILE_NAME).is_file():
                found[entry.resolve()] = None
    yield from sorted(found, key=lambda path: path.name)


def read_run(run_dir: Path) -> FoundRun:
    """A run directory as the run that it is. Raises ``MADEngineError`` when it is none."""
    order = read_order(run_dir)
    manifest, _ = read_manifest(run_dir / MANIFEST)
    if order.key not in manifest.models:
        raise ConfigurationError(f"the manifest holds no {order.key!r}", where=str(run_dir / MANIFEST))
    return FoundRun(run_dir, order, manifest, _spec(run_dir, order, manifest))


def _named(word: str, here: Sequence[Path]) -> Path:
    path = Path(word)
    if os.sep in word or (path / FILE_NAME).is_file():
        if not (path / FILE_NAME).is_file():
            raise ConfigurationError(
                f"this is no directory of a run on other machines: {FILE_NAME} is not there", where=word
            )
        return path.resolve()
    exact = [run_dir for run_dir in here if run_dir.name == word or _job_of(run_dir) == word]
    alike = [run_dir for run_dir in here if run_dir.name.startswith(word) or run_dir.name.endswith(word)]
    found = exact or alike
    if len(found) == 1:
        return found[0]
    names = ", ".join(run_dir.name for run_dir in (found or here)[-SHOWN:])
    if found:
        raise ConfigurationError(f"{len(found)} runs are meant by {word!r}", hint=f"say which: {names}")
    raise ConfigurationError(
        f"there is no run {word!r} here",
        hint=f"runs here: {names}" if names else "go to the folder where it was submitted, or name its directory",
    )


def _job_of(run_dir: Path) -> str:
    try:
        document = load_json(run_dir / JOB_RECORD, what="record of a submission")
    except MADEngineError:
        return _own_word(run_dir)
    return str(document.get("job_id") or "") if isinstance(document, dict) else ""


def _own_word(run_dir: Path) -> str:
    """The id that the job itself left, when its submitter did not live to write it down."""
    try:
        return (run_dir / JOB_ID).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _spec(run_dir: Path, order: JobOrder, manifest: BuildManifest) -> RunSpec:
    card = manifest.models[order.key]
    package = Path(order.package)
    options: Any = order.options
    return RunSpec(
        run_id=order.run_id,
        key=order.key,
        card=card,
        image=manifest.images[order.key],
        package=package,
        run_dir=run_dir,
        engine=order.engine,
        script=_script(order, manifest),
        gpus=GpuGrant(),
        timeout=order.timeout,
        results_file=order.results_file,
        expected_results=order.expected_results,
        launcher=order.launcher,
        place=Place(
            deployment=order.target,
            nnodes=order.nnodes,
            gpus_per_node=order.gpus_per_node or None,
            elsewhere=True,
        ),
        keep_alive=bool(options.get("keep_alive")),
        keep_workspace=bool(options.get("keep_workspace")),
    )


def _script(order: JobOrder, manifest: BuildManifest) -> ScriptPlan:
    """The script as it was planned; a package that has gone since takes nothing from the run."""
    card, package = manifest.models[order.key], Path(order.package)
    try:
        return script_plan(card, package)
    except MADEngineError:
        return ScriptPlan(package, card.text("scripts"), args=card.text("args"))
