"""The fault table: everything that can go wrong on a real Slurm, what must be said of it, and what is.

All faults happen at the same time, since most of them are waiting; each is a test, and the last one prints the table.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.integration.slurm.desk import Desk, Seen
from tests.integration.slurm.faults import FAULTS, Fault
from tests.services.cluster import Cluster

AT_ONCE = 8
BY_NAME = {fault.name: fault for fault in FAULTS}


@pytest.fixture(scope="module")
def seen(slurm_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Future[Seen]]]:
    """What every fault came to, as a promise."""
    all_nodes_are_there = threading.Event()
    ordered = sorted(FAULTS, key=lambda fault: not fault.first)

    def bring_about(fault: Fault, folder: Path) -> Seen:
        desk = Desk(folder, slurm_cluster)
        desk.furnish(fault.script, slurm=fault.slurm, card=fault.card, **{"distributed": _ranks(fault), **fault.blocks})
        if fault.first:
            try:
                return fault.go(desk)
            finally:
                all_nodes_are_there.set()
        all_nodes_are_there.wait(120)
        return fault.go(desk)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        folders = {fault.name: tmp_path_factory.mktemp("fault") for fault in ordered}
        yield {fault.name: pool.submit(bring_about, fault, folders[fault.name]) for fault in ordered}


def _ranks(fault: Fault) -> dict[str, object]:
    return {"launcher": "torchrun", "nnodes": fault.slurm["nodes"], "nproc_per_node": 1}


@pytest.mark.parametrize("name", list(BY_NAME))
def test_a_fault_is_told_for_what_it_is(name: str, seen: Mapping[str, Future[Seen]]) -> None:
    fault, found = BY_NAME[name], seen[name].result()
    assert found.outcomes[:1] == [fault.outcome], found.said
    assert found.code == fault.code, found.said
    assert tuple(found.numbers) == fault.rows, found.said
    shown = found.said + str(found.document)
    assert [words for words in fault.words if words not in shown] == [], found.said
    assert [words for words in fault.unsaid if words in found.said] == [], found.said


def test_no_false_success_and_no_lost_measurement(
    seen: Mapping[str, Future[Seen]], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [f"{'fault':<52} {'expected':<12} {'seen':<12} exit  rows"]
    wrong = []
    for fault in FAULTS:
        found = seen[fault.name].result()
        outcome = ", ".join(found.outcomes) or "nothing"
        numbers = " ".join(f"{status}:{value or '-'}" for status, value in found.numbers)
        lines.append(f"{fault.name:<52} {fault.outcome:<12} {outcome:<12} {found.code:<4}  {numbers}")
        measured = sum(bool(value) for _, value in fault.rows)
        if (fault.outcome != "SUCCESS" and "SUCCESS" in found.outcomes) or measured != sum(
            bool(value) for _, value in found.numbers
        ):
            wrong.append(fault.name)
    with capsys.disabled():
        print("\n" + "\n".join(lines))
    assert wrong == []
