"""How facts of a run are put into words. The same fact is worded here and nowhere else.

Every function is pure and returns one clause without a full stop, so that clauses can be joined into a sentence. Text
that came from outside (hosts, log lines, states) is cut to one printable line first.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable

from madengine.verdict.evidence import (
    ContractProblem,
    EmptyRow,
    Interruption,
    InterruptionKind,
    LogFinding,
    Measurement,
    NodeReport,
    SchedulerReport,
)

NO_METRIC = 5  # of a madengine on a node, see exit_code.py
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_LONGEST_QUOTE = 200
_LONGEST_PATH = 1000  # in advice and refusals: a path or a remedy that is cut leads nowhere
_HIGHEST_SIGNAL = 64
_MOST_CLAUSES = 5

# 124 is coreutils' timeout, 125 to 127 are what docker, podman and the shell agree on, 5 is madengine's own.
_MEANINGS = {
    0: "clean",
    5: "no metric",
    124: "timed out",
    125: "the container engine failed",
    126: "not executable",
    127: "command not found",
    130: "interrupted",
    134: "aborted",
    137: "killed, often out of memory",
    139: "segmentation fault",
    143: "terminated",
}

# What an interruption makes of a node; saying it again for every node would only bury the rest.
_CONSEQUENCES: dict[InterruptionKind, int | None] = {
    InterruptionKind.TIMEOUT: 124,
    InterruptionKind.CANCELLED: 130,
    InterruptionKind.REFUSED: None,
}

HOW_TO_REPORT = (
    "to mend it: let the script print a line of its own such as 'performance: 123.4 samples_per_second', "
    "or declare the CSV file it writes as 'multiple_results' in the model's card"
)


def exit_code_meaning(code: int) -> str:
    """What an exit code says beyond its number, or an empty string when it says nothing.

    128+n is how shells report signal n; a negative code is how Python's subprocess does.
    """
    number = 128 - code if code < 0 else code
    if number in _MEANINGS:
        return _MEANINGS[number]
    return _signal_words(number - 128) if 0 < number - 128 <= _HIGHEST_SIGNAL else ""


def _signal_words(number: int) -> str:
    try:
        return f"ended by {signal.Signals(number).name}"
    except ValueError:
        return f"ended by signal {number}"


def one_line(text: str, limit: int = _LONGEST_QUOTE) -> str:
    """Text from outside as one printable line of at most ``limit`` characters."""
    if not text.isprintable():
        text = "".join(char if char.isprintable() else " " for char in _COLOUR.sub("", text))
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 3] + "..."


def exit_words(code: int, out_of_memory: bool = False) -> str:
    """``exited 137 (killed, often out of memory)``; what the engine stated outranks what the code suggests."""
    meaning = "out of memory" if out_of_memory else exit_code_meaning(code)
    return f"exited {code} ({meaning})" if meaning else f"exited {code}"


def node_words(node: NodeReport, alone: bool = False) -> str:
    """What became of one node. ``alone`` means that it is the run's only node and no scheduler stands above it."""
    if node.script and node.exit_code == NO_METRIC and not node.out_of_memory:
        fate = f"exited {node.exit_code}"  # the script's own code, to which we give no meaning
    elif node.exit_code is not None:
        fate = exit_words(node.exit_code, node.out_of_memory)
    else:
        fate = f"reported no status ({'out of memory' if node.out_of_memory else 'killed or lost'})"
    detail = f": {one_line(node.detail)}" if node.detail else ""
    return f"{_node_name(node, alone)} {fate}{detail}"


def _node_name(node: NodeReport, alone: bool) -> str:
    """On this machine alone neither rank nor host tell anything."""
    host = one_line(node.host)
    if alone:
        return "the script"
    return f"node {node.rank} ({host})" if host else f"node {node.rank}"


def is_consequence(node: NodeReport, interruption: Interruption | None) -> bool:
    """Whether the interruption already says all that the node's bad report says."""
    if interruption is None or node.out_of_memory:
        return False
    return node.exit_code == _CONSEQUENCES[interruption.kind]


def no_nodes_words() -> str:
    """No rank was listed, so that nothing is known of any."""
    return "no node's status is known"


def quiet_node_words(node: NodeReport, alone: bool = False) -> str:
    """A node that ended well and had no number to tell."""
    return f"{_node_name(node, alone)} exited 5 (no metric of its own), which counts as clean"


def scheduler_words(report: SchedulerReport) -> str:
    """``Slurm says NODE_FAIL``, with its exit code and reason where they add something."""
    extra = [words for words in (_scheduler_exit_words(report.exit_code), one_line(report.reason)) if words]
    said = f"{one_line(report.name)} says {one_line(report.state)}"
    return f"{said} ({', '.join(extra)})" if extra else said


