"""Reading the results file that a card declared: where it lies, what of it is new, and what its rows say."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from madengine.reporting.freshness import Freshness, Snapshot, is_bare_name
from madengine.reporting.no_metric import Expected, file_problem, name_problem
from madengine.reporting.plain_file import NotReadableError
from madengine.reporting.result_csv import ResultRow, header_rejection, read_results_rows, why_nothing_measured
from madengine.verdict.evidence import ContractProblem, EmptyRow, Measurement

ROW_LIMIT = 10_000  # rows of one file that become results; each costs some 9 KB in the files of perf.csv's family
_SHOWN_SIBLINGS = 8


@dataclass(frozen=True)
class ResultsReading:
    """What the declared results file gave.

    ``path`` is the file that was read, None when there was none to read. ``problems`` say what the contract lacks and
    how to mend it; ``notes`` are remarks that change nothing.
    """

    measurements: tuple[Measurement, ...] = ()
    empty_rows: tuple[EmptyRow, ...] = ()
    problems: tuple[ContractProblem, ...] = ()
    notes: tuple[str, ...] = ()
    path: Path | None = None


@dataclass(frozen=True)
class _Look:
    """What was found at one place: new rows, or why there is nothing; ``cut`` says why rows may be missing."""

    path: Path
    rows: tuple[ResultRow, ...] = ()
    why: str = ""
    there: bool = True
    fresh: Freshness = field(default_factory=Freshness)
    cut: str = ""

    @property
    def measures(self) -> bool:
        return any(row.value is not None for row in self.rows)


def read_results(
    name: str,
    folders: Sequence[Path],
    snapshot: Snapshot,
    *,
    card_name: str,
    given: Mapping[str, str] | None = None,
    rank: int = 0,
) -> ResultsReading:
    """Read the declared file ``name`` from the first of ``folders`` where it holds rows of this run.

    ``snapshot`` is what lay there before the run, ``given`` the variables that told the script of it, ``rank`` the node
    that wrote. An empty name reads nothing. Never raises for what a script wrote.
    """
    expected = Expected(name, tuple(dict.fromkeys(folders)), card_name, given or {})
    if not name:
        return ResultsReading()
    if not is_bare_name(name):
        return ResultsReading(problems=(name_problem(expected),))
    looks = [_look(folder / name, expected.folders, snapshot) for folder in expected.folders]
    best = max(looks, key=lambda look: (look.measures, bool(look.rows)), default=None)
    siblings = _sibling_notes(expected)
    if best is None or not best.rows:
        return ResultsReading(problems=(_problem(expected, looks),), notes=siblings)
    problems = _problems(expected, best, looks)
    return ResultsReading(
        measurements=tuple(_measurement(row, best.path, rank) for row in best.rows if row.value is not None),
        empty_rows=tuple(_empty_row(row, best.path, rank) for row in best.rows if row.value is None),
        problems=problems,
        notes=(*_notes(best, looks), *siblings),
        path=best.path,
    )


def _look(path: Path, folders: Sequence[Path], snapshot: Snapshot) -> _Look:
    if not os.path.lexists(path):
        return _Look(path, there=False)
    try:
        return _look_into(path, folders, snapshot)
    except NotReadableError as error:
        return _Look(path, why=f"not readable as CSV: {error}")
    except (OSError, RuntimeError) as error:  # a file that went away, a loop of links
        return _Look(path, why=f"not readable: {getattr(error, 'strerror', None) or error}")


def _look_into(path: Path, folders: Sequence[Path], snapshot: Snapshot) -> _Look:
    if not _stays_inside(path, folders):
        return _Look(path, why="it is a link that leads out of the run's folders")
    rejection = header_rejection(path)
    fresh = snapshot.freshness(path)
    if fresh.stale:
        return _Look(path, why=f"stale: {fresh.stale}")
    return _Look(path, why=rejection) if rejection else _read(path, fresh)


def _stays_inside(path: Path, folders: Iterable[Path]) -> bool:
    target = path.resolve()
    return any(target.is_relative_to(folder.resolve()) for folder in folders)


def _read(path: Path, fresh: Freshness) -> _Look:
    rows: list[ResultRow] = []
    cut = ""
    try:
        rows.extend(islice(read_results_rows(path), fresh.old_rows, fresh.old_rows + ROW_LIMIT + 1))
    except NotReadableError as error:
        cut = f"not readable as CSV to its end: {error}"
    if len(rows) > ROW_LIMIT:
        cut = f"only its first {ROW_LIMIT:,} rows were read"
    kept = tuple(rows[:ROW_LIMIT])
    return _Look(path, kept, why=why_nothing_measured(kept) or "", fresh=fresh, cut=cut)


def _problems(expected: Expected, best: _Look, looks: Sequence[_Look]) -> tuple[ContractProblem, ...]:
    if not best.measures:
        return (_problem(expected, looks),)
    if best.cut:
        return (ContractProblem(f"{best.path}: {best.cut}", given=expected.given_lines),)
    return ()


def _problem(expected: Expected, looks: Sequence[_Look]) -> ContractProblem:
    telling = sorted(looks, key=lambda look: not look.rows)
    return file_problem(expected, [(look.path, look.cut or look.why) for look in telling])


def _measurement(row: ResultRow, path: Path, rank: int) -> Measurement:
    assert row.value is not None
    return Measurement(
        value=row.value,
        metric=row.metric,
        name=row.name,
        source=f"{path.name}:{row.line}",
        text=row.text,
        rank=rank,
        extra=row.extra,
    )


def _empty_row(row: ResultRow, path: Path, rank: int) -> EmptyRow:
    return EmptyRow(row.name, row.metric, row.reason, source=f"{path.name}:{row.line}", rank=rank, extra=row.extra)


def _notes(best: _Look, looks: Sequence[_Look]) -> list[str]:
    notes = []
    old, repeated = best.fresh.old_rows, best.fresh.repeated
    if old:
        rows = "1 row from before this run does" if old == 1 else f"{old} rows from before this run do"
        notes.append(f"{best.path}: {rows} not count")
    if repeated:
        rows = "1 row is" if repeated == 1 else f"{repeated} rows are"
        notes.append(f"{best.path}: {rows} the same as before this run; the file was made anew, so that all rows count")
    for look in looks:
        if look is best or not look.there:
            continue
        notes.append(f"{look.path} was not read: " + (look.why or f"{best.path} comes first"))
    return notes


def _sibling_notes(expected: Expected) -> tuple[str, ...]:
    """Files named per rank beside the declared one: artefacts, not results."""
    found = expected.per_rank
    notes = [f"{path} is one rank's own file, kept beside the results and not read" for path in found[:_SHOWN_SIBLINGS]]
    if len(found) > _SHOWN_SIBLINGS:
        notes.append(f"and {len(found) - _SHOWN_SIBLINGS} more files of single ranks")
    return tuple(notes)
