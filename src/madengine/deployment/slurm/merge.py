"""From what every node left to the evidence of the whole run. Pure.

Numbers of several nodes: a results file counts from the lowest rank that measured in one; metric lines of several ranks
become one number by their kind (``reporting.aggregate``). Nothing is added to what nodes reported, and nothing that any
of them measured is dropped without a word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from madengine.deployment.order import JobOrder
from madengine.deployment.slurm.nodes import NodeReading
from madengine.reporting.aggregate import aggregate
from madengine.verdict.evidence import (
    ContractProblem,
    EmptyRow,
    Evidence,
    Interruption,
    InterruptionKind,
    LogFinding,
    Measurement,
    SchedulerReport,
)


def merge(
    order: JobOrder,
    readings: Sequence[NodeReading],
    *,
    scheduler: SchedulerReport | None,
    interruption: Interruption | None,
    notes: Sequence[str] = (),
) -> Evidence:
    """The evidence of a run. ``interruption`` is our own; ``notes`` are remarks of the collector."""
    nodes = sorted(readings, key=lambda reading: reading.rank)
    seen = [reading for reading in nodes if reading.evidence is not None]
    results = _Results(order, seen)
    return Evidence(
        order.run_id,
        skipped=_skipped(nodes),
        measurements=results.measurements,
        empty_rows=results.empty_rows,
        expected_results=order.expected_results,
        nodes=tuple(reading.report for reading in nodes),
        scheduler=scheduler,
        log_findings=tuple(finding for reading in seen for finding in _findings(reading)),
        contract_problems=results.problems,
        interruption=interruption or _timed_out(seen),
        troubles=tuple(_named(order, seen, lambda evidence: evidence.troubles)),
        notes=(
            *notes,
            *results.notes,
            *_own_notes(order, nodes),
            *_named(order, seen, lambda evidence: evidence.notes),
        ),
    )


class _Results:
    """The numbers of a run, and where they come from."""

    def __init__(self, order: JobOrder, seen: Sequence[NodeReading]) -> None:
        self._order, self._seen = order, seen
        self._files = [reading for reading in seen if any(map(self._is_row, _measured(reading)))]
        self._lines = [reading for reading in seen if _measured(reading) and reading not in self._files]
        self.notes: tuple[str, ...] = ()
        self.measurements = self._chosen()
        self.empty_rows: tuple[EmptyRow, ...] = _rows_of(self._telling())
        self.problems: tuple[ContractProblem, ...] = _problems_of(self._telling())

    def _chosen(self) -> tuple[Measurement, ...]:
        if self._files:
            return self._rows()
        if not self._lines:
            return ()
        together = aggregate([replace(item, rank=node.rank) for node in self._lines for item in _measured(node)])
        self.notes = together.warnings
        if len(self._lines) > 1:
            self.notes += (f"several nodes measured: {_names(self._lines)}",)
        return together.measurements

    def _rows(self) -> tuple[Measurement, ...]:
        first, *others = self._files
        others += self._lines
        if others:
            self.notes = (f"the results file of {first.name} counts; not counted are the numbers of {_names(others)}",)
        return tuple(replace(item, rank=first.rank) for item in _measured(first))

    def _telling(self) -> NodeReading | None:
        """The node whose word on the results file counts: the one that measured, else one that ended well."""
        clean = [reading for reading in self._seen if reading.report.clean]
        if self._files or self._lines:
            return (self._files or self._lines)[0]
        with_rows = [reading for reading in self._seen if _rows_of(reading)]
        return next(iter([*with_rows, *clean]), None)

    def _is_row(self, item: Measurement) -> bool:
        return bool(self._order.results_file) and item.source.startswith(f"{self._order.results_file}:")


def _measured(reading: NodeReading) -> tuple[Measurement, ...]:
    return reading.evidence.measurements if reading.evidence is not None else ()


def _rows_of(reading: NodeReading | None) -> tuple[EmptyRow, ...]:
    if reading is None or reading.evidence is None:
        return ()
    return tuple(replace(row, rank=reading.rank) for row in reading.evidence.empty_rows)


def _problems_of(reading: NodeReading | None) -> tuple[ContractProblem, ...]:
    return reading.evidence.contract_problems if reading is not None and reading.evidence is not None else ()


def _skipped(nodes: Sequence[NodeReading]) -> str | None:
    """The reason when every node skipped the run on purpose."""
    reasons = [reading.evidence.skipped if reading.evidence is not None else None for reading in nodes]
    return reasons[0] if reasons and all(reason is not None for reason in reasons) else None


def _timed_out(seen: Sequence[NodeReading]) -> Interruption | None:
    """The time limit of madengine's own that ended a node's script."""
    for reading in seen:
        found = reading.evidence.interruption if reading.evidence is not None else None
        if found is not None and found.kind is InterruptionKind.TIMEOUT:
            return found
    return None


def _findings(reading: NodeReading) -> Iterable[LogFinding]:
    assert reading.evidence is not None
    for finding in reading.evidence.log_findings:
        yield replace(finding, file=f"node_{reading.rank}/logs/{finding.file}")


def _own_notes(order: JobOrder, nodes: Sequence[NodeReading]) -> list[str]:
    return [_with_name(order, reading, note) for reading in nodes for note in reading.notes]


def _named(order: JobOrder, seen: Sequence[NodeReading], remarks_of: Callable[[Evidence], Sequence[str]]) -> list[str]:
    """Remarks of nodes, each with the node's name; what all of them say is said once."""
    remarks = [(reading, remark) for reading in seen if reading.evidence for remark in remarks_of(reading.evidence)]
    said_by_all = {remark for _, remark in remarks if sum(other == remark for _, other in remarks) >= max(len(seen), 2)}
    once = dict.fromkeys(remark for _, remark in remarks if remark in said_by_all)
    return [*once, *(_with_name(order, reading, remark) for reading, remark in remarks if remark not in said_by_all)]


def _with_name(order: JobOrder, reading: NodeReading, remark: str) -> str:
    return remark if order.reporters == 1 else f"{reading.name}: {remark}"


def _names(readings: Sequence[NodeReading]) -> str:
    return ", ".join(reading.name for reading in readings)
