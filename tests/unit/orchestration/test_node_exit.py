"""The exit code of one rank."""

from __future__ import annotations

import pytest

from madengine.orchestration.node_exit import node_exit_code
from madengine.verdict.evidence import (
    Evidence,
    Interruption,
    InterruptionKind,
    LogFinding,
    Measurement,
    NodeReport,
)
from madengine.verdict.judge import judge


def seen(code: int | None = 0, *, metric: bool = False, memory: bool = False, **fields: object) -> Evidence:
    measurements = (Measurement(1.0, "x"),) if metric else ()
    node = NodeReport(1, "h", code, out_of_memory=memory, script=True)
    return Evidence("r", measurements=measurements, nodes=(node,), **fields)  # type: ignore[arg-type]


def ended(kind: InterruptionKind) -> Interruption:
    return Interruption(kind, "why")


FINDING = LogFinding("run.log", 3, "RuntimeError:", "RuntimeError: x")


@pytest.mark.parametrize(
    ("evidence", "code"),
    [
        (seen(0, metric=True), 0),
        (seen(0), 5),
        (seen(0, log_findings=(FINDING,)), 5),
        (seen(0, troubles=("post-script x exited 1",)), 1),
        (seen(0, metric=True, troubles=("post-script x exited 1",)), 0),
        (seen(0, expected_results=2, metric=True), 0),
        (seen(7), 7),
        (seen(7, metric=True), 7),
        (seen(5), 1),  # 5 is ours: clean, nothing measured
        (seen(5, metric=True), 1),
        (seen(137), 137),
        (seen(-9), 137),
        (seen(0, memory=True), 137),
        (seen(256), 1),
        (seen(None), 1),
        (seen(124, interruption=ended(InterruptionKind.TIMEOUT)), 124),
        (seen(124, metric=True, interruption=ended(InterruptionKind.TIMEOUT)), 124),
        (seen(130, interruption=ended(InterruptionKind.CANCELLED)), 143),
        (Evidence("r", interruption=ended(InterruptionKind.REFUSED)), 125),
        (Evidence("r", skipped="the card skips gfx90a"), 0),
        (Evidence("r"), 5),
    ],
)
def test_the_code_of_a_rank(evidence: Evidence, code: int) -> None:
    assert node_exit_code(evidence, judge(evidence)) == code


def test_what_was_refused_before_an_engine_was_asked_is_4() -> None:
    evidence = Evidence("r", interruption=ended(InterruptionKind.REFUSED))
    assert node_exit_code(evidence, judge(evidence), prepared=False) == 4


@pytest.mark.parametrize("evidence", [seen(0, metric=True), seen(7), Evidence("r")])
def test_a_rank_that_was_told_to_end_says_so_whatever_else_it_has(evidence: Evidence) -> None:
    assert node_exit_code(evidence, judge(evidence), terminated=True) == 143


def test_no_code_of_a_script_is_taken_for_clean_unless_it_is() -> None:
    for code in range(256):
        for evidence in (seen(code), seen(code, metric=True)):
            assert (node_exit_code(evidence, judge(evidence)) in (0, 5)) == (code == 0), code
