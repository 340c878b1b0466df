"""The wording of facts; the sentences of a whole verdict are in test_judge."""

from __future__ import annotations

import pytest

from madengine.verdict import words
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


@pytest.mark.parametrize(
    ("code", "meaning"),
    [
        (0, "clean"),
        (1, ""),
        (5, "no metric"),
        (123, ""),
        (124, "timed out"),
        (125, "the container engine failed"),
        (126, "not executable"),
        (127, "command not found"),
        (128, ""),
        (129, "ended by SIGHUP"),
        (130, "interrupted"),
        (134, "aborted"),
        (136, "ended by SIGFPE"),
        (137, "killed, often out of memory"),
        (139, "segmentation fault"),
        (143, "terminated"),
        (160, "ended by signal 32"),
        (192, "ended by SIGRTMAX"),
        (193, ""),
        (255, ""),
        (-9, "killed, often out of memory"),
        (-1, "ended by SIGHUP"),
        (-200, ""),
    ],
)
def test_an_exit_code_is_spelled_out_where_it_means_something(code: int, meaning: str) -> None:
    assert words.exit_code_meaning(code) == meaning


@pytest.mark.parametrize(
    ("node", "alone", "said"),
    [
        (NodeReport(1, "gpu-07", 137), False, "node 1 (gpu-07) exited 137 (killed, often out of memory)"),
        (NodeReport(1, "gpu-07", 137, out_of_memory=True), False, "node 1 (gpu-07) exited 137 (out of memory)"),
        (NodeReport(1, "", 1), False, "node 1 exited 1"),
        (NodeReport(3), False, "node 3 reported no status (killed or lost)"),
        (NodeReport(3, "h", detail="no marker"), False, "node 3 (h) reported no status (killed or lost): no marker"),
        (NodeReport(3, out_of_memory=True), False, "node 3 reported no status (out of memory)"),
        (NodeReport(0, "", 7), True, "the script exited 7"),
        (NodeReport(0, "box", 139), True, "the script exited 139 (segmentation fault)"),
        (NodeReport(0, "box", 3, "pre-script a.sh exited 3"), True, "the script exited 3: pre-script a.sh exited 3"),
        (NodeReport(0), True, "the script reported no status (killed or lost)"),
        (NodeReport(0, "a\nb\x1b[31m", 1), False, "node 0 (a b) exited 1"),
    ],
)
def test_a_node_is_named_with_its_host_and_fate(node: NodeReport, alone: bool, said: str) -> None:
    assert words.node_words(node, alone) == said


def test_a_quiet_node_is_named_the_same_way() -> None:
    node = NodeReport(2, "h", 5)
    assert words.quiet_node_words(node) == "node 2 (h) exited 5 (no metric of its own), which counts as clean"
    said = words.quiet_node_words(NodeReport(0, "", 5), alone=True)
    assert said == "the script exited 5 (no metric of its own), which counts as clean"


@pytest.mark.parametrize(
    ("kind", "code", "told_already"),
    [
        (InterruptionKind.TIMEOUT, 124, True),
        (InterruptionKind.TIMEOUT, 137, False),
        (InterruptionKind.TIMEOUT, None, False),
        (InterruptionKind.CANCELLED, 130, True),
        (InterruptionKind.CANCELLED, None, False),
        (InterruptionKind.REFUSED, None, True),
        (InterruptionKind.REFUSED, 1, False),
    ],
)
def test_an_interruption_tells_some_fates_already(kind: InterruptionKind, code: int | None, told_already: bool) -> None:
    interruption = Interruption(kind, "")
    assert words.is_consequence(NodeReport(0, "", code), interruption) is told_already
    assert words.is_consequence(NodeReport(0, "", code), None) is False
    assert words.is_consequence(NodeReport(0, "", code, out_of_memory=True), interruption) is False


@pytest.mark.parametrize(
    ("exit_code", "reason", "said"),
    [
        ("", "", "Slurm says FAILED"),
        ("0:0", "", "Slurm says FAILED"),
        ("0", "", "Slurm says FAILED"),
        ("1:0", "", "Slurm says FAILED (exit code 1)"),
        ("137:0", "", "Slurm says FAILED (exit code 137, killed, often out of memory)"),
        ("0:15", "", "Slurm says FAILED (ended by SIGTERM)"),
        ("0:99", "", "Slurm says FAILED (ended by signal 99)"),
        ("0:x", "", "Slurm says FAILED"),
        ("2", "no\nnode", "Slurm says FAILED (exit code 2, no node)"),
        ("odd", "", "Slurm says FAILED (odd)"),
        ("0:0", "BeginTime", "Slurm says FAILED (BeginTime)"),
    ],
)
def test_a_scheduler_is_quoted(exit_code: str, reason: str, said: str) -> None:
    assert words.scheduler_words(SchedulerReport("Slurm", "FAILED", False, exit_code, reason)) == said


