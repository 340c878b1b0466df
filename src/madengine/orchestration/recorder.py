"""Keeping what happened: rows of perf.csv and its family, the record of each run, and what may be thrown away.

A run's rows are written the moment it is judged. What could not be written is said, and the rows lie in the run
directory all the same.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from madengine.config.manifest import BuildManifest
from madengine.core.errors import MADEngineError
from madengine.core.files import remove_tree, write_atomic
from madengine.core.redact import Redactor
from madengine.deployment.base import Observed
from madengine.execution.spec import RunSpec
from madengine.orchestration.effective import for_record
from madengine.orchestration.facts import run_facts
from madengine.orchestration.provenance import run_gpus, started_record
from madengine.orchestration.report import NOTHING_OBSERVED, FinishedRun
from madengine.reporting.git_state import GitState, git_state
from madengine.reporting.perf_configs import load_configs
from madengine.reporting.perf_entry import PerfFiles, append_cumulative, write_entries
from madengine.reporting.perf_rows import ResultRow, result_rows
from madengine.reporting.run_record import Machine, RunImage, RunRecord, write_run_record
from madengine.verdict.evidence import Evidence, Outcome, Verdict

MANIFEST = "manifest.json"
ROWS = "rows.json"

Entry = tuple[Sequence[ResultRow], Any]
"""The rows of one run, and the configuration that its args name, for the files of a command alone."""


@dataclass(frozen=True)
class CommandFacts:
    """What all runs of one command share.

    ``manifest`` is the effective one that the runs come from, ``command`` madengine's command line as it was typed,
    ``package_git`` the package's commit, None outside a repository. ``digest_of`` tells an image's digest, empty when
    it is not known. ``environ`` is the environment with the env file on top, see ``orchestration.plan``.
    """

    files: PerfFiles
    manifest: BuildManifest
    command: tuple[str, ...] = field(repr=False)
    machine: Machine
    package_git: GitState | None
    digest_of: Callable[[str], str]
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)


class FileRecorder:
    """Writes into the run directories and into the directory where the command was given (``orchestration.run``).

    ``problems`` are sentences on results that could not be written, ``remarks`` on what does not touch them.
    """

    def __init__(self, facts: CommandFacts) -> None:
        self._facts = facts
        self._started: dict[str, float] = {}
        self._records: dict[str, RunRecord] = {}
        self._entries: list[Entry] = []
        self.problems: list[str] = []
        self.remarks: list[str] = []

    @property
    def files(self) -> PerfFiles:
        """Where the numbers go."""
        return self._facts.files

    @property
    def entries(self) -> Sequence[Entry]:
        """What this command has recorded so far."""
        return self._entries

    def opened(self, spec: RunSpec) -> None:
        """Make the run directory with the manifest and the beginning of ``run.json``."""
        self._started[spec.run_id] = time.monotonic()
        record = started_record(
            spec,
            machine=self._facts.machine,
            command=self._facts.command,
            package_git=self._facts.package_git,
        )
        self._records[spec.run_id] = record
        document = for_record(self._facts.manifest, spec.key, spec.secrets)

        def write() -> None:
            spec.run_dir.mkdir(parents=True, exist_ok=True)
            write_atomic(spec.run_dir / MANIFEST, json.dumps(document, indent=1) + "\n", durable=False)
            write_run_record(spec.run_dir, record, secrets=spec.hidden, durable=False)

        self._attempt(write)

    def closed(
        self, spec: RunSpec, evidence: Evidence, verdict: Verdict, observed: Observed = NOTHING_OBSERVED
    ) -> FinishedRun:
        """Write the rows and the end of ``run.json``; remove the workspace of a run that needs no second look.

        What a run elsewhere took is ``observed``: how long it waited for its nodes is no part of it, and one of which
        nothing is known took no time.
        """
        there = observed.duration or 0.0
        duration = there if spec.place.elsewhere else time.monotonic() - self._started[spec.run_id]
        facts = run_facts(
            spec,
            duration=duration,
            git_commit=self._commit(spec),
            machine=self._facts.machine.host,
            environ=self._facts.environ,
            observed=observed,
        )
        rows = tuple(result_rows(facts, evidence, verdict, redact=Redactor(spec.hidden).text))
        saved = self._keep_rows(spec, rows)
        values = tuple(row.values for row in rows)
        finished = FinishedRun(spec, evidence, verdict, values, duration, saved, observed, observed.job)
        self._close_record(finished)
        self._clear_workspace(spec, verdict)
        return finished

    def _commit(self, spec: RunSpec) -> str:
        """The commit of the repository that the card's ``url`` was cloned from, else the package's."""
        clones = [entry.parent for entry in spec.workspace.glob("*/.git")] if spec.card.text("url") else []
        git = git_state(clones[0]) if clones else self._facts.package_git
        return git.commit if git else ""

    def _close_record(self, run: FinishedRun) -> None:
        spec = run.spec
        image, observed, elsewhere = spec.image.docker_image, run.observed, spec.place.elsewhere
        own_code = run.evidence.nodes[0].exit_code if run.evidence.nodes else None
        record = self._records[spec.run_id].finished(
            ended=datetime.now(timezone.utc),
            duration=run.duration,
            exit_code=observed.exit_code if elsewhere else own_code,
            verdict=run.verdict,
            rows=run.rows,
            image=RunImage(image, observed.image_digest if elsewhere else self._facts.digest_of(image)),
        )
        if observed.gpus is not None:
            record = replace(record, gpus=run_gpus(observed.gpus))
        self._attempt(lambda: write_run_record(spec.run_dir, record, secrets=spec.hidden))

    def finish(self, *, unwanted: Sequence[Path] = ()) -> None:
        """Write the files of this command alone; those of them that are ``unwanted`` are removed."""
        self._attempt(lambda: write_entries(self._facts.files, self._entries))
        for path in unwanted:
            self._attempt(functools.partial(path.unlink, missing_ok=True))

    def _keep_rows(self, spec: RunSpec, rows: tuple[ResultRow, ...]) -> bool:
        """Append the rows; whether they are in perf.csv."""
        redact = Redactor(spec.hidden).text
        configs = load_configs(spec.script.args, spec.script.folder, spec.package, redact=redact)
        if configs.note:
            self.remarks.append(f"{spec.card.name}: {redact(configs.note)}")
        self._entries.append((rows, configs.value))
        try:
            self._append(spec, rows, configs.value)
        except MADEngineError as error:
            self.problems.append(f"{spec.card.name} has no rows in {self._facts.files.perf_csv.name}: {error}")
            self._save_aside(spec, rows)
            return False
        return True

    def _append(self, spec: RunSpec, rows: Sequence[ResultRow], configs: Any) -> None:  # noqa: ARG002 - see recording
        """Append the rows to the cumulative files. Raises ``MADEngineError`` when perf.csv cannot be written."""
        self.problems += append_cumulative(self._facts.files, rows, configs)

    def _save_aside(self, spec: RunSpec, rows: tuple[ResultRow, ...]) -> None:
        text = json.dumps([row.values for row in rows], indent=1) + "\n"
        if self._attempt(lambda: write_atomic(spec.run_dir / ROWS, text)):
            self.problems.append(f"the rows of {spec.card.name} are in {spec.run_dir / ROWS}")

    def _attempt(self, write: Callable[[], object]) -> bool:
        """Do it, or say why it could not be done; whether it was."""
        try:
            write()
        except (MADEngineError, OSError) as error:
            self.problems.append(str(error))
            return False
        return True

    def _clear_workspace(self, spec: RunSpec, verdict: Verdict) -> None:
        """A success needs no second look; of anything else the workspace is part of the explanation."""
        if verdict.outcome not in (Outcome.SUCCESS, Outcome.SKIPPED) or spec.keep_workspace or spec.keep_alive:
            return
        left = [path for workspace in _workspaces(spec) for path in remove_tree(workspace)]
        if left:
            self.remarks.append(
                f"{spec.card.name}: {len(left)} files of the workspace could not be removed, such as {left[0]}"
            )


def _workspaces(spec: RunSpec) -> list[Path]:
    """The run's workspace, or those of its nodes, with the folders elsewhere that they are links to."""
    if not spec.place.elsewhere:
        return [spec.workspace]
    links = sorted(spec.run_dir.glob("node_*/workspace"))
    return [*(link.resolve() for link in links if link.is_symlink()), *links]
