"""The exit code of a command, worst first."""

from __future__ import annotations

from itertools import combinations_with_replacement

import pytest

from madengine.cli.constants import ExitCode
from madengine.verdict import exit_code
from madengine.verdict.evidence import Outcome, Verdict
from madengine.verdict.exit_code import OUTCOME_CODES, exit_code_for, worst_of

# How an operator ranks outcomes, and what the command then ends with, plainly and under --strict.
LADDER = [
    (Outcome.FAILURE, 3, 3),
    (Outcome.NO_METRIC, 5, 5),
    (Outcome.INCOMPLETE, 0, 3),
    (Outcome.SUCCESS, 0, 0),
    (Outcome.SKIPPED, 0, 0),
]


def verdict(outcome: Outcome) -> Verdict:
    plain, strict = OUTCOME_CODES[outcome]
    return Verdict(outcome, "a reason", exit_code=plain, strict_exit_code=strict)


@pytest.mark.parametrize(("outcome", "plain", "strict"), LADDER)
def test_each_outcome_has_its_own_exit_code(outcome: Outcome, plain: int, strict: int) -> None:
    assert exit_code_for([verdict(outcome)], strict=False) == plain
    assert exit_code_for([verdict(outcome)], strict=True) == strict


def test_every_outcome_has_an_exit_code() -> None:
    assert set(OUTCOME_CODES) == set(Outcome)


def test_the_worst_verdict_of_all_runs_counts() -> None:
    for chosen in combinations_with_replacement(LADDER, 3):
        verdicts = [verdict(outcome) for outcome, _, _ in chosen]
        plain, strict = {code for _, code, _ in chosen}, {code for _, _, code in chosen}
        assert exit_code_for(verdicts, strict=False) == next(code for code in (3, 5, 0) if code in plain)
        assert exit_code_for(verdicts[::-1], strict=True) == next(code for code in (3, 5, 0) if code in strict)


def test_zero_runs_are_never_a_success() -> None:
    assert exit_code_for([], strict=False) == 3
    assert exit_code_for([], strict=True) == 3


def test_runs_that_go_on_without_the_command_have_no_verdict_yet_and_hide_none() -> None:
    assert exit_code_for([], strict=True, goes_on=True) == 0
    assert exit_code_for([verdict(Outcome.FAILURE)], strict=False, goes_on=True) == 3
    assert exit_code_for([], strict=False, goes_on=True, interrupted=True) == 130


def test_zero_runs_after_a_failed_build_are_a_failed_build() -> None:
    assert exit_code_for([], strict=False, build_failed=True) == 2


@pytest.mark.parametrize("outcome", list(Outcome))
def test_a_failed_build_outranks_every_run(outcome: Outcome) -> None:
    assert exit_code_for([verdict(outcome)], strict=False, build_failed=True) == 2


def test_runs_that_were_all_skipped_are_a_success() -> None:
    assert exit_code_for([verdict(Outcome.SKIPPED)] * 3, strict=True) == 0


@pytest.mark.parametrize("build_failed", [False, True])
def test_control_c_outranks_everything(build_failed: bool) -> None:
    verdicts = [verdict(Outcome.SUCCESS)]
    assert exit_code_for(verdicts, strict=False, build_failed=build_failed, interrupted=True) == 130
    assert exit_code_for([], strict=False, build_failed=build_failed, interrupted=True) == 130


def test_codes_are_ranked_worst_first() -> None:
    order = [4, 2, 3, 5, 1, 0]
    for place, code in enumerate(order):
        assert worst_of(order[place:][::-1]) == code


def test_a_code_that_the_table_does_not_know_is_unexpected_rather_than_ignored() -> None:
    assert worst_of([0, 77]) == 1
    assert worst_of([77, 5]) == 5


def test_the_command_line_gives_the_numbers_the_same_meaning() -> None:
    assert {code.value for code in ExitCode} == {*exit_code.WORST_FIRST, exit_code.INTERRUPTED}
    assert ExitCode.SUCCESS == exit_code.SUCCESS
    assert ExitCode.FAILURE == exit_code.UNEXPECTED
    assert ExitCode.BUILD_FAILURE == exit_code.BUILD_FAILURE
    assert ExitCode.RUN_FAILURE == exit_code.RUN_FAILURE
    assert ExitCode.INVALID_ARGS == exit_code.INVALID_ARGUMENTS
    assert ExitCode.NO_METRIC == exit_code.NO_METRIC
    assert ExitCode.INTERRUPTED == exit_code.INTERRUPTED
