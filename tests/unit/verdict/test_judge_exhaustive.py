"""The judge over every combination of what can be seen of a run, against the table written a second time.

Facets are kept as plain names here; :func:`expected_outcome` reads the table of docs/verdict.md over these names and
shares nothing with the judge. Steps between the names say what a worse input is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from itertools import permutations, product
from typing import NamedTuple

from madengine.verdict.evidence import (
    ContractProblem,
    EmptyRow,
    Evidence,
    Interruption,
    InterruptionKind,
    LogFinding,
    Measurement,
    NodeReport,
    Outcome,
    SchedulerReport,
    Verdict,
)
from madengine.verdict.judge import judge


class Case(NamedTuple):
    """One combination, by name: the fate of each rank, then one name per facet."""

    fates: tuple[str, ...]
    scheduler: str
    results: str
    findings: int
    interruption: str
    skipped: bool = False


FATES = {
    "clean": NodeReport(0, exit_code=0),
    "quiet": NodeReport(0, exit_code=5),
    "failed": NodeReport(0, exit_code=124),
    "silent": NodeReport(0),
}
SCHEDULERS = {
    "none": None,
    "completed": SchedulerReport("Slurm", "COMPLETED", True, "0:0"),
    "unknown": SchedulerReport("Slurm", "UNKNOWN", False),
    "failed": SchedulerReport("Slurm", "FAILED", False, "3:0"),
    "node fail": SchedulerReport("Slurm", "NODE_FAIL", False, "0:0"),
}
INTERRUPTIONS = {
    "none": None,
    "timed out": Interruption(InterruptionKind.TIMEOUT, "timed out after 60 s"),
    "cancelled": Interruption(InterruptionKind.CANCELLED, "cancelled by the user"),
    "refused": Interruption(InterruptionKind.REFUSED, "sbatch refused the job"),
}
FINDING = LogFinding("run.log", 7, "RuntimeError:", "RuntimeError: boom")
A, B = Measurement(1.0, "tok/s", "a"), Measurement(2.0, "tok/s", "b")
NAN, EMPTY, PROBLEM = Measurement(math.nan, "tok/s", "c"), EmptyRow("d", "tok/s", "empty"), ContractProblem("no x.csv")
# name -> (measurements, empty rows, contract problems, promised rows)
RESULTS: dict[str, tuple[tuple[Measurement, ...], tuple[EmptyRow, ...], tuple[ContractProblem, ...], int | None]] = {
    "two": ((A, B), (), (), None),
    "one": ((A,), (), (), None),
    "none": ((), (), (), None),
    "two of two": ((A, B), (), (), 2),
    "one of two": ((A,), (), (), 2),
    "none of two": ((), (), (), 2),
    "one and an empty row": ((A,), (EMPTY,), (), None),
    "an empty row": ((), (EMPTY,), (), None),
    "one and a nan": ((A, NAN), (), (), None),
    "a nan": ((NAN,), (), (), None),
    "one and a problem": ((A,), (), (PROBLEM,), None),
    "a problem": ((), (), (PROBLEM,), None),
}

# What is one step worse. Facets that are not named here stay as they are in a step.
WORSE_FATE = {"clean": ("quiet",), "quiet": ("failed",), "failed": ("silent",)}
WORSE_SCHEDULER = {
    "completed": ("none", "unknown"),
    "none": ("unknown", "failed", "node fail"),
    "unknown": ("none", "failed", "node fail"),
}
WORSE_INTERRUPTION = {"none": ("timed out", "cancelled", "refused")}
WORSE_RESULTS = {
    "two": ("one", "two of two"),
    "one": ("none", "one of two", "one and an empty row", "one and a nan", "one and a problem"),
    "none": ("none of two", "an empty row", "a nan", "a problem"),
    "two of two": ("one of two",),
    "one of two": ("none of two",),
    "one and an empty row": ("an empty row",),
    "one and a nan": ("a nan",),
    "one and a problem": ("a problem",),
}

BEST_FIRST = (Outcome.SUCCESS, Outcome.INCOMPLETE, Outcome.NO_METRIC, Outcome.FAILURE)
MILDEST_CODE_FIRST = (0, 1, 5, 3, 2, 4)


def expected_outcome(case: Case) -> Outcome:
    """The table, read row by row."""
    measured = case.results.startswith(("one", "two"))
    whole = case.results in ("one", "two", "two of two")
    nodes_clean = bool(case.fates) and set(case.fates) <= {"clean", "quiet"}
    interrupted = case.interruption != "none"
    scheduler_fine = case.scheduler in ("none", "completed", "unknown")
    spoilt = case.skipped
    if case.skipped:
        not_started = set(case.fates) <= {"silent"}
        quiet_results = case.results in ("none", "none of two", "a problem") and not case.findings
        if (nodes_clean or not_started) and scheduler_fine and not interrupted and quiet_results:
            return Outcome.SKIPPED
    if measured and whole and nodes_clean and scheduler_fine and not interrupted and not spoilt:
        return Outcome.SUCCESS
    if measured:
        return Outcome.INCOMPLETE
    if interrupted or not nodes_clean or not scheduler_fine or case.findings or spoilt:
        return Outcome.FAILURE
    return Outcome.NO_METRIC


def seen(case: Case) -> Evidence:
    """The evidence that a case names."""
    measurements, empty_rows, problems, promised = RESULTS[case.results]
    return Evidence(
        "run",
        skipped="on purpose" if case.skipped else None,
        measurements=measurements,
        empty_rows=empty_rows,
        expected_results=promised,
        nodes=tuple(NodeReport(rank, f"h{rank}", FATES[fate].exit_code) for rank, fate in enumerate(case.fates)),
        scheduler=SCHEDULERS[case.scheduler],
        log_findings=(FINDING,) * case.findings,
        contract_problems=problems,
        interruption=INTERRUPTIONS[case.interruption],
    )


@cache
def verdicts() -> dict[Case, tuple[Evidence, Verdict]]:
    """Every combination of 0 to 3 ranks with every other facet, and what the judge says."""
    facets = (SCHEDULERS, RESULTS, (0, 1), INTERRUPTIONS)
    cases = [Case(*facts) for ranks in range(4) for facts in product(product(FATES, repeat=ranks), *facets)]
    cases += [case._replace(skipped=True) for case in cases if len(case.fates) < 3]
    return {case: (evidence, judge(evidence)) for case in cases for evidence in (seen(case),)}


def one_step_worse(case: Case) -> Iterator[Case]:
    """All cases that differ in one facet, which is one step worse."""
    for rank, fate in enumerate(case.fates):
        for worse in WORSE_FATE.get(fate, ()):
            yield case._replace(fates=(*case.fates[:rank], worse, *case.fates[rank + 1 :]))
    yield from (case._replace(scheduler=worse) for worse in WORSE_SCHEDULER.get(case.scheduler, ()))
    yield from (case._replace(results=worse) for worse in WORSE_RESULTS.get(case.results, ()))
    yield from (case._replace(interruption=worse) for worse in WORSE_INTERRUPTION.get(case.interruption, ()))
    if not case.findings:
        yield case._replace(findings=1)


def test_every_combination_has_the_outcome_of_the_table() -> None:
    assert len(verdicts()) > 45_000
    for case, (_, verdict) in verdicts().items():
        assert verdict.outcome is expected_outcome(case), case


def test_a_worse_input_never_gives_a_better_verdict() -> None:
    """A skip is a decision and not a measure of how well a run went, so the order is among runs that were to run."""
    steps = 0
    for case, (_, verdict) in verdicts().items():
        for worse in () if case.skipped else one_step_worse(case):
            below = verdicts()[worse][1]
            assert BEST_FIRST.index(below.outcome) >= BEST_FIRST.index(verdict.outcome), (case, worse)
            assert MILDEST_CODE_FIRST.index(below.exit_code) >= MILDEST_CODE_FIRST.index(verdict.exit_code)
            # Under --strict a lost number turns 3 (incomplete) into 5 (no metric): another failure, never a success.
            assert verdict.strict_exit_code == 0 or below.strict_exit_code != 0, (case, worse)
            steps += 1
    assert steps > 100_000


def test_exit_code_0_means_that_every_rank_is_clean_or_named() -> None:
    for case, (evidence, verdict) in verdicts().items():
        if verdict.exit_code != 0 or verdict.outcome is Outcome.SKIPPED:
            continue
        assert any(math.isfinite(measurement.value) for measurement in evidence.measurements)
        said = "\n".join((*verdict.warnings, *verdict.notes))
        for rank, fate in enumerate(case.fates):
            named = f"node {rank} (h{rank})" in said or "the script" in said
            assert fate == "clean" or named or told_by_the_interruption(case, fate), case


def told_by_the_interruption(case: Case, fate: str) -> bool:
    """A time-out is why a node ended with 124, and a refusal is why it never reported."""
    return (case.interruption, fate) in {("timed out", "failed"), ("refused", "silent")}


def test_a_failure_names_every_node_that_failed_and_every_other_cause() -> None:
    for case, (_, verdict) in verdicts().items():
        if verdict.outcome is not Outcome.FAILURE:
            continue
        assert verdict.reason
        for rank, fate in enumerate(case.fates):
            if fate in ("failed", "silent") and not told_by_the_interruption(case, fate):
                assert f"node {rank} (h{rank})" in verdict.reason or "the script" in verdict.reason, case
        assert (case.interruption != "none") == (verdict.reason.startswith(("timed out", "cancelled", "sbatch")))
        assert ("Slurm says" in verdict.reason) == (case.scheduler in ("failed", "node fail")), case
        assert ("run.log:7: RuntimeError: boom" in verdict.reason) == (case.findings > 0), case


def test_what_failed_is_never_called_a_success() -> None:
    for case, (_, verdict) in verdicts().items():
        if verdict.outcome is Outcome.SUCCESS:
            assert not verdict.warnings, case
        else:
            assert "success" not in " ".join((verdict.reason, *verdict.warnings)).lower(), case
        if verdict.outcome is Outcome.INCOMPLETE:
            assert verdict.warnings, case


def test_numbers_are_never_thrown_away() -> None:
    for case, (evidence, verdict) in verdicts().items():
        finite = any(math.isfinite(measurement.value) for measurement in evidence.measurements)
        assert finite == (verdict.outcome in (Outcome.SUCCESS, Outcome.INCOMPLETE)), case


def test_strict_is_never_milder() -> None:
    for _, verdict in verdicts().values():
        plain, strict = verdict.exit_code, verdict.strict_exit_code
        assert MILDEST_CODE_FIRST.index(strict) >= MILDEST_CODE_FIRST.index(plain)


def test_a_skip_is_only_what_was_to_be_skipped() -> None:
    for case, (_, verdict) in verdicts().items():
        assert case.skipped or verdict.outcome is not Outcome.SKIPPED


def test_the_same_evidence_gives_the_same_verdict() -> None:
    for evidence, verdict in list(verdicts().values())[::9]:
        assert judge(evidence) == verdict


def test_the_order_of_the_nodes_does_not_matter() -> None:
    for case, (evidence, verdict) in verdicts().items():
        if case.results in ("one", "none") and case.findings == 0 and len(set(case.fates)) > 1:
            for nodes in permutations(evidence.nodes):
                assert judge(Evidence(**{**vars(evidence), "nodes": nodes})) == verdict
