"""Collecting and judging a run of very many nodes, against reading the same files."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Result, interleaved, require
from madengine.deployment.order import JobOrder
from madengine.deployment.slurm.merge import merge
from madengine.deployment.slurm.nodes import read_nodes
from madengine.verdict.evidence import Outcome
from madengine.verdict.judge import judge

NODES = 10_000
RUN = "20261201T000000Z-m-abc123"
MOST_SECONDS = 1.0
MOST_MEMORY = 200.0  # MiB
ORDER = JobOrder(RUN, "k0", "m", "slurm", "1", "/p", nnodes=NODES, reporters=NODES)
PEAK = """
import sys
from pathlib import Path
from benchmarks.slurm_collect import collect
collect(Path(sys.argv[1]))
print([line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")][0])
"""


def measure(folder: Path) -> Iterator[Result]:
    """Every node has a marker; one of them measured, one failed, one never reported."""
    _nodes(folder)
    raw, collected = interleaved(lambda: _read(folder), lambda: collect(folder))
    yield Result("collect and judge 10,000 nodes", "reading the files", collected, raw, "s", raw * 3, "3x")
    yield Result("collect and judge 10,000 nodes, in all", "a second", collected, raw, "s", MOST_SECONDS, "1 s")
    argv = [sys.executable, "-c", PEAK, str(folder)]
    root = Path(__file__).parent.parent
    peak = float(subprocess.run(argv, cwd=root, check=True, capture_output=True, text=True).stdout) / 1024
    yield Result("collect and judge 10,000 nodes, peak memory", "200 MiB", peak, peak, "MiB", MOST_MEMORY, "200 MiB")


def collect(folder: Path) -> None:
    """Read what every node left, merge it and judge."""
    verdict = judge(merge(ORDER, read_nodes(folder, ORDER), scheduler=None, interruption=None))
    require(verdict.outcome is Outcome.INCOMPLETE and len(verdict.warnings) == 2, "the verdict names the two nodes")


def _read(folder: Path) -> None:
    """The same files, as raw as can be."""
    root = str(folder)
    for rank in range(NODES):
        for name in ("node.status", "evidence.json"):
            try:
                with open(f"{root}/node_{rank}/{name}", "rb") as file:  # noqa: PTH123 - a Path would cost more
                    file.read()
            except FileNotFoundError:
                continue


def _nodes(folder: Path) -> None:
    import json

    from madengine.verdict.evidence import Evidence, Measurement
    from madengine.verdict.evidence_json import to_json

    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    for rank in range(NODES):
        node = folder / f"node_{rank}"
        node.mkdir()
        code = 3 if rank == 7 else 0
        if rank != 8:
            facts = f"run={RUN}\njob=1\nattempt=0\nnode={rank}\nhost=n{rank}\nexit_code={code}\ntimestamp={now}\n"
            (node / "node.status").write_text(facts)
    told = Evidence(RUN, measurements=(Measurement(1.5, "x"),))
    (folder / "node_0" / "evidence.json").write_text(json.dumps(to_json(told)))
