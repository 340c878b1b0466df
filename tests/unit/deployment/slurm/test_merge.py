"""From what every node left to the evidence of the whole run, and what the judge says of it."""

from __future__ import annotations

import itertools
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.deployment.slurm.folders import RUN, number, order

from madengine.deployment.slurm.merge import merge
from madengine.deployment.slurm.nodes import NodeReading
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
)
from madengine.verdict.judge import judge

TWO = order()


def node(rank: int, code: int | None = 0, **facts: object) -> NodeReading:
    told = Evidence(RUN, nodes=(NodeReport(0, f"h{rank}", code),), **facts)  # type: ignore[arg-type]
    return NodeReading(rank, NodeReport(rank, f"h{rank}", code), told)


def silent(rank: int) -> NodeReading:
    return NodeReading(rank, NodeReport(rank, "", None, "there is no marker"))


def row(value: float, **facts: object) -> Measurement:
    return replace(number(value, "ms", "r.csv:2"), name="a", **facts)  # type: ignore[arg-type]


def merged(*nodes: NodeReading, **facts: object) -> Evidence:
    one = facts.pop("of", TWO)
    return merge(one, nodes, **{"scheduler": None, "interruption": None, **facts})  # type: ignore[arg-type]


def outcome(evidence: Evidence) -> Outcome:
    return judge(evidence).outcome


def test_one_rank_prints_for_all() -> None:
    seen = merged(node(0, 5), node(1, measurements=(number(12.5),)))
    assert outcome(seen) is Outcome.SUCCESS
    assert [(item.value, item.rank) for item in seen.measurements] == [(12.5, 1)]


def test_rates_of_several_ranks_are_added_up_and_the_ranks_are_named() -> None:
    seen = merged(node(0, measurements=(number(10.0),)), node(1, measurements=(number(2.5),)))
    assert [item.value for item in seen.measurements] == [12.5]
    assert "several nodes measured: node 0 (h0), node 1 (h1)" in seen.notes


def test_an_unknown_metric_is_added_up_with_a_warning() -> None:
    seen = merged(node(0, measurements=(number(1.0, "foo"),)), node(1, measurements=(number(2.0, "foo"),)))
    assert [item.value for item in seen.measurements] == [3.0]
    assert any("unknown kind" in note for note in seen.notes)


def test_a_results_file_counts_from_the_lowest_rank_that_measured_in_one() -> None:
    one = order(results_file="r.csv", nnodes=3, reporters=3)
    seen = merged(node(0), node(2, measurements=(row(9.0),)), node(1, measurements=(row(1.5),)), of=one)
    assert [(item.value, item.rank) for item in seen.measurements] == [(1.5, 1)]
    assert "the results file of node 1 (h1) counts; not counted are the numbers of node 2 (h2)" in seen.notes


def test_a_results_file_beats_metric_lines_of_other_ranks() -> None:
    one = order(results_file="r.csv")
    seen = merged(node(0, measurements=(number(99.0),)), node(1, measurements=(row(1.5),)), of=one)
    assert [item.value for item in seen.measurements] == [1.5]
    assert any("not counted" in note for note in seen.notes)


def test_node_0_exits_3_and_node_1_measures() -> None:
    verdict = judge(merged(node(0, 3), node(1, measurements=(number(1.0),))))
    assert verdict.outcome is Outcome.INCOMPLETE
    assert verdict.warnings == ("node 0 (h0) exited 3",)


def test_node_1_is_killed_and_nothing_is_measured() -> None:
    verdict = judge(merged(node(0, 5), node(1, 137)))
    assert verdict.outcome is Outcome.FAILURE
    assert verdict.reason == "node 1 (h1) exited 137 (killed, often out of memory)"


def test_a_node_that_never_reported_spoils_no_measurement_and_no_failure_hides_it() -> None:
    assert outcome(merged(node(0, measurements=(number(1.0),)), silent(1))) is Outcome.INCOMPLETE
    verdict = judge(merged(node(0, 5), silent(1), scheduler=SchedulerReport("Slurm", "NODE_FAIL", False, "0:0")))
    assert verdict.reason == ("node 1 reported no status (killed or lost): there is no marker; Slurm says NODE_FAIL")


def test_a_time_limit_of_madengine_on_a_node_is_the_runs() -> None:
    timed_out = Interruption(InterruptionKind.TIMEOUT, "timed out after 2 s")
    verdict = judge(merged(node(0, 124, interruption=timed_out), node(1, 124, interruption=timed_out)))
    assert verdict.reason == "timed out after 2 s"


def test_a_node_that_slurm_told_to_end_was_not_cancelled_by_the_user() -> None:
    cancelled = Interruption(InterruptionKind.CANCELLED, "cancelled after 3 s")
    seen = merged(node(0, 143, interruption=cancelled), node(1, 143, interruption=cancelled))
    assert seen.interruption is None


