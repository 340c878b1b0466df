"""The rule that decides every run on every target: a pure function from evidence to a verdict.

The first row that matches wins:

1. skipped on purpose -> SKIPPED
2. measured, and nothing else went wrong -> SUCCESS
3. measured, and something else went wrong -> INCOMPLETE, the numbers stand
4. to 7. not measured, and interrupted, or a node failed or kept silent, or the scheduler says so, or a log holds an
   error -> FAILURE
8. not measured, everything clean -> NO_METRIC

A metric is the strongest evidence that a run did its work: some launchers print throughput on the last rank only, and
every other node of a healthy run may exit non-zero. Rows 4 to 7 have one outcome and differ in which fact the reason
names first, so they are one step here, which names all the facts in the order of the rows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from madengine.verdict import words
from madengine.verdict.evidence import EmptyRow, Evidence, Measurement, NodeReport, Outcome, Verdict
from madengine.verdict.exit_code import OUTCOME_CODES

_Words = tuple[str, ...]


def judge(evidence: Evidence) -> Verdict:
    """Decide what a run may say about itself. Total, deterministic, and blind to the order of the nodes."""
    troubles = _troubles(evidence)
    if evidence.skipped is not None and not _left_traces(evidence):
        return _verdict(Outcome.SKIPPED, words.skipped_words(evidence.skipped), notes=evidence.notes)
    measured = _finite(evidence)
    if measured:
        return _measured(evidence, measured, troubles + _shortfalls(evidence))
    findings = tuple(words.finding_words(finding) for finding in evidence.log_findings)
    if troubles or findings:
        return _failure(evidence, troubles, findings)
    return _no_metric(evidence)


def _measured(evidence: Evidence, measured: tuple[Measurement, ...], warnings: _Words) -> Verdict:
    """Rows 2 and 3: the numbers stand, whatever else went wrong."""
    what = words.measured_words(measured)
    notes = _remarks(evidence) + _surplus(evidence)
    notes += tuple(words.finding_note_words(finding) for finding in evidence.log_findings)
    if not warnings:
        return _verdict(Outcome.SUCCESS, what, notes=notes)
    reason = words.incomplete_words(what, warnings)
    return _verdict(Outcome.INCOMPLETE, reason, warnings=warnings, notes=notes, explanation=_contract_lines(evidence))


def _failure(evidence: Evidence, troubles: _Words, findings: _Words) -> Verdict:
    """Rows 4 to 7: what went wrong, and the first line of a log that may say why."""
    # A run that died cannot have kept its results contract; one that only printed an error may need the advice.
    explanation = () if troubles else _how_to_mend(evidence)
    lacks = tuple(words for words in _shortfalls(evidence) if words not in explanation)
    notes = _remarks(evidence) + findings[1:] + lacks
    return _verdict(Outcome.FAILURE, "; ".join(troubles + findings[:1]), notes=notes, explanation=explanation)


def _no_metric(evidence: Evidence) -> Verdict:
    """Row 8: all is well, except that there is no number."""
    reason = words.no_metric_words(evidence.contract_problems, len(_empty_rows(evidence)))
    return _verdict(Outcome.NO_METRIC, reason, notes=_remarks(evidence), explanation=_how_to_mend(evidence))


def _verdict(
    outcome: Outcome, reason: str, *, warnings: _Words = (), notes: _Words = (), explanation: _Words = ()
) -> Verdict:
    plain, strict = OUTCOME_CODES[outcome]
    return Verdict(outcome, reason, warnings, notes, explanation, plain, strict)


def _troubles(evidence: Evidence) -> _Words:
    """What fails a run that measured nothing, in the order of rows 4 to 6."""
    troubles = []
    if evidence.interruption is not None:
        troubles.append(words.interruption_words(evidence.interruption))
    troubles += _node_troubles(evidence)
    if evidence.scheduler is not None and evidence.scheduler.failed:
        troubles.append(words.scheduler_words(evidence.scheduler))
    troubles += [words.one_line(trouble) for trouble in evidence.troubles]
    if evidence.skipped is not None:
        troubles.append(words.contradicted_skip_words(evidence.skipped))
    return tuple(troubles)


def _node_troubles(evidence: Evidence) -> list[str]:
    """Each node that failed or kept silent, by rank; silence of all nodes together is no success either."""
    interruption = evidence.interruption
    if not evidence.nodes and interruption is None:
        return [words.no_nodes_words()]
    told = _by_rank(node for node in evidence.nodes if not (node.clean or words.is_consequence(node, interruption)))
    return [words.node_words(node, _alone(evidence)) for node in told]


def _by_rank(nodes: Iterable[NodeReport]) -> list[NodeReport]:
    return sorted(nodes, key=lambda node: (node.rank, node.host, str(node.exit_code), node.detail))


def _alone(evidence: Evidence) -> bool:
    """Whether the words may speak of the script alone: one node, and no scheduler above it."""
    return len(evidence.nodes) == 1 and evidence.scheduler is None


def _left_traces(evidence: Evidence) -> bool:
    """Whether a run that was to be skipped did something all the same.

    A skip may be decided on the node itself, so clean nodes and a content scheduler are no such trace, nor are nodes
    that all kept silent, since none was started.
    """
    started = any(node.exit_code is not None or node.out_of_memory for node in evidence.nodes)
    return bool(
        evidence.measurements
        or evidence.empty_rows
        or evidence.log_findings
        or evidence.interruption is not None
        or evidence.troubles
        or (evidence.scheduler is not None and evidence.scheduler.failed)
        or (started and any(not node.clean for node in evidence.nodes))
    )


def _finite(evidence: Evidence) -> tuple[Measurement, ...]:
    return tuple(item for item in evidence.measurements if math.isfinite(item.value))


def _empty_rows(evidence: Evidence) -> tuple[EmptyRow, ...]:
    """The rows without a number; a value that is not finite is one of them, however it came here."""
    return evidence.empty_rows + tuple(
        EmptyRow(item.name, item.metric, words.not_finite_words(item.value), item.source)
        for item in evidence.measurements
        if not math.isfinite(item.value)
    )


def _shortfalls(evidence: Evidence) -> _Words:
    """What is missing from the results: promised rows, numbers in rows, and what the results contract lacks."""
    found, expected = _distinct_results(evidence), evidence.expected_results
    short = [] if expected is None or found >= expected else [words.rows_words(found, expected)]
    short += [words.empty_row_words(row) for row in _empty_rows(evidence)]
    short += [words.contract_words(problem) for problem in evidence.contract_problems]
    return tuple(short)


def _surplus(evidence: Evidence) -> _Words:
    found, expected = _distinct_results(evidence), evidence.expected_results
    return () if expected is None or found <= expected else (words.surplus_words(found, expected),)


def _distinct_results(evidence: Evidence) -> int:
    """How many results there are when the same row from several ranks counts once."""
    most: Counter[object] = Counter()
    for (_, row), count in Counter((m.rank, (m.name, m.metric, m.extra)) for m in _finite(evidence)).items():
        most[row] = max(most[row], count)
    return most.total()


def _remarks(evidence: Evidence) -> _Words:
    """What changes nothing: the collectors' own notes, and nodes that ended well without a number."""
    quiet = _by_rank(node for node in evidence.nodes if node.clean and node.exit_code != 0)
    return evidence.notes + tuple(words.quiet_node_words(node, _alone(evidence)) for node in quiet)


def _contract_lines(evidence: Evidence) -> _Words:
    return tuple(line for problem in evidence.contract_problems for line in words.contract_lines(problem))


def _how_to_mend(evidence: Evidence) -> _Words:
    """The way out of a run without a number; general advice only when no problem brings its own."""
    rows = tuple(words.empty_row_words(row) for row in _empty_rows(evidence))
    own = any(problem.remedy for problem in evidence.contract_problems)
    return _contract_lines(evidence) + rows + (() if own else (words.HOW_TO_REPORT,))
