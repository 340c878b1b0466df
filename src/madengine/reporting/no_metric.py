"""Why a run measured nothing, and how to mend it: each problem names where was looked, what the container was given,
which files beside the run look like results, and what to write where."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from madengine.core.redact import is_secret_name
from madengine.reporting.log_scan import LogReading
from madengine.reporting.metric_lines import STATEMENT
from madengine.reporting.numbers import quoted
from madengine.reporting.result_csv import suggestion_lines
from madengine.verdict.evidence import ContractProblem

METRIC_LINE = f"{STATEMENT} <number> <metric>"
_SHOWN_REJECTED = 3


@dataclass(frozen=True)
class Expected:
    """What a card promised: the declared results file (empty when it declares none), the folders where it may lie in
    the order of the search, and the variables that tell the script of it."""

    name: str
    folders: tuple[Path, ...]
    card_name: str
    given: Mapping[str, str] = field(default_factory=dict)

    @property
    def given_lines(self) -> tuple[str, ...]:
        """``NAME=value`` for each variable; the value of a secret is not shown."""
        return tuple(f"{name}={'***' if is_secret_name(name) else value}" for name, value in self.given.items())

    @property
    def candidates(self) -> tuple[str, ...]:
        """The other files beside the run that look like results, the best spelt first; none that one rank wrote."""
        return tuple(suggestion_lines(self.folders, like=self.name, apart=self.per_rank))

    @property
    def per_rank(self) -> tuple[Path, ...]:
        """The files that single ranks wrote instead of the declared one, or beside it: ``x_rank3.csv`` for ``x.csv``.

        To declare one of them would lose what the others hold.
        """
        stem, suffix = os.path.splitext(self.name)  # noqa: PTH122 - a name, not a path
        name = re.compile(rf"{re.escape(stem)}_rank\d+{re.escape(suffix)}")
        return tuple(path for folder in self.folders for path in _entries(folder) if stem and name.fullmatch(path.name))


def file_problem(expected: Expected, looks: Sequence[tuple[Path, str]]) -> ContractProblem:
    """The declared file gave no measurement; ``looks`` are the paths and what was wrong at each, "" for not there."""
    found = [(path, why) for path, why in looks if why]
    return ContractProblem(
        summary=_file_summary(expected, found),
        searched=tuple(f"{path} ({why or 'not there'})" for path, why in looks),
        given=expected.given_lines,
        candidates=expected.candidates,
        remedy=_remedy(expected, found[0][1] if found else ""),
    )


def name_problem(expected: Expected) -> ContractProblem:
    """The declared name is a path, which could lead out of the run's folders; it was not followed."""
    return ContractProblem(
        summary=f"the declared results file {quoted(expected.name)} is no plain file name and was not looked for",
        given=expected.given_lines,
        candidates=expected.candidates,
        remedy=f'give "multiple_results" of card {expected.card_name} a file name without folders; '
        "the script may write it in its working directory or one above",
    )


def missing_metric(log: LogReading, expected: Expected, *, log_path: Path) -> tuple[ContractProblem, ...]:
    """Why the log gave no measurement either; nothing when it gave one.

    A card that declares a results file owes no metric line, so that without one only rejected lines are told.
    """
    if log.measurement is not None:
        return ()
    if log.rejected:
        return (_rejected_lines(log, expected, log_path),)
    return () if expected.name else (_nothing_declared(expected, log_path),)


def _rejected_lines(log: LogReading, expected: Expected, log_path: Path) -> ContractProblem:
    more = len(log.rejected) - _SHOWN_REJECTED
    told = "; ".join(log.rejected[:_SHOWN_REJECTED]) + (f"; and {more} more" if more > 0 else "")
    return ContractProblem(
        summary=f"the metric lines hold no usable number: {told}",
        searched=(str(log_path),),
        given=() if expected.name else expected.given_lines,
        candidates=() if expected.name else expected.candidates,
        remedy=f"print '{METRIC_LINE}' with a plain, finite number, such as '{STATEMENT} 1234.5 tokens/s'",
    )


def _nothing_declared(expected: Expected, log_path: Path) -> ContractProblem:
    candidates = expected.candidates
    declare = f'declare the file as "multiple_results" in card {expected.card_name}, or ' if candidates else ""
    else_declare = (
        "" if candidates else f', or declare the CSV it writes as "multiple_results" in card {expected.card_name}'
    )
    return ContractProblem(
        summary=f"{log_path.name} has no line '{METRIC_LINE}' and card {expected.card_name} declares no results file",
        searched=(str(log_path),),
        given=expected.given_lines,
        candidates=candidates,
        remedy=f"{declare}let the script print a line '{METRIC_LINE}' of its own{else_declare}",
    )


def _file_summary(expected: Expected, found: Sequence[tuple[Path, str]]) -> str:
    if not found:
        return f"the declared results file {quoted(expected.name)} was not written"
    return f"the declared results file {quoted(expected.name)} gave no result: {found[0][1]}"


def _remedy(expected: Expected, why: str) -> str:
    """The way out when the declared file is not there (``why`` is empty) or was rejected."""
    stale = why.startswith("stale")
    per_rank = expected.per_rank
    if per_rank and (stale or not why):
        return _one_file_remedy(expected, per_rank)
    if not why:
        return _missing_remedy(expected)
    if stale:
        return "let the script delete the old file before it writes, or append its rows; only rows of this run count"
    return "let the script write a CSV with the columns model, performance and metric and a plain number in each row"


def _one_file_remedy(expected: Expected, per_rank: Sequence[Path]) -> str:
    more = f" and {len(per_rank) - 1} more" if len(per_rank) > 1 else ""
    return (
        f"files of single ranks were found ({per_rank[0].name}{more}), which are no results: let the script write one "
        f"file {quoted(expected.name)} from one rank, with the rows of all"
    )


def _missing_remedy(expected: Expected) -> str:
    if expected.candidates:
        return f'correct "multiple_results" in card {expected.card_name}, or the name that the script writes'
    return (
        f"let the script write {quoted(expected.name)} in its working directory or one above it, or let card "
        f'{expected.card_name} declare the file that it does write as "multiple_results"'
    )


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []
