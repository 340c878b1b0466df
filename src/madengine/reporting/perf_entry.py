"""perf_entry: the rows of the last command alone, and the paths of all files that a command leaves beside the user.

``perf_entry.csv`` and ``.json`` are written whole, in one step, by each command; ``--output NAME`` gives them (and
``perf_entry_super``) another name. The cumulative files keep theirs: an output that would replace one of them, or any
other file that is not such an output, is refused before anything starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from madengine.core.errors import ConfigurationError, MADEngineError
from madengine.core.files import write_atomic
from madengine.reporting.appending import as_error, real_path, refuse_loop
from madengine.reporting.csv_text import cell_text, csv_line, storable
from madengine.reporting.perf_csv import append_rows, check_perf_csv
from madengine.reporting.perf_rows import ResultRow
from madengine.reporting.perf_super import (
    CSV_WHAT,
    append_super_csv,
    append_super_json,
    check_super_json,
    csv_row,
    json_line,
    super_columns,
    super_row,
)

DEFAULT_OUTPUT = "perf_entry.csv"
_WHAT = "output file"
_HEAD = 256 << 10  # bytes
_MARKS = (b"model", b"n_gpus", b"performance", b"status")


@dataclass(frozen=True)
class PerfFiles:
    """Where the numbers go: the cumulative files, then those of the last command."""

    perf_csv: Path
    super_json: Path
    super_csv: Path
    entry_csv: Path
    entry_json: Path
    entry_super_json: Path
    entry_super_csv: Path

    @property
    def cumulative(self) -> tuple[Path, ...]:
        """The files that are appended to."""
        return self.perf_csv, self.super_json, self.super_csv

    @property
    def entries(self) -> tuple[Path, ...]:
        """The files that are replaced by each command."""
        return self.entry_csv, self.entry_json, self.entry_super_json, self.entry_super_csv


def perf_files(folder: Path, output: str | Path | None = None) -> PerfFiles:
    """The files of a command that was started in ``folder``; ``output`` is what ``--output`` says.

    ``x.csv`` and ``x.json`` both mean x.csv, x.json and x_super.*; another name is the CSV's, as it is.
    """
    entry = folder / (output or DEFAULT_OUTPUT)
    known = entry.suffix.lower() in (".csv", ".json")
    stem = entry.stem if known else entry.name
    return PerfFiles(
        perf_csv=folder / "perf.csv",
        super_json=folder / "perf_super.json",
        super_csv=folder / "perf_super.csv",
        entry_csv=entry.with_suffix(".csv") if entry.suffix.lower() == ".json" else entry,
        entry_json=entry if entry.suffix.lower() == ".json" else entry.with_name(f"{stem}.json"),
        entry_super_json=entry.with_name(f"{stem}_super.json"),
        entry_super_csv=entry.with_name(f"{stem}_super.csv"),
    )


def check_perf_files(files: PerfFiles) -> None:
    """Raise :class:`ConfigurationError` when one of the files could not be written, before anything is started."""
    check_perf_csv(files.perf_csv)
    check_super_json(files.super_json)
    check_perf_csv(files.super_csv, what=CSV_WHAT)
    ours = {real_path(path, _WHAT) for path in files.cumulative}
    for path in files.entries:
        if real_path(path, _WHAT) in ours:
            hint = "choose another name for --output"
            raise ConfigurationError(f"the {_WHAT} would replace a cumulative file", where=str(path), hint=hint)
        _check_entry(path)


def append_cumulative(files: PerfFiles, rows: Sequence[ResultRow], configs: Any = None) -> list[str]:
    """Append the rows of one run to perf.csv and perf_super; ``configs`` is what :func:`load_configs` gave.

    perf.csv comes first and is what counts: an error there is raised. What kept perf_super from being written comes
    back as sentences.
    """
    append_rows(files.perf_csv, [row.values for row in rows])
    full = [super_row(row, configs) for row in rows]
    problems = []
    for append, path in ((append_super_json, files.super_json), (append_super_csv, files.super_csv)):
        try:
            append(path, full)
        except MADEngineError as error:
            problems.append(str(error))
    return problems


def write_entries(files: PerfFiles, runs: Sequence[tuple[Sequence[ResultRow], Any]]) -> None:
    """Write the files of the last command from the (rows, configs) of each of its runs, each file in one step.

    Without runs they hold a header and an empty list: numbers of an earlier command never look like this one's. They
    do not wait for the disk, since the cumulative files, which do, hold the same. Raises :class:`MADEngineError` when a
    file cannot be written.
    """
    from madengine.schemas import perf_csv_columns

    plain = [row.values for rows, _ in runs for row in rows]
    full = [super_row(row, configs) for rows, configs in runs for row in rows]
    write_atomic(files.entry_csv, _csv(perf_csv_columns(), plain), durable=False)
    write_atomic(files.entry_json, _json(plain), durable=False)
    write_atomic(files.entry_super_json, _json(full), durable=False)
    write_atomic(files.entry_super_csv, _csv(super_columns(), [csv_row(row) for row in full]), durable=False)


def _csv(columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> str:
    names = list(dict.fromkeys([*columns, *(storable(name) for row in rows for name in row)]))
    lines = [csv_line(names)]
    for row in rows:
        values = {storable(name): value for name, value in row.items()}
        lines.append(csv_line([cell_text(values.get(name)) for name in names]))
    return "".join(lines)


def _json(rows: Sequence[Mapping[str, Any]]) -> str:
    return "[\n" + ",\n".join(map(json_line, rows)) + "\n]\n" if rows else "[]\n"


def _check_entry(path: Path) -> None:
    """Whether the path is free or holds an earlier command's output."""
    if not path.parent.is_dir():
        raise ConfigurationError(f"the folder for the {_WHAT} does not exist", where=str(path), hint="make it first")
    refuse_loop(path, _WHAT)
    if not path.exists():
        return
    if not path.is_file():
        raise ConfigurationError(f"is no regular file, but the {_WHAT} is to be written there", where=str(path))
    if path.suffix.lower() == ".json":
        _check_json_entry(path)
    else:
        check_perf_csv(path, what="perf_entry.csv")


def _check_json_entry(path: Path) -> None:
    """A look at the head is enough to tell rows of perf.csv from model cards or a manifest, however large they are."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD).removeprefix(b"\xef\xbb\xbf").lstrip()
    except OSError as error:
        raise as_error(error, path, _WHAT) from error
    if head.rstrip() in (b"", b"[]"):
        return
    if head[:1] not in (b"[", b"{") or not all(b'"%b"' % name in head for name in _MARKS):
        hint = "it was left as it is; choose another name for --output"
        raise ConfigurationError(f"is no earlier {_WHAT} and would be overwritten", where=str(path), hint=hint)