def test_our_own_interruption_comes_first() -> None:
    ours = Interruption(InterruptionKind.CANCELLED, "cancelled by me")
    assert merged(node(0, 143), node(1, 143), interruption=ours).interruption == ours


def test_a_run_that_all_nodes_skipped_is_skipped() -> None:
    assert outcome(merged(node(0, skipped="gfx1"), node(1, skipped="gfx1"))) is Outcome.SKIPPED
    assert merged(node(0, skipped="gfx1"), node(1)).skipped is None


def test_nothing_measured_and_all_clean_tells_how_to_mend_it_once() -> None:
    problem = ContractProblem("no r.csv", searched=("/w/r.csv",), remedy="write it")
    seen = merged(node(0, 5, contract_problems=(problem,)), node(1, 5, contract_problems=(problem,)))
    assert outcome(seen) is Outcome.NO_METRIC
    assert seen.contract_problems == (problem,)


def test_a_rank_that_has_no_results_file_breaks_no_contract_when_another_has_it() -> None:
    problem = ContractProblem("no r.csv")
    one = order(results_file="r.csv")
    seen = merged(node(0, 5, contract_problems=(problem,)), node(1, measurements=(row(1.0),)), of=one)
    assert (seen.contract_problems, outcome(seen)) == ((), Outcome.SUCCESS)


def test_empty_rows_are_those_of_the_file_that_counts() -> None:
    one = order(results_file="r.csv")
    empty = EmptyRow("b", "ms", "nan", "r.csv:3")
    seen = merged(node(0, measurements=(row(1.0),), empty_rows=(empty,)), node(1, empty_rows=(empty,)), of=one)
    assert [(item.name, item.rank) for item in seen.empty_rows] == [("b", 0)]
    assert merged(node(0, 5), node(1, 5, empty_rows=(empty,)), of=one).empty_rows == (replace(empty, rank=1),)


def test_findings_of_logs_say_on_which_node() -> None:
    seen = merged(node(0), node(1, log_findings=(LogFinding("run.log", 3, "RuntimeError:", "boom"),)))
    assert [finding.file for finding in seen.log_findings] == ["node_1/logs/run.log"]


def test_remarks_of_one_node_have_its_name_and_those_of_all_are_said_once() -> None:
    seen = merged(node(0, notes=("same", "mine")), node(1, notes=("same",), troubles=("post-script x exited 1",)))
    assert seen.notes == ("same", "node 0 (h0): mine")
    assert seen.troubles == ("node 1 (h1): post-script x exited 1",)


def test_on_one_node_remarks_need_no_name() -> None:
    assert merged(node(0, notes=("mine",)), of=order(nnodes=1, reporters=1)).notes == ("mine",)


def test_the_promised_number_of_results_is_the_orders() -> None:
    seen = merged(node(0, measurements=(number(1.0),)), node(1, 5), of=order(expected_results=3))
    assert outcome(seen) is Outcome.INCOMPLETE


CODES = st.sampled_from([0, 3, 5, 124, 137, 143, None])
NODES = st.lists(st.tuples(CODES, st.booleans()), min_size=1, max_size=4)
RANKING = [Outcome.SUCCESS, Outcome.INCOMPLETE, Outcome.NO_METRIC, Outcome.FAILURE]


def _nodes(shape: list[tuple[int | None, bool]]) -> list[NodeReading]:
    return [
        node(rank, code, measurements=(number(2.0**rank),) if measures else ())
        for rank, (code, measures) in enumerate(shape)
    ]


@given(NODES)
def test_nothing_is_invented_and_nothing_is_lost(shape: list[tuple[int | None, bool]]) -> None:
    nodes = _nodes(shape)
    seen = merged(*nodes, of=order(nnodes=len(nodes), reporters=len(nodes)))
    told = sum(item.value for reading in nodes for item in reading.evidence.measurements)  # type: ignore[union-attr]
    assert sum(item.value for item in seen.measurements) == told


@given(NODES)
def test_the_order_in_which_nodes_are_read_does_not_matter(shape: list[tuple[int | None, bool]]) -> None:
    nodes = _nodes(shape)
    one = order(nnodes=len(nodes), reporters=len(nodes))
    assert len({merged(*each, of=one) for each in itertools.permutations(nodes)}) == 1


@given(NODES, st.sampled_from([3, 137, None]))
def test_a_bad_node_more_never_makes_a_verdict_better(shape: list[tuple[int | None, bool]], code: int | None) -> None:
    nodes = _nodes(shape)
    one, more = (order(nnodes=n, reporters=n) for n in (len(nodes), len(nodes) + 1))
    before = outcome(merged(*nodes, of=one))
    after = outcome(merged(*nodes, node(len(nodes), code), of=more))
    assert RANKING.index(after) >= RANKING.index(before)
