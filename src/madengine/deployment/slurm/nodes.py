"""What each node left in its folder: its marker, its evidence, or at least its log."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from madengine.core.documents import load_json
from madengine.core.errors import MADEngineError
from madengine.deployment.base import Observed
from madengine.deployment.order import JobOrder
from madengine.deployment.slurm.layout import EVIDENCE, node_dir
from madengine.deployment.slurm.markers import Marker, read_marker
from madengine.deployment.slurm.salvage import salvaged
from madengine.execution.spec import GpuGrant
from madengine.verdict.evidence import Evidence, InterruptionKind, NodeReport
from madengine.verdict.evidence_json import from_json

NO_METRIC = 5
FAILED = 1
_TAIL = 4096  # bytes of a node's standard error that are looked at
_FOUND_NOTHING = (126, 127)  # codes with which madengine itself did not start


@dataclass(frozen=True)
class NodeReading:
    """One rank: what it says of itself, and the evidence that it left, None when it left none."""

    rank: int
    report: NodeReport
    evidence: Evidence | None = None
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The node as people know it."""
        return f"node {self.rank} ({self.report.host})" if self.report.host else f"node {self.rank}"


def read_nodes(run_dir: Path, order: JobOrder, *, attempt: int | None = None) -> tuple[NodeReading, ...]:
    """Every rank that is expected to report. Never raises for what nodes left."""
    return tuple(_read_node(run_dir, order, rank, attempt) for rank in range(order.reporters))


def observed(run_dir: Path, order: JobOrder) -> Observed:
    """What the nodes know of themselves: the first record for GPUs and image, the longest run for the duration."""
    from madengine.reporting.run_record import read_run_record

    records = []
    for rank in range(order.reporters):
        try:
            records.append(read_run_record(node_dir(run_dir, rank)))
        except MADEngineError:
            continue
    if not records:
        return Observed()
    durations = [record["duration"] for record in records if record["duration"] is not None]
    hosts = [str(record["machine"].get("host") or "") for record in records]
    return Observed(
        hosts=tuple(_hosts(run_dir, order)) or tuple(host for host in hosts if host),
        duration=max(durations, default=None),
        gpus=_gpus(records[0]["gpus"]),
        image_digest=str(records[0]["image"].get("digest") or ""),
        exit_code=records[0]["exit_code"],
    )


def _read_node(run_dir: Path, order: JobOrder, rank: int, attempt: int | None) -> NodeReading:
    folder = node_dir(run_dir, rank)
    marker = read_marker(str(folder), order.run_id, attempt)
    evidence, trouble = _evidence(folder, order.run_id)
    report = _report(rank, marker, evidence)
    notes: tuple[str, ...] = (trouble,) if trouble else ()
    if evidence is None and (folder / "logs").is_dir():
        evidence, said = salvaged(folder, order, rank)
        notes += said
    if report.exit_code and not report.detail:
        report = replace(report, detail=_last_words(folder, report, evidence))
    return NodeReading(rank, report, evidence, notes)


def _evidence(folder: Path, run_id: str) -> tuple[Evidence | None, str]:
    """The node's evidence, or what is wrong with it; silence when there is none."""
    path = folder / EVIDENCE
    if not os.path.lexists(path):
        return None, ""
    try:
        evidence = from_json(load_json(path, what="evidence"), source=str(path))
    except MADEngineError as error:
        return None, f"the node's evidence cannot be read: {error}"
    if evidence.run_id != run_id:
        return None, f"{path} is of another run, {evidence.run_id}"
    return evidence, ""


def _report(rank: int, marker: Marker | str, evidence: Evidence | None) -> NodeReport:
    own = evidence.nodes[0] if evidence is not None and evidence.nodes else NodeReport(rank)
    refusal = evidence.interruption if evidence is not None else None
    detail = own.detail
    if refusal is not None and refusal.kind is InterruptionKind.REFUSED:
        detail = refusal.detail
    if isinstance(marker, str):
        return NodeReport(rank, own.host, None, marker, own.out_of_memory)
    code, script = _code(marker.exit_code, own)
    return NodeReport(rank, marker.host or own.host, code, detail, own.out_of_memory, script)


def _code(told: int, own: NodeReport) -> tuple[int, bool]:
    """The exit code that counts, and whether it is the script's own.

    A script's 5 stands as 1 in the marker, where 5 means "measured nothing"; and a marker that says 0 while the script
    is known to have failed is not believed.
    """
    scripts = own.exit_code
    if scripts == NO_METRIC and told == FAILED:
        return NO_METRIC, True
    if told == 0 and scripts not in (None, 0):
        assert scripts is not None
        return scripts, True
    return told, False


def _last_words(folder: Path, report: NodeReport, evidence: Evidence | None) -> str:
    """The last line on the node's standard error, where nothing else explains its code."""
    if report.clean or (evidence is not None and report.exit_code not in _FOUND_NOTHING):
        return ""
    try:
        with (folder / "stderr").open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL))
            lines = file.read(_TAIL).decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _hosts(run_dir: Path, order: JobOrder) -> Iterator[str]:
    for rank in range(order.reporters):
        marker = read_marker(str(node_dir(run_dir, rank)), order.run_id)
        if isinstance(marker, Marker) and marker.host:
            yield marker.host


def _gpus(facts: dict[str, object]) -> GpuGrant:
    indices = facts.get("indices")
    total = facts.get("total")
    return GpuGrant(
        vendor=str(facts.get("vendor") or "CPU"),
        indices=tuple(int(index) for index in indices) if isinstance(indices, list) else (),
        total=total if isinstance(total, int) else 0,
        architecture=str(facts.get("architecture") or ""),
        product=str(facts.get("product") or ""),
        hip_version=str(facts.get("driver") or ""),
    )
