"""What a run left to be read: its log, its results file, its artefacts - gathered into evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from madengine.core.redact import Redactor
from madengine.execution import artefacts
from madengine.execution.spec import RunSpec
from madengine.execution.workspace import Workspace
from madengine.reporting.freshness import Snapshot
from madengine.reporting.log_scan import LogReading, scan_log
from madengine.reporting.no_metric import Expected, missing_metric
from madengine.reporting.results import ResultsReading, read_results
from madengine.verdict.evidence import ContractProblem, Evidence, Interruption, NodeReport

OUTPUT_VARIABLE = "MAD_OUTPUT_CSV"
SHOWN = 5  # names in a sentence


class Readings:
    """The readings of one run. ``given`` are the variables that tell its script where to put results.

    What is kept of the workspace passes ``redactor``; the evidence does not: whoever takes it sees to that.
    """

    def __init__(self, spec: RunSpec, workspace: Workspace, given: Mapping[str, str], redactor: Redactor) -> None:
        self._spec, self.given, self._redactor = spec, given, redactor
        self._folders = (workspace.root, workspace.run_directory)
        self._with_results = (*self._folders, *spec.folders.results)
        self._snapshot: Snapshot | None = None
        # Taken now and not when the model begins: what pre-scripts write (--sys-env-details) is an artefact, too.
        self._before = artefacts.inventory(self._folders)
        self._log = LogReading()
        self._results: ResultsReading | None = None
        self._problems: tuple[ContractProblem, ...] = ()
        self._notes: list[str] = []

    def begin(self) -> None:
        """The model's script is about to start: what is there now is no result of it."""
        self._snapshot = Snapshot.take(self._with_results, self._spec.results_file)

    def read_log(self) -> None:
        """Look for metric lines and error patterns, when the script ran at all."""
        if self._snapshot is not None:
            self._log = scan_log(self._spec.log, rules=self._spec.log_scan)

    def read_files(self) -> None:
        """Read the declared results file and keep the artefacts."""
        spec = self._spec
        if self._snapshot is None:
            return
        try:
            self._results = read_results(
                spec.results_file,
                self._with_results,
                self._snapshot,
                card_name=spec.card.name,
                given=self.given,
                rank=spec.place.rank,
            )
        finally:
            self._snapshot.release()
        if not self._results.measurements:
            expected = Expected(spec.results_file, self._with_results, spec.card.name, self.given)
            self._problems = missing_metric(self._log, expected, log_path=spec.log)
        kept, self._notes = artefacts.collect(self._folders, self._before, spec.artefacts, self._redactor)
        if kept:
            names = ", ".join(path.name for path in kept[:SHOWN]) + (", ..." if len(kept) > SHOWN else "")
            self._notes.append(f"kept in {spec.artefacts}: {names}")

    def evidence(
        self, node: NodeReport, interruption: Interruption | None, troubles: Sequence[str], notes: Sequence[str]
    ) -> Evidence:
        """All that was read, with what is known of the run itself."""
        results = self._results or ResultsReading()
        found = self._log.measurement
        stated = (replace(found, rank=self._spec.place.rank),) if found is not None else ()
        return Evidence(
            run_id=self._spec.run_id,
            measurements=results.measurements or stated,
            empty_rows=results.empty_rows,
            expected_results=self._spec.expected_results,
            nodes=(node,),
            log_findings=self._log.findings,
            contract_problems=(*results.problems, *self._problems),
            interruption=interruption,
            troubles=tuple(troubles),
            notes=(*notes, *self._log.notes, *results.notes, *self._notes),
        )
