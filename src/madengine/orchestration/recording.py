"""Recording a run exactly once, whoever does it and wherever they are killed.

A run elsewhere can be collected by the command that submitted it and by any later one, also by two at a time. So a lock
in its run directory lets one at a time record it, and ``recorded.json`` says that it is done. Before rows are appended,
``appending.json`` says which ones and how long perf.csv is: whoever finds it without ``recorded.json`` looks whether
those rows stand behind that length, and appends them only when they do not.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from madengine.core.documents import load_json
from madengine.core.errors import MADEngineError
from madengine.core.files import locked, write_atomic
from madengine.core.redact import Redactor
from madengine.core.redact_values import without_secrets_in
from madengine.deployment.base import Observed
from madengine.execution.spec import RunSpec
from madengine.orchestration.recorder import FileRecorder
from madengine.orchestration.report import NOTHING_OBSERVED, FinishedRun
from madengine.reporting.csv_text import storable
from madengine.reporting.perf_rows import ResultRow
from madengine.reporting.run_record import RunRecord
from madengine.verdict.evidence import Evidence, Verdict
from madengine.verdict.evidence_json import from_json, to_json
from madengine.verdict.judge import judge

RECORDED = "recorded.json"
APPENDING = "appending.json"
_WHAT = "record of a recorded run"


@dataclass(frozen=True)
class Recorded:
    """A run that is recorded: what was seen of it, its rows, and what it took in seconds."""

    evidence: Evidence
    rows: tuple[dict[str, str], ...]
    duration: float
    saved: bool
    job: str = ""

    def as_finished(self, spec: RunSpec) -> FinishedRun:
        """The run as the command that recorded it showed it."""
        verdict = judge(self.evidence)
        return FinishedRun(
            spec, self.evidence, verdict, self.rows, self.duration, saved=False, job=self.job, before=True
        )


class OnceRecorder(FileRecorder):
    """A recorder (``orchestration.recorder``) that adds nothing for a run elsewhere that is recorded already."""

    _closing: Evidence | None = None

    def resume(self, spec: RunSpec, record: RunRecord) -> None:
        """Take up a run that another command began; ``record`` is what it wrote of the run then."""
        self._records[spec.run_id] = record

    def closed(
        self, spec: RunSpec, evidence: Evidence, verdict: Verdict, observed: Observed = NOTHING_OBSERVED
    ) -> FinishedRun:
        """Record the run unless that has been done; then what was recorded is what it came to."""
        if not spec.place.elsewhere:
            return super().closed(spec, evidence, verdict, observed)
        try:
            with locked(spec.run_dir / RECORDED):
                return self._closed_once(spec, evidence, verdict, observed)
        except MADEngineError as error:
            self.problems.append(f"{spec.card.name}: the run could not be recorded once and for all: {error}")
            return super().closed(spec, evidence, verdict, observed)

    def _closed_once(self, spec: RunSpec, evidence: Evidence, verdict: Verdict, observed: Observed) -> FinishedRun:
        done = read_recorded(spec.run_dir)
        if done is not None:
            return done.as_finished(spec)
        evidence = without_secrets_in(evidence, Redactor(spec.hidden))
        appended = _evidence_of_appended_rows(spec.run_dir, self._facts.files.perf_csv)
        if appended is not None:  # what perf.csv holds is what the run came to
            evidence, verdict = appended, judge(appended)
        self._closing = evidence
        finished = super().closed(spec, evidence, verdict, observed)
        if finished.saved:
            self._attempt(lambda: _write_recorded(finished))
        return finished

    def _append(self, spec: RunSpec, rows: Sequence[ResultRow], configs: Any) -> None:
        """Append the rows, unless a process that was killed before it could say so has appended them."""
        if not spec.place.elsewhere:
            return super()._append(spec, rows, configs)
        perf_csv = self._facts.files.perf_csv
        values = [row.values for row in rows]
        if _evidence_of_appended_rows(spec.run_dir, perf_csv) is not None:
            self.remarks.append(f"{spec.card.name}: its rows were in {perf_csv.name} already")
            return None
        told = to_json(self._closing) if self._closing is not None else None
        intent = {"size": _size(perf_csv), "header": _header(perf_csv), "rows": values, "evidence": told}
        # A run directory on a full disk keeps no row from perf.csv: that one could be doubled is the lesser evil.
        self._attempt(lambda: write_atomic(spec.run_dir / APPENDING, json.dumps(intent, indent=1) + "\n"))
        return super()._append(spec, rows, configs)


def read_recorded(run_dir: Path) -> Recorded | None:
    """What was recorded of a run, None when that has not been done. Raises ``MADEngineError`` for a broken file."""
    path = run_dir / RECORDED
    if not os.path.lexists(path):
        return None
    document = load_json(path, what=_WHAT)
    try:
        return Recorded(
            from_json(document["evidence"], source=str(path)),
            tuple({str(name): str(value) for name, value in row.items()} for row in document["rows"]),
            float(document["duration"]),
            True,
            str(document["job"]),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise MADEngineError(f"the {_WHAT} cannot be understood: {error!r}", where=str(path)) from error


def _write_recorded(run: FinishedRun) -> None:
    document = {
        "recorded": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "by": f"process {os.getpid()} on {os.uname().nodename}",
        "outcome": run.verdict.outcome.value,
        "job": run.job,
        "duration": run.duration,
        "rows": list(run.rows),
        "evidence": to_json(run.evidence),
    }
    write_atomic(run.spec.run_dir / RECORDED, json.dumps(document, indent=1) + "\n")


def _evidence_of_appended_rows(run_dir: Path, perf_csv: Path) -> Evidence | None:
    """The evidence that rows come from which somebody was about to append, when they are in perf.csv."""
    path = run_dir / APPENDING
    try:
        intent = load_json(path, what="note of rows to be appended")
        if _stand_there(intent["rows"], int(intent["size"]), str(intent["header"]), perf_csv):
            return from_json(intent["evidence"], source=str(path))
    except (MADEngineError, KeyError, TypeError, ValueError, AttributeError, OSError, csv.Error):
        return None
    return None


def _stand_there(rows: Sequence[Mapping[str, Any]], size: int, header: str, perf_csv: Path) -> bool:
    if not rows or not perf_csv.is_file():
        return False
    # A header that got more columns moved all that stands behind it, and a file that was cut begins anew.
    unmoved = header and header == _header(perf_csv) and _size(perf_csv) >= size
    found = _rows_behind(perf_csv, size if unmoved else 0)
    return all(any(_is_row(row, there) for there in found) for row in rows)


def _rows_behind(perf_csv: Path, start: int) -> list[dict[str, str]]:
    with perf_csv.open("rb") as file:
        names = next(csv.reader([file.readline().decode("utf-8-sig", "replace")]), [])
        file.seek(max(start, file.tell()))
        text = io.StringIO(file.read().decode("utf-8", "replace"), newline="")  # other line ends are data
    return [dict(zip(names, cells, strict=False)) for cells in csv.reader(text)]


def _is_row(row: Mapping[str, Any], there: Mapping[str, str]) -> bool:
    return all(there.get(storable(name), "") == storable(str(value)) for name, value in row.items())


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _header(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.readline().decode("utf-8", "replace").strip()
    except OSError:
        return ""
