"""From what a run was, what was seen of it and what the judge said, to rows of perf.csv. Pure.

Which rows there are: every attempted model leaves at least one.

* A metric line gives a row under the model's own name, each measured row of a results file one named
  ``<model>_<row's name>``, both with status SUCCESS.
* A row of a results file without a number gives a row without performance: FAILURE beside measured rows; where
  nothing was measured it has the outcome's own word.
* A row that says itself that it failed stays FAILURE, whatever number it has.
* No row of either kind: one row under the model's name, with the outcome's word (SKIPPED, FAILURE, NO_METRIC).

Whose word counts when a results file has columns of perf.csv itself (some scripts write all 29): what madengine knows
wins; a column that madengine has nothing for takes what the file says (a precision, a data size). ``performance``,
``metric``, ``status`` and ``relative_change`` are never taken over: the first three are read by their own rules, the
last is for comparisons. Every other column is kept as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

from madengine.reporting.csv_text import cell_text
from madengine.verdict.evidence import EmptyRow, Evidence, Measurement, Outcome, Verdict

Redact = Callable[[str], str]
"""Takes secrets out of a text, for example ``core.redact.Redactor.text``."""

_OWN = ("performance", "metric", "relative_change", "status")
_FAILED = ("FAILURE", "FAILED", "FAIL", "ERROR")


@dataclass(frozen=True)
class RunFacts:
    """The columns of perf.csv that are known without looking at the results, named as the columns are.

    Durations are in seconds, ``data_size`` as the data provider says it. ``pipeline`` and ``build_number`` come
    from the environment (``pipeline``, ``BUILD_NUMBER``). An empty text or None means that nothing is known.
    """

    model: str
    n_gpus: str | int = ""
    nnodes: str | int = 1
    gpus_per_node: str | int = ""
    training_precision: str = ""
    pipeline: str = ""
    args: str = ""
    tags: tuple[str, ...] = ()
    docker_file: str = ""
    base_docker: str = ""
    docker_sha: str = ""
    docker_image: str = ""
    git_commit: str = ""
    machine_name: str = ""
    deployment_type: str = "local"
    launcher: str = ""
    gpu_architecture: str = ""
    build_duration: str | float = ""
    test_duration: str | float = ""
    dataname: str = ""
    data_provider_type: str = ""
    data_size: str = ""
    data_download_duration: str | float = ""
    build_number: str | int = 0
    additional_docker_run_options: str = ""

    def columns(self) -> dict[str, str]:
        """Column name -> text."""
        return {field.name: _fact(getattr(self, field.name)) for field in fields(self)}


class ResultRow(NamedTuple):
    """A row of perf.csv (all of its columns, then others) and the names of the columns that the results file added."""

    values: dict[str, str]
    extra: tuple[str, ...]


def rows_of(
    facts: RunFacts, evidence: Evidence, verdict: Verdict, *, redact: Redact | None = None
) -> list[dict[str, str]]:
    """The rows that a run leaves in perf.csv, at least one. All of perf.csv's columns, then the results file's own.

    ``redact`` goes over every value: a command line in a results file can hold a token.
    """
    return [row.values for row in result_rows(facts, evidence, verdict, redact=redact)]


def result_rows(
    facts: RunFacts, evidence: Evidence, verdict: Verdict, *, redact: Redact | None = None
) -> list[ResultRow]:
    """As :func:`rows_of`, with the names of the added columns, which perf_super keeps apart."""
    from madengine.schemas import perf_csv_columns

    columns = perf_csv_columns()
    known = facts.columns()
    rows = [_measured(known, item) for item in evidence.measurements]
    rows += [_empty(known, item, verdict.outcome) for item in evidence.empty_rows]
    if verdict.outcome is Outcome.SKIPPED or not rows:
        rows = [{**known, "status": verdict.outcome.value}]
    return [_ordered(row, columns, redact or str) for row in rows]


def _measured(known: dict[str, str], item: Measurement) -> dict[str, str]:
    row = _with_extra(known, item.name, item.extra)
    row["performance"] = item.text or repr(item.value)
    row["metric"] = item.metric
    row["status"] = "FAILURE" if _says_failed(item.extra) else "SUCCESS"
    return row


def _empty(known: dict[str, str], item: EmptyRow, outcome: Outcome) -> dict[str, str]:
    row = _with_extra(known, item.name, item.extra)
    row["metric"] = item.metric
    failed = _says_failed(item.extra) or outcome in (Outcome.SUCCESS, Outcome.INCOMPLETE)
    row["status"] = "FAILURE" if failed else outcome.value
    return row


def _with_extra(known: dict[str, str], name: str, extra: Sequence[tuple[str, str]]) -> dict[str, str]:
    row = dict(known)
    for column, value in extra:
        folded = column.strip(" \t\r\n\"'\ufeff").lower()
        if folded in _OWN or folded == "model":
            continue
        if folded in known:
            row[folded] = known[folded] or row[folded] or value
        elif folded:
            row[column] = value
        elif value:
            row["unnamed"] = value
    row["model"] = f"{known['model']}_{name}" if name else known["model"]
    return row


def _says_failed(extra: Sequence[tuple[str, str]]) -> bool:
    return any(column.strip().lower() == "status" and value.strip().upper() in _FAILED for column, value in extra)


def _ordered(row: dict[str, str], columns: Sequence[str], redact: Redact) -> ResultRow:
    extra = tuple(name for name in row if name not in columns)
    names = [*columns, *extra]
    return ResultRow({name: redact(row.get(name, "")) for name in names}, extra)


def _fact(value: object) -> str:
    # A microsecond is more than any duration is worth; the text of a float must not look more exact than that.
    return cell_text(round(value, 6) if isinstance(value, float) else value)
