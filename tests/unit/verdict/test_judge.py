"""Every row of the rule is a test named after it, and so is every trap that real schedulers set."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

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
from madengine.verdict.words import HOW_TO_REPORT

RUN = "20260101T000000-model-abcdef"
METRIC = Measurement(123.5, "samples_per_second", source="run.log:4", text="123.5")
CLEAN = NodeReport(0, exit_code=0)
COMPLETED = SchedulerReport("Slurm", "COMPLETED", True, "0:0")
NODE_FAIL = SchedulerReport("Slurm", "NODE_FAIL", False, "0:0")
FINDING = LogFinding("run.log", 7, "RuntimeError:", "RuntimeError: boom")
EMPTY = EmptyRow("b", "tok/s", "the cell is empty", "perf_x.csv:3")
MISSPELT = ContractProblem(
    "perf_x.csv was not written",
    searched=("/w/perf_x.csv", "/w/run_directory/perf_x.csv"),
    given=("MAD_OUTPUT_CSV=perf_x.csv",),
    candidates=("perf_y.csv: declare it as 'multiple_results'",),
    remedy="write perf_x.csv",
)


def evidence(*measurements: Measurement, nodes: tuple[NodeReport, ...] = (CLEAN,), **facets: object) -> Evidence:
    return replace(Evidence(RUN, measurements=measurements, nodes=nodes), **facets)  # type: ignore[arg-type]


def node(rank: int, code: int | None, **facts: object) -> NodeReport:
    return NodeReport(rank, f"gpu-{rank:02}", code, **facts)  # type: ignore[arg-type]


def codes(verdict: Verdict) -> tuple[int, int]:
    return verdict.exit_code, verdict.strict_exit_code


# The rows ------------------------------------------------------------------------------------------------------------


def test_row_1_a_run_skipped_on_purpose_is_skipped() -> None:
    verdict = judge(evidence(nodes=(), skipped="gfx942 is in skip_gpu_arch", notes=("a note",)))
    assert verdict == Verdict(Outcome.SKIPPED, "skipped: gfx942 is in skip_gpu_arch", notes=("a note",))
    assert codes(verdict) == (0, 0)


def test_row_2_a_measurement_and_nothing_wrong_is_success() -> None:
    verdict = judge(evidence(METRIC))
    assert verdict == Verdict(Outcome.SUCCESS, "measured 123.5 samples_per_second")
    assert codes(verdict) == (0, 0)


def test_row_2_log_findings_beside_a_measurement_are_a_note() -> None:
    verdict = judge(evidence(METRIC, log_findings=(FINDING,), notes=("3 metric lines, the last one counts",)))
    assert verdict.outcome is Outcome.SUCCESS
    assert verdict.notes == (
        "3 metric lines, the last one counts",
        "the log holds what looks like an error, but the run measured: run.log:7: RuntimeError: boom",
    )


def test_row_3_a_measurement_and_a_failed_node_is_incomplete() -> None:
    verdict = judge(evidence(METRIC, nodes=(node(0, 0), node(1, 137)), scheduler=COMPLETED))
    assert verdict.outcome is Outcome.INCOMPLETE
    assert verdict.reason == (
        "measured 123.5 samples_per_second, but node 1 (gpu-01) exited 137 (killed, often out of memory)"
    )
    assert verdict.warnings == ("node 1 (gpu-01) exited 137 (killed, often out of memory)",)
    assert codes(verdict) == (0, 3)


@pytest.mark.parametrize(
    ("facets", "warning"),
    [
        ({"nodes": (NodeReport(0, exit_code=3),)}, "the script exited 3"),
        ({"nodes": (NodeReport(0),)}, "the script reported no status (killed or lost)"),
        ({"nodes": ()}, "no node's status is known"),
        ({"scheduler": NODE_FAIL}, "Slurm says NODE_FAIL"),
        ({"interruption": Interruption(InterruptionKind.TIMEOUT, "timed out after 60 s")}, "timed out after 60 s"),
        ({"empty_rows": (EMPTY,)}, "row 'b' of tok/s (perf_x.csv:3) has no number: the cell is empty"),
        ({"expected_results": 3}, "1 of 3 expected rows measured"),
        ({"contract_problems": (MISSPELT,)}, "perf_x.csv was not written"),
        ({"skipped": "deprecated"}, "the run was to be skipped (deprecated), yet something ran"),
    ],
)
def test_row_3_anything_else_that_went_wrong_is_named_as_a_warning(facets: dict[str, object], warning: str) -> None:
    verdict = judge(replace(evidence(METRIC), **facets))  # type: ignore[arg-type]
    assert (verdict.outcome, verdict.warnings) == (Outcome.INCOMPLETE, (warning,))
    assert verdict.reason == f"measured 123.5 samples_per_second, but {warning}"
    assert codes(verdict) == (0, 3)


def test_row_3_every_warning_is_named_in_the_order_of_the_rows() -> None:
    verdict = judge(
        evidence(
            METRIC,
            nodes=(node(0, 1), node(1, None)),
            scheduler=NODE_FAIL,
            interruption=Interruption(InterruptionKind.CANCELLED, "cancelled by the user"),
            expected_results=2,
            empty_rows=(EMPTY,),
            contract_problems=(MISSPELT,),
            log_findings=(FINDING,),
        )
    )
    assert verdict.warnings == (
        "cancelled by the user",
        "node 0 (gpu-00) exited 1",
        "node 1 (gpu-01) reported no status (killed or lost)",
        "Slurm says NODE_FAIL",
        "1 of 2 expected rows measured",
        "row 'b' of tok/s (perf_x.csv:3) has no number: the cell is empty",
        "perf_x.csv was not written",
    )
    assert verdict.reason.endswith("; 1 of 2 expected rows measured; and 2 more")
    assert verdict.notes == (
        "the log holds what looks like an error, but the run measured: run.log:7: RuntimeError: boom",
    )
    assert verdict.explanation[0] == "perf_x.csv was not written"


def test_row_3_outranks_rows_5_to_7_when_only_the_last_rank_prints_the_number() -> None:
    nodes = (node(0, 1), node(1, 1), node(2, 1), node(3, 0))
    verdict = judge(
        evidence(METRIC, nodes=nodes, scheduler=replace(NODE_FAIL, state="FAILED"), log_findings=(FINDING,))
    )
    assert verdict.outcome is Outcome.INCOMPLETE


@pytest.mark.parametrize(
    ("kind", "detail", "reason"),
    [
        (InterruptionKind.TIMEOUT, "timed out after 60 s", "timed out after 60 s"),
        (InterruptionKind.CANCELLED, "Ctrl-C", "cancelled: Ctrl-C"),
        (InterruptionKind.REFUSED, "no such partition", "refused: no such partition"),
    ],
)
def test_row_4_an_interrupted_run_without_a_measurement_is_a_failure_that_says_which(
    kind: InterruptionKind, detail: str, reason: str
) -> None:
    verdict = judge(evidence(interruption=Interruption(kind, detail)))
    assert verdict == Verdict(Outcome.FAILURE, reason, exit_code=3, strict_exit_code=3)


@pytest.mark.parametrize(
    ("kind", "code"),
    [(InterruptionKind.TIMEOUT, 124), (InterruptionKind.CANCELLED, 130), (InterruptionKind.REFUSED, None)],
)
def test_row_4_what_an_interruption_does_to_the_nodes_is_not_said_again(
    kind: InterruptionKind, code: int | None
) -> None:
    nodes = (node(0, code), node(1, 7))
    verdict = judge(evidence(nodes=nodes, interruption=Interruption(kind, "")))
    assert verdict.reason == f"the run {'' if kind is InterruptionKind.TIMEOUT else 'was '}{kind.value}; " + (
        "node 1 (gpu-01) exited 7"
    )


def test_row_4_an_interruption_without_any_node_is_told_alone() -> None:
    verdict = judge(evidence(nodes=(), interruption=Interruption(InterruptionKind.REFUSED, "no such partition")))
    assert verdict.reason == "refused: no such partition"


def test_row_5_a_failed_or_silent_node_without_a_measurement_is_a_failure_that_names_each() -> None:
    nodes = (node(0, 0), node(3, None), NodeReport(1, "gpu-07", 137), node(2, 5))
    verdict = judge(evidence(nodes=nodes, scheduler=NODE_FAIL))
    assert verdict.outcome is Outcome.FAILURE
    assert verdict.reason == (
        "node 1 (gpu-07) exited 137 (killed, often out of memory); "
        "node 3 (gpu-03) reported no status (killed or lost); Slurm says NODE_FAIL"
    )
    assert verdict.notes == ("node 2 (gpu-02) exited 5 (no metric of its own), which counts as clean",)
    assert codes(verdict) == (3, 3)


def test_row_5_a_marker_that_cannot_be_parsed_is_silence_and_its_path_is_named() -> None:
    verdict = judge(evidence(nodes=(node(0, 0), NodeReport(1, detail="node_1/node.status has no exit_code= line"))))
    assert verdict.reason == ("node 1 reported no status (killed or lost): node_1/node.status has no exit_code= line")


def test_row_5_a_script_alone_on_this_machine_is_called_the_script() -> None:
    verdict = judge(evidence(nodes=(NodeReport(0, exit_code=7),)))
    assert verdict == Verdict(Outcome.FAILURE, "the script exited 7", exit_code=3, strict_exit_code=3)


def test_row_5_the_first_log_finding_says_why_and_the_others_are_notes() -> None:
    second = replace(FINDING, file="node_1.log", line=9)
    verdict = judge(evidence(nodes=(NodeReport(0, exit_code=1),), log_findings=(FINDING, second)))
    assert verdict.reason == "the script exited 1; run.log:7: RuntimeError: boom"
    assert verdict.notes == ("node_1.log:9: RuntimeError: boom",)


def test_row_5_a_run_that_died_is_not_told_how_to_name_its_results() -> None:
    verdict = judge(evidence(nodes=(NodeReport(0, exit_code=1),), contract_problems=(MISSPELT,), empty_rows=(EMPTY,)))
    assert verdict.explanation == ()
    assert verdict.notes == (
        "row 'b' of tok/s (perf_x.csv:3) has no number: the cell is empty",
        "perf_x.csv was not written",
    )


def test_row_6_a_scheduler_state_that_is_no_success_is_a_failure_that_quotes_it() -> None:
    verdict = judge(evidence(scheduler=NODE_FAIL))
    assert verdict == Verdict(Outcome.FAILURE, "Slurm says NODE_FAIL", exit_code=3, strict_exit_code=3)


def test_row_7_a_log_finding_without_a_measurement_is_a_failure_that_quotes_the_line() -> None:
    second = replace(FINDING, file="node_1.log", line=9)
    verdict = judge(evidence(log_findings=(FINDING, second)))
    assert verdict.outcome is Outcome.FAILURE
    assert verdict.reason == "run.log:7: RuntimeError: boom"
    assert verdict.notes == ("node_1.log:9: RuntimeError: boom",)
    assert verdict.explanation == (HOW_TO_REPORT,)
    assert codes(verdict) == (3, 3)


def test_row_7_what_the_advice_says_is_no_note_as_well() -> None:
    facets = {"contract_problems": (MISSPELT,), "empty_rows": (EMPTY,), "expected_results": 2}
    verdict = judge(replace(evidence(log_findings=(FINDING,)), **facets))  # type: ignore[arg-type]
    assert verdict.explanation == judge(replace(evidence(), **facets)).explanation  # type: ignore[arg-type]
    assert verdict.notes == ("0 of 2 expected rows measured",)


def test_row_8_no_measurement_and_everything_clean_is_no_metric() -> None:
    verdict = judge(evidence(notes=("a note",), scheduler=COMPLETED))
    assert verdict.outcome is Outcome.NO_METRIC
    assert verdict.reason == "nothing was measured: no metric line in the log and no declared results file"
    assert verdict.explanation == (HOW_TO_REPORT,)
    assert verdict.notes == ("a note",)
    assert codes(verdict) == (5, 5)


def test_row_8_the_explanation_says_how_to_mend_the_contract() -> None:
    verdict = judge(evidence(contract_problems=(MISSPELT,), empty_rows=(EMPTY,)))
    assert verdict.reason == "nothing was measured: perf_x.csv was not written"
    assert verdict.explanation == (
        "perf_x.csv was not written",
        "  searched: /w/perf_x.csv",
        "  searched: /w/run_directory/perf_x.csv",
        "  the container was given: MAD_OUTPUT_CSV=perf_x.csv",
        "  beside the run: perf_y.csv: declare it as 'multiple_results'",
        "  to mend it: write perf_x.csv",
        "row 'b' of tok/s (perf_x.csv:3) has no number: the cell is empty",
    )


def test_row_8_a_problem_without_its_own_remedy_gets_the_general_one() -> None:
    assert judge(evidence(contract_problems=(replace(MISSPELT, remedy=""),))).explanation[-1] == HOW_TO_REPORT


def test_row_8_exit_5_of_every_node_is_clean_without_a_metric() -> None:
    verdict = judge(evidence(nodes=(node(1, 5), node(0, 5)), scheduler=COMPLETED))
    assert verdict.outcome is Outcome.NO_METRIC
    assert verdict.notes == (
        "node 0 (gpu-00) exited 5 (no metric of its own), which counts as clean",
        "node 1 (gpu-01) exited 5 (no metric of its own), which counts as clean",
    )


# What counts as evidence ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_is_no_measurement_and_the_verdict_says_so(value: float) -> None:
    verdict = judge(evidence(replace(METRIC, value=value)))
    assert verdict.outcome is Outcome.NO_METRIC
    assert verdict.reason == "nothing was measured: no row of the results file holds a number"
    assert verdict.explanation == (
        f"a row of samples_per_second (run.log:4) has no number: {value} is no measurement",
        HOW_TO_REPORT,
    )


def test_a_value_that_is_not_finite_beside_one_that_is_makes_the_run_incomplete() -> None:
    verdict = judge(evidence(METRIC, Measurement(math.nan, "tok/s", "b", "x.csv:3"), empty_rows=(EMPTY,)))
    assert verdict.outcome is Outcome.INCOMPLETE
    assert verdict.warnings == (
        "row 'b' of tok/s (perf_x.csv:3) has no number: the cell is empty",
        "row 'b' of tok/s (x.csv:3) has no number: nan is no measurement",
    )


def test_exit_5_of_a_node_beside_a_measurement_is_clean_and_said_so() -> None:
    verdict = judge(evidence(METRIC, nodes=(node(0, 5), node(1, 0)), scheduler=COMPLETED))
    assert verdict.outcome is Outcome.SUCCESS
    assert verdict.notes == ("node 0 (gpu-00) exited 5 (no metric of its own), which counts as clean",)


def test_zero_is_a_measurement() -> None:
    assert judge(evidence(replace(METRIC, value=0.0, text="0"))).reason == "measured 0 samples_per_second"


def test_as_many_results_as_expected_are_a_success() -> None:
    two = (replace(METRIC, name="a"), replace(METRIC, name="b"))
    verdict = judge(evidence(*two, expected_results=2))
    assert verdict == Verdict(Outcome.SUCCESS, "measured 2 results")


def test_more_results_than_expected_are_a_success_with_a_note() -> None:
    two = (replace(METRIC, name="a"), replace(METRIC, name="b"))
    verdict = judge(evidence(*two, expected_results=1))
    assert (verdict.outcome, verdict.notes) == (Outcome.SUCCESS, ("2 results measured where 1 were expected",))


def test_the_same_row_from_several_ranks_counts_once_towards_the_expected_results() -> None:
    rows = [replace(METRIC, name=name, rank=rank) for rank in (0, 1) for name in ("a", "b")]
    assert judge(evidence(*rows, expected_results=3)).warnings == ("2 of 3 expected rows measured",)


def test_rows_that_differ_in_metric_or_another_column_are_results_of_their_own() -> None:
    rows = (METRIC, replace(METRIC, metric="tflops"), replace(METRIC, extra=(("mode", "eval"),)), METRIC)
    assert judge(evidence(*rows, expected_results=4)).outcome is Outcome.SUCCESS


def test_a_rank_that_repeats_a_row_is_counted_as_often_as_it_measured() -> None:
    rows = (METRIC, replace(METRIC, rank=1), replace(METRIC, rank=1))
    assert judge(evidence(*rows, expected_results=2)).outcome is Outcome.SUCCESS
    assert judge(evidence(*rows, expected_results=3)).outcome is Outcome.INCOMPLETE


# Traps ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("report", "reason"),
    [
        (SchedulerReport("Slurm", "NODE_FAIL", False, "0:0"), "Slurm says NODE_FAIL"),
        (SchedulerReport("Slurm", "FAILED", False, "3:0", "step 0"), "Slurm says FAILED (exit code 3, step 0)"),
        (SchedulerReport("Slurm", "FAILED", False, "0:9"), "Slurm says FAILED (ended by SIGKILL)"),
        (SchedulerReport("Slurm", "OUT_OF_MEMORY", False, "0:0"), "Slurm says OUT_OF_MEMORY"),
        (
            SchedulerReport("Slurm", "PENDING", False, reason="PartitionNodeLimit"),
            "Slurm says PENDING (PartitionNodeLimit)",
        ),
    ],
)
def test_a_failed_state_counts_whatever_its_exit_code(report: SchedulerReport, reason: str) -> None:
    verdict = judge(evidence(scheduler=report))
    assert (verdict.outcome, verdict.reason) == (Outcome.FAILURE, reason)
    assert judge(evidence(METRIC, scheduler=report)).warnings == (reason,)


@pytest.mark.parametrize("state", ["", " ", "unknown", "UNKNOWN", " Unknown\n"])
def test_an_unknown_scheduler_state_claims_nothing(state: str) -> None:
    report = SchedulerReport("Slurm", state, False)
    assert judge(evidence(METRIC, scheduler=report)).outcome is Outcome.SUCCESS
    assert judge(evidence(scheduler=report)).outcome is Outcome.NO_METRIC


def test_a_container_that_ran_out_of_memory_with_exit_code_0_is_not_clean() -> None:
    nodes = (node(0, 0), node(1, 0, out_of_memory=True))
    verdict = judge(evidence(nodes=nodes, scheduler=SchedulerReport("Kubernetes", "Complete", True)))
    assert (verdict.outcome, verdict.reason) == (Outcome.FAILURE, "node 1 (gpu-01) exited 0 (out of memory)")


def test_exit_5_with_out_of_memory_is_a_failure_and_no_quiet_node() -> None:
    verdict = judge(evidence(nodes=(NodeReport(0, exit_code=5, out_of_memory=True),)))
    assert verdict == Verdict(Outcome.FAILURE, "the script exited 5 (out of memory)", exit_code=3, strict_exit_code=3)


def test_a_scripts_own_exit_5_is_a_failure_like_any_other() -> None:
    own = NodeReport(0, exit_code=5, script=True)
    assert judge(evidence(nodes=(own,))).reason == "the script exited 5"
    assert judge(evidence(nodes=(own,))).outcome is Outcome.FAILURE
    assert judge(evidence(METRIC, nodes=(own,))).outcome is Outcome.INCOMPLETE


def test_a_scripts_own_exit_0_is_clean() -> None:
    assert judge(evidence(METRIC, nodes=(NodeReport(0, exit_code=0, script=True),))).outcome is Outcome.SUCCESS


TROUBLE = "post-script scripts/h.sh exited 4"


def test_row_3_a_trouble_beside_the_script_leaves_the_numbers_and_is_a_warning() -> None:
    verdict = judge(evidence(METRIC, nodes=(node(0, 0),), troubles=(TROUBLE,)))
    assert (verdict.outcome, verdict.warnings, verdict.strict_exit_code) == (Outcome.INCOMPLETE, (TROUBLE,), 3)


def test_a_trouble_without_a_number_is_a_failure_that_names_it_after_the_nodes() -> None:
    assert judge(evidence(nodes=(node(0, 0),), troubles=(TROUBLE,))).outcome is Outcome.FAILURE
    assert judge(evidence(nodes=(node(0, 3),), troubles=(TROUBLE,))).reason == f"the script exited 3; {TROUBLE}"


def test_a_trouble_contradicts_a_skip() -> None:
    assert judge(evidence(skipped="on purpose", troubles=(TROUBLE,))).outcome is Outcome.FAILURE


def test_a_scheduler_that_says_completed_does_not_hide_a_failed_node() -> None:
    assert judge(evidence(nodes=(node(0, 3),), scheduler=COMPLETED)).reason == "node 0 (gpu-00) exited 3"


def test_a_success_is_never_deduced_from_silence() -> None:
    nothing = judge(Evidence(RUN))
    assert (nothing.outcome, nothing.reason) == (Outcome.FAILURE, "no node's status is known")
    assert judge(evidence(nodes=(), scheduler=COMPLETED)).outcome is Outcome.FAILURE


def test_two_reports_of_one_rank_are_both_told_in_a_fixed_order() -> None:
    nodes = (
        NodeReport(0, "b", 1),
        NodeReport(0, "a", 3),
        NodeReport(0, "a", 2),
        NodeReport(0, "a", None, "y"),
        NodeReport(0, "a", None, "x"),
    )
    expected = (
        "node 0 (a) exited 2; node 0 (a) exited 3; node 0 (a) reported no status (killed or lost): x; "
        "node 0 (a) reported no status (killed or lost): y; node 0 (b) exited 1"
    )
    assert judge(evidence(nodes=nodes)).reason == judge(evidence(nodes=nodes[::-1])).reason == expected


# Skipping ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "facets",
    [
        {"nodes": (NodeReport(0), NodeReport(1))},
        {"nodes": (CLEAN,), "scheduler": COMPLETED},
        {"nodes": (NodeReport(0, exit_code=5),)},
        {"contract_problems": (MISSPELT,)},
        {"expected_results": 3},
    ],
)
def test_a_skip_is_not_contradicted_by_nodes_that_did_not_start_or_ended_well(facets: dict[str, object]) -> None:
    verdict = judge(replace(evidence(skipped="not for this GPU"), **facets))  # type: ignore[arg-type]
    assert verdict == Verdict(Outcome.SKIPPED, "skipped: not for this GPU")


@pytest.mark.parametrize(
    "facets",
    [
        {"nodes": (NodeReport(0, exit_code=7),)},
        {"nodes": (NodeReport(0, exit_code=0), NodeReport(1))},
        {"nodes": (NodeReport(0, out_of_memory=True),)},
        {"scheduler": NODE_FAIL},
        {"log_findings": (FINDING,)},
        {"empty_rows": (EMPTY,)},
        {"interruption": Interruption(InterruptionKind.CANCELLED, "")},
        {"measurements": (replace(METRIC, value=math.nan),)},
    ],
)
def test_a_skip_that_failures_contradict_is_a_failure_that_names_the_contradiction(facets: dict[str, object]) -> None:
    verdict = judge(replace(evidence(skipped="deprecated"), **facets))  # type: ignore[arg-type]
    assert verdict.outcome is Outcome.FAILURE
    assert "the run was to be skipped (deprecated), yet something ran" in verdict.reason
