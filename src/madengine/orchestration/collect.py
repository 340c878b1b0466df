"""The story of runs that were submitted before: wait, collect, judge, record - each once, from any shell."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from madengine.core.errors import MADEngineError
from madengine.core.interruptions import Interruptions
from madengine.deployment.base import Handle, Observed, Target, Workshop, target_class
from madengine.execution.spec import RunSpec
from madengine.orchestration.flight import Flight
from madengine.orchestration.provenance import started_record
from madengine.orchestration.recorder import CommandFacts, Entry
from madengine.orchestration.recording import OnceRecorder, read_recorded
from madengine.orchestration.report import NOTHING_OBSERVED, FinishedRun, Narrator, RunReport
from madengine.orchestration.run import PATIENCE
from madengine.orchestration.runs_here import FoundRun
from madengine.reporting.perf_entry import PerfFiles, perf_files, write_entries
from madengine.reporting.run_record import RunRecord, resumed_record, this_machine
from madengine.verdict.evidence import Evidence, Verdict


def target_for(runs: Sequence[FoundRun], environ: Mapping[str, str]) -> Target:
    """The target that carries these runs; it is asked for a run by its directory alone."""
    first = runs[0]
    workshop = Workshop(
        deployment=first.manifest.deployment_config,
        inherited=environ,
        environ=environ,
        order={"directory": first.order.directory},
    )
    return target_class(first.order.target).create(workshop)


def collect_all(
    runs: Sequence[FoundRun],
    target: Target,
    recorder: CollectingRecorder,
    narrator: Narrator,
    interruptions: Interruptions,
    *,
    patience: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> RunReport:
    """Wait for the runs, at most ``patience`` seconds (None: as long as it takes), and record those that have ended.

    An interruption ends the waiting, not the runs. What goes on is left as it is.
    """
    deadline = None if patience is None else clock() + patience
    flight = Flight([run.spec for run in runs], target, recorder, narrator)
    before = []
    for number, run in enumerate(runs, start=1):
        try:
            done = read_recorded(run.run_dir)
        except MADEngineError as error:
            recorder.problems.append(str(error))
            continue
        if done is not None:
            before.append(done.as_finished(run.spec))
        else:
            recorder.resume(run)
            flight.adopt(number, run.spec, Handle(run.order.run_id, run.run_dir))
    while flight.under_way and not interruptions.count:
        left = PATIENCE if deadline is None else max(0.0, min(PATIENCE, deadline - clock()))
        flight.look(left)
        if deadline is not None and clock() >= deadline:
            break
    flight.leave()
    report = flight.report(interrupted=interruptions.count > 0)
    return replace(report, runs=_in_order(runs, (*report.runs, *before)), not_started=())


class CollectingRecorder:
    """Records each run where its command was given, into that command's files (``orchestration.report.Recorder``)."""

    def __init__(self, command: tuple[str, ...]) -> None:
        self._command = command
        self._recorders: dict[str, OnceRecorder] = {}
        self.remarks: list[str] = []
        self.problems: list[str] = []

    @property
    def all_problems(self) -> list[str]:
        """What could not be written or understood."""
        return self.problems + [problem for each in self._recorders.values() for problem in each.problems]

    @property
    def all_remarks(self) -> list[str]:
        """What else is worth a word."""
        return self.remarks + [remark for each in self._recorders.values() for remark in each.remarks]

    @property
    def perf_csv(self) -> Path | None:
        """The file that rows went to; of several the first, None when there is none."""
        return next((each.files.perf_csv for each in self._recorders.values()), None)

    def resume(self, run: FoundRun) -> None:
        """Take a run up where its command left it."""
        facts = CommandFacts(
            files=perf_files(self._folder(run), run.order.output or None),
            manifest=run.manifest,
            command=self._command,
            machine=this_machine(),
            package_git=None,
            digest_of=lambda reference: "",  # noqa: ARG005 - the nodes' own records tell
            environ={str(name): str(value) for name, value in run.order.row.items()},
        )
        record = _record(run, facts)
        recorder = OnceRecorder(replace(facts, package_git=record.package_git))
        recorder.resume(run.spec, record)
        self._recorders[run.order.run_id] = recorder

    def opened(self, spec: RunSpec) -> None:
        """Nothing: the run was opened by the command that submitted it."""

    def closed(
        self, spec: RunSpec, evidence: Evidence, verdict: Verdict, observed: Observed = NOTHING_OBSERVED
    ) -> FinishedRun:
        """Record it, once."""
        return self._recorders[spec.run_id].closed(spec, evidence, verdict, observed)

    def finish(self) -> None:
        """Write the files of this command alone, where it recorded anything."""
        entries: dict[PerfFiles, list[Entry]] = {}
        for recorder in self._recorders.values():
            entries.setdefault(recorder.files, []).extend(recorder.entries)
        for files, recorded in entries.items():
            try:
                if recorded:
                    write_entries(files, recorded)
            except MADEngineError as error:
                self.problems.append(str(error))

    def _folder(self, run: FoundRun) -> Path:
        """Where the run was submitted, or here when that folder is gone."""
        folder = Path(run.order.directory)
        if run.order.directory and folder.is_dir():
            return folder
        here = Path.cwd()
        self.remarks.append(f"{folder}, where {run.order.run_id} was submitted, is gone: its rows go to {here}")
        return here


def _record(run: FoundRun, facts: CommandFacts) -> RunRecord:
    """The run's own record as its command began it, or one that begins now when that cannot be read."""
    try:
        return resumed_record(run.run_dir)
    except MADEngineError:
        return started_record(run.spec, machine=facts.machine, command=facts.command, package_git=None)


def _in_order(runs: Sequence[FoundRun], finished: Sequence[FinishedRun]) -> tuple[FinishedRun, ...]:
    by_id: dict[str, Any] = {run.spec.run_id: run for run in finished}
    return tuple(by_id[run.spec.run_id] for run in runs if run.spec.run_id in by_id)
