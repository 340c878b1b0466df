"""The names of a run's machines in one cell."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from madengine.orchestration.hosts import shown_hosts


@pytest.mark.parametrize(
    ("hosts", "shown"),
    [
        ([], ""),
        (["login"], "login"),
        (["n1", "n2", "n3", "n4"], "n1,n2,n3,n4"),
        ([f"n{n}" for n in range(1, 65)], "n[1-64]"),
        ([f"n{n:03}" for n in (1, 2, 3, 7, 9, 10)], "n[001-003,007,009-010]"),
        (["n9", "n10", "n11", "n8", "n7"], "n[7-11]"),
        ([f"n{n:03}" for n in (98, 99, 100, 101, 102)], "n[098-102]"),
        (["a1", "a2", "gpu-07", "b", "a3"], "a[1-3],gpu-07,b"),
        ([f"gpu{n}-ib0.site" for n in range(5)], ",".join(f"gpu{n}-ib0.site" for n in range(5))),
        ([f"gpu{n}.rack2.site" for n in range(5)], "gpu[0-4].rack2.site"),
        (["n1"] * 4 + ["n2"], "n[1-2]"),
    ],
)
def test_few_are_listed_and_many_are_written_as_slurm_writes_them(hosts: Sequence[str], shown: str) -> None:
    assert shown_hosts(hosts) == shown