def _scheduler_exit_words(text: str) -> str:
    """Slurm writes ``code:signal``; zeros are left out, since NODE_FAIL and OUT_OF_MEMORY carry them too."""
    code, _, number = one_line(text).partition(":")
    if number.isdecimal() and int(number):
        return _signal_words(int(number))
    if not code.isdecimal():
        return code
    if not int(code):
        return ""
    meaning = exit_code_meaning(int(code))
    return f"exit code {int(code)}, {meaning}" if meaning else f"exit code {int(code)}"


def interruption_words(interruption: Interruption) -> str:
    """``timed out after 60 s``: the detail alone when it says the kind itself."""
    kind, detail = interruption.kind.value, one_line(interruption.detail, _LONGEST_PATH)
    if not detail:
        return f"the run was {kind}" if interruption.kind is not InterruptionKind.TIMEOUT else f"the run {kind}"
    return detail if kind in detail.lower() else f"{kind}: {detail}"


def finding_words(finding: LogFinding) -> str:
    """``run.log:12: RuntimeError: boom``."""
    return f"{one_line(finding.file)}:{finding.line}: {one_line(finding.text)}"


def finding_note_words(finding: LogFinding) -> str:
    """A line that looks like an error in the log of a run that measured."""
    return f"the log holds what looks like an error, but the run measured: {finding_words(finding)}"


def empty_row_words(row: EmptyRow) -> str:
    """A row of the results file that has no number, and what stood there instead."""
    name = f"row '{one_line(row.name)}'" if row.name else "a row"
    metric = f" of {one_line(row.metric)}" if row.metric else ""
    source = f" ({one_line(row.source)})" if row.source else ""
    return f"{name}{metric}{source} has no number: {one_line(row.reason)}"


def not_finite_words(value: float) -> str:
    """Why a value that a float can hold is no measurement."""
    return f"{value} is no measurement"


def rows_words(measured: int, expected: int) -> str:
    """How many of the promised rows hold a number."""
    noun = "row" if expected == 1 else "rows"
    return f"{measured} of {expected} expected {noun} measured"


def surplus_words(measured: int, expected: int) -> str:
    """More rows than were promised, which spoils nothing."""
    return f"{measured} results measured where {expected} were expected"


def measured_words(measurements: tuple[Measurement, ...]) -> str:
    """What was measured: the number itself when there is one, else how many there are."""
    if len(measurements) > 1:
        return f"measured {len(measurements)} results"
    only = measurements[0]
    number = one_line(only.text) or repr(only.value)
    return f"measured {number} {one_line(only.metric)}".rstrip()


def incomplete_words(measured: str, warnings: Iterable[str]) -> str:
    """Numbers that stand although something did not finish; the warnings name what finds no room here."""
    clauses = list(warnings)
    more = len(clauses) - _MOST_CLAUSES
    rest = [f"and {more} more"] if more > 0 else []
    return f"{measured}, but {'; '.join(clauses[:_MOST_CLAUSES] + rest)}"


def skipped_words(reason: str) -> str:
    """A run that was left out on purpose."""
    return f"skipped: {one_line(reason)}" if reason.strip() else "skipped on purpose"


def contradicted_skip_words(reason: str) -> str:
    """A run that was to be left out and all the same left traces."""
    return f"the run was to be skipped ({one_line(reason)}), yet something ran"


def no_metric_words(problems: tuple[ContractProblem, ...], empty_rows: int) -> str:
    """Why a run that ended well has no result."""
    why = "; ".join(contract_words(problem) for problem in problems)
    if not why and empty_rows:
        why = "no row of the results file holds a number"
    return f"nothing was measured: {why or 'no metric line in the log and no declared results file'}"


def contract_words(problem: ContractProblem) -> str:
    """One broken results contract in one clause."""
    return one_line(problem.summary) or "the results are not where the card says"


def contract_lines(problem: ContractProblem) -> list[str]:
    """How to mend one broken results contract: what was looked for, where, with what, and what lies beside it."""
    lines = [contract_words(problem)]
    lines += [f"  searched: {one_line(path, _LONGEST_PATH)}" for path in problem.searched]
    lines += [f"  the container was given: {one_line(variable, _LONGEST_PATH)}" for variable in problem.given]
    lines += [f"  beside the run: {one_line(candidate, _LONGEST_PATH)}" for candidate in problem.candidates]
    if problem.remedy:
        lines.append(f"  to mend it: {one_line(problem.remedy, _LONGEST_PATH)}")
    return lines