@pytest.mark.parametrize(
    ("kind", "detail", "said"),
    [
        (InterruptionKind.TIMEOUT, "", "the run timed out"),
        (InterruptionKind.CANCELLED, "", "the run was cancelled"),
        (InterruptionKind.REFUSED, " ", "the run was refused"),
        (InterruptionKind.TIMEOUT, "60 s were not enough", "timed out: 60 s were not enough"),
        (InterruptionKind.TIMEOUT, "Timed out after 60 s", "Timed out after 60 s"),
        (InterruptionKind.REFUSED, "sbatch refused the job", "sbatch refused the job"),
    ],
)
def test_an_interruption_says_its_kind_once(kind: InterruptionKind, detail: str, said: str) -> None:
    assert words.interruption_words(Interruption(kind, detail)) == said


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (EmptyRow("a", "tok/s", "nan", "x.csv:2"), "row 'a' of tok/s (x.csv:2) has no number: nan"),
        (EmptyRow("", "", "the cell is empty"), "a row has no number: the cell is empty"),
    ],
)
def test_an_empty_row_says_what_stood_there(row: EmptyRow, said: str) -> None:
    assert words.empty_row_words(row) == said


def test_missing_rows_are_counted() -> None:
    assert words.rows_words(2, 3) == "2 of 3 expected rows measured"
    assert words.rows_words(0, 1) == "0 of 1 expected row measured"


@pytest.mark.parametrize(
    ("measurements", "said"),
    [
        ((Measurement(1.5, "tok/s", text="1.50"),), "measured 1.50 tok/s"),
        ((Measurement(1.5, "tok/s"),), "measured 1.5 tok/s"),
        ((Measurement(1.5, ""),), "measured 1.5"),
        ((Measurement(1.5, "a"), Measurement(2, "b")), "measured 2 results"),
    ],
)
def test_what_was_measured_is_said(measurements: tuple[Measurement, ...], said: str) -> None:
    assert words.measured_words(measurements) == said


def test_at_most_five_clauses_follow_the_numbers() -> None:
    assert words.incomplete_words("m", "abcde") == "m, but a; b; c; d; e"
    assert words.incomplete_words("m", "abcdef") == "m, but a; b; c; d; e; and 1 more"
    assert words.incomplete_words("m", "abcdefg") == "m, but a; b; c; d; e; and 2 more"


def test_a_skip_without_a_reason_is_still_said() -> None:
    assert words.skipped_words("  ") == "skipped on purpose"
    assert words.skipped_words("because\n") == "skipped: because"


def test_no_metric_names_every_problem() -> None:
    problems = (ContractProblem("a"), ContractProblem("b"))
    assert words.no_metric_words(problems, 1) == "nothing was measured: a; b"
    assert words.no_metric_words((), 2) == "nothing was measured: no row of the results file holds a number"


def test_a_problem_without_words_is_not_silent() -> None:
    assert words.contract_lines(ContractProblem(" ")) == ["the results are not where the card says"]


def test_text_from_outside_is_one_printable_line() -> None:
    assert words.one_line(" a\r\n\tb\x00c\u202ed ") == "a b c d"


def test_text_from_outside_is_cut() -> None:
    assert words.one_line("x" * 200) == "x" * 200
    assert words.one_line("x" * 201) == "x" * 197 + "..."
    assert words.one_line("abcdefgh", 5) == "ab..."


def test_a_finding_names_file_and_line() -> None:
    finding = LogFinding("logs/run.log", 3, "FAILED", "\x1b[31mFAILED\x1b[0m test")
    assert words.finding_words(finding) == "logs/run.log:3: FAILED test"


def test_a_refusal_is_not_cut_before_its_remedy() -> None:
    long = "the image cannot be had: " + "x" * 500 + " (do this)"
    assert words.interruption_words(Interruption(InterruptionKind.REFUSED, long)) == f"refused: {long}"
