"""What can go wrong on a cluster, and what madengine must say of it. Each fault happens on a real Slurm."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.integration.slurm.desk import FAR_FROM_FAULTS, Desk, Seen, running_nodes, wrapper

MEASURE = "echo 'performance: 12.5 samples_per_second'\n"
ON_RANK = 'if [ "$NODE_RANK" = {rank} ]; then {what}; fi\n'
CSV = "printf 'model,performance,metric\\na,1.5,ms\\n' > ../{name}\n"
NODE_SCRIPT = "$(ps -o ppid= -p $PPID)"  # the shell above madengine


def on(rank: int, what: str) -> str:
    """A line that only one rank takes."""
    return ON_RANK.format(rank=rank, what=what.strip())


MEASURE_ON_1 = on(1, MEASURE)
QUIET = ("--output", "/dev/null")
GOOD = ("SUCCESS", "12.5")
BAD = ("FAILURE", "")


def _go(desk: Desk) -> Seen:
    return desk.ended(desk.start_run())


def _unasked(desk: Desk) -> Seen:
    """Submit without the questions that would keep it from being submitted."""
    return desk.ended(desk.start_run("--skip-preflight"))


def _while_running(act: Callable[[Desk], None], mend: tuple[str, ...] = ()) -> Callable[[Desk], Seen]:
    """Do something to a run that goes on; ``mend`` makes the cluster whole again."""

    def go(desk: Desk) -> Seen:
        process = desk.start_run()
        try:
            running_nodes(desk, range(2))
            act(desk)
            return desk.ended(process)
        finally:
            if mend:
                desk.cluster.fault(*mend)

    return go


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong: how it is brought about, and what must be seen.

    ``words`` must be said; ``unsaid`` must not. ``heavy`` faults wait until the runs that need all nodes are over.
    """

    name: str
    script: str
    outcome: str
    code: int
    words: tuple[str, ...] = ()
    rows: tuple[tuple[str, str], ...] = ()
    unsaid: tuple[str, ...] = ()
    slurm: dict[str, Any] = field(default_factory=dict)
    card: dict[str, Any] = field(default_factory=dict)
    blocks: dict[str, Any] = field(default_factory=dict)
    go: Callable[[Desk], Seen] = _go
    first: bool = False


def general(**slurm: Any) -> dict[str, Any]:
    """Two nodes, away from those that are made to fail; storage does not lag here."""
    return {"nodes": 2, "exclude": FAR_FROM_FAULTS, "marker_grace_seconds": 2, **slurm}


def on_nodes(names: str, **slurm: Any) -> dict[str, Any]:
    """Two nodes of a fault's own."""
    return {"nodes": 2, "nodelist": names, "marker_grace_seconds": 2, **slurm}


def _scancel(desk: Desk) -> None:
    desk.cluster.ask("scancel", desk.job_id())


def _set_node_down(desk: Desk) -> None:
    desk.cluster.fault("node-down", "node10")


def _kill_slurmd(desk: Desk) -> None:
    desk.cluster.fault("kill-node", "node12")


def _preempt(desk: Desk) -> None:
    desk.cluster.ask("sbatch", "-p", "high", "-w", "node15,node16", "-N2", "--exclusive", *QUIET, "--wrap", "sleep 1")


def _interrupt(desk: Desk) -> Seen:
    process = desk.start_run()
    running_nodes(desk, range(2))
    process.send_signal(signal.SIGINT)
    return desk.ended(process)


def _held_back(desk: Desk) -> Seen:
    holder = desk.cluster.ask(
        "sbatch", "--parsable", "-w", "node13", "--exclusive", *QUIET, "--wrap", "sleep 120"
    ).strip()
    try:
        desk.wait(lambda: "RUNNING" in desk.cluster.ask("squeue", "-h", "-j", holder, "-o", "%T"))
        return desk.ended(desk.start_run())
    finally:
        desk.cluster.ask("scancel", holder)


def _without_madengine(desk: Desk) -> Seen:
    """The submitting command is on no node, and neither is another one."""
    own = desk.folder / "own" / "madengine"
    own.parent.mkdir()
    shutil.copy(desk.command[0], own)
    real = shutil.which("sbatch")
    away = f'job=$({real} --hold "$@") || exit\nrm {own}\nscontrol release "$job"\necho "$job"\n'
    wrapper(desk, "sbatch", f"#!/bin/sh\n{away}")
    desk.environment["PATH"] = f"{desk.folder}/bin:/usr/bin:/bin:/usr/sbin:/sbin"
    desk.command = [str(own)]
    return desk.ended(desk.start_run())


def _late_marker(desk: Desk) -> Seen:
    """Node 1's marker is out of sight from the moment it is written until some seconds after the end."""
    process = desk.start_run()
    marker = desk.file("node_1/node.status")
    away = marker.rename(marker.with_name("out-of-sight"))
    desk.wait((desk.run_dir() / "node_0" / "node.status").exists)
    time.sleep(4)
    assert process.poll() is None, "it did not wait"
    away.rename(marker)
    return desk.ended(process)


def _truncated_marker(desk: Desk) -> Seen:
    desk.ended(desk.start_run("--detach"))
    marker = desk.file("node_1/node.status")
    desk.file("node_0/node.status")
    marker.write_text(marker.read_text()[:30])
    return _collected(desk)


def _collected(desk: Desk, *words: str) -> Seen:
    """What ``collect`` says, with its report read from its JSON."""
    seen = desk.told("collect", "--json", *words)
    import json

    start = seen.said.find('{\n  "exit_code"')
    document = json.JSONDecoder().raw_decode(seen.said[start:])[0] if start >= 0 else {}
    return Seen(seen.code, seen.said, document, seen.rows)


def _collect_twice(desk: Desk) -> Seen:
    desk.ended(desk.start_run("--detach"))
    first = _collected(desk)
    desk.told("collect")
    again = _collected(desk, desk.run_dir().name)
    assert again.code == first.code and "recorded before" in desk.told("collect", desk.run_dir().name).said
    return Seen(again.code, first.said, first.document, desk.rows())


def _submitter_killed(desk: Desk) -> Seen:
    process = desk.start_run()
    desk.job_id()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return _collected(desk)


def _submitter_killed_before_the_answer(desk: Desk) -> Seen:
    real = shutil.which("sbatch")
    wrapper(desk, "sbatch", f'#!/bin/bash\n{real} "$@" >/dev/null\nkill -KILL "$PPID"\n')
    process = desk.start_run()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not (desk.run_dir() / "submitted.json").exists()
    return _collected(desk)


def _two_at_once(desk: Desk) -> Seen:
    shutil.copy(desk.folder / "m.json", desk.folder / "other.json")
    other = desk.start_run(manifest="other.json", summary="other.json.out")
    seen = desk.ended(desk.start_run())
    assert desk.ended(other).code == 0
    return Seen(seen.code, seen.said, seen.document, desk.rows())


def _requeue(desk: Desk) -> Seen:
    process = desk.start_run()
    running_nodes(desk, range(2))
    desk.cluster.ask("scontrol", "requeue", desk.job_id())
    desk.wait(lambda: "PENDING" in desk.cluster.ask("squeue", "-h", "-j", desk.job_id(), "-o", "%T"))
    desk.cluster.ask("scontrol", "update", f"JobId={desk.job_id()}", "StartTime=now")  # it would wait two minutes
    return desk.ended(process)


def _node_madengine_killed(desk: Desk) -> Seen:
    process = desk.start_run()
    log = desk.file("node_1/logs/run.log")
    desk.wait(lambda: b"performance" in log.read_bytes())
    found = subprocess.run(
        ["pgrep", "-f", f"node {desk.run_dir()} --rank 1"], check=False, capture_output=True, text=True
    ).stdout.split()
    for pid in found:
        os.kill(int(pid), signal.SIGKILL)
    return desk.ended(process)


_SLEEP = "sleep 100\n"
_FOREIGN = (
    "printf 'run=another\\nnode=1\\nhost=h\\nexit_code=0\\ntimestamp=x\\n' > ../../node.status; "
    f"kill -KILL {NODE_SCRIPT} $PPID"
)
_UNWRITABLE = 'd=$(cd ../.. && pwd); cd /; rm -rf "$d"; touch "$d"'
_OWN_STEP = 'srun --overlap -N1 -n1 --jobid="$SLURM_JOB_ID" false || true'

FAULTS = (
    Fault("all is well", MEASURE_ON_1, "SUCCESS", 0, rows=(GOOD,), slurm=general(), unsaid=("warning",)),
    Fault(
        "node 0 exits 3, node 1 measures",
        on(0, "exit 3") + MEASURE_ON_1,
        "INCOMPLETE",
        0,
        ("node 0 (node", "exited 3"),
        (GOOD,),
        slurm=general(),
    ),
    Fault(
        "node 1 is killed, nothing measured",
        on(1, "kill -KILL $$"),
        "FAILURE",
        3,
        ("node 1 (node", "exited 137 (killed"),
        (BAD,),
        slurm=general(),
    ),
    Fault(
        "a node set DOWN",
        _SLEEP,
        "FAILURE",
        3,
        ("NODE_FAIL",),
        (BAD,),
        slurm=on_nodes("node[9-10]", requeue=False),
        go=_while_running(_set_node_down, ("node-up", "node10")),
    ),
    Fault(
        "a slurmd killed",
        _SLEEP,
        "FAILURE",
        3,
        ("NODE_FAIL",),
        (BAD,),
        slurm=on_nodes("node[11-12]", requeue=False),
        go=_while_running(_kill_slurmd, ("start-node", "node12")),
    ),
    Fault(
        "cancelled from outside",
        _SLEEP,
        "FAILURE",
        3,
        ("Slurm says CANCELLED by 0", "exited 143 (terminated)"),
        (BAD,),
        slurm=general(),
        go=_while_running(_scancel),
    ),
    Fault(
        "cancelled after it measured",
        MEASURE_ON_1 + _SLEEP,
        "INCOMPLETE",
        0,
        ("CANCELLED by 0",),
        (GOOD,),
        slurm=general(),
        go=_while_running(_scancel),
    ),
    Fault("time limit", _SLEEP, "FAILURE", 3, ("time limit of 1:00 was near",), (BAD,), slurm=general(time="1")),
    Fault(
        "time limit after it measured",
        MEASURE_ON_1 + _SLEEP,
        "INCOMPLETE",
        0,
        ("time limit of 1:00 was near",),
        (GOOD,),
        slurm=general(time="1"),
    ),
    Fault(
        "madengine's own time limit",
        _SLEEP,
        "FAILURE",
        3,
        ("timed out after 2 s",),
        (BAD,),
        slurm=general(),
        card={"timeout": 2},
    ),
    Fault(
        "out of memory",
        "python3 -c 'import time; x = bytearray(700 << 20); time.sleep(60)'\n",
        "FAILURE",
        3,
        ("node 0", "Slurm says"),
        (BAD,),
        slurm=general(mem="200"),
    ),
    Fault(
        "sbatch refuses the account",
        MEASURE,
        "FAILURE",
        3,
        ("refused", "Invalid account"),
        (BAD,),
        slurm=general(account="nope"),
        go=_unasked,
    ),
    Fault(
        "sbatch refuses the partition",
        MEASURE,
        "FAILURE",
        3,
        ("refused", "invalid partition"),
        (BAD,),
        slurm=general(partition="nope"),
        go=_unasked,
    ),
    Fault(
        "pending for too long",
        MEASURE,
        "FAILURE",
        3,
        ("timed out", "waiting for its nodes after 3 s"),
        (BAD,),
        slurm=on_nodes("node13", nodes=1, pending_timeout=3),
        go=_held_back,
    ),
    Fault(
        "an impossible number of nodes",
        MEASURE,
        "FAILURE",
        3,
        ("can never start: PartitionNodeLimit",),
        (BAD,),
        slurm={"nodes": 17},
        go=_unasked,
    ),
    Fault(
        "a partition that takes other accounts",
        MEASURE,
        "FAILURE",
        3,
        ("can never start", "account"),
        (BAD,),
        slurm=general(partition="closed"),
    ),
    Fault(
        "marker truncated, measured elsewhere",
        on(0, MEASURE),
        "INCOMPLETE",
        0,
        ("node 1", "is cut off"),
        (GOOD,),
        slurm=general(),
        go=_truncated_marker,
    ),
    Fault(
        "node folder unwritable",
        on(1, _UNWRITABLE),
        "FAILURE",
        3,
        ("node 1 reported no status",),
        (BAD,),
        slurm=general(),
    ),
    Fault(
        "node folder unwritable, measured elsewhere",
        on(0, MEASURE) + on(1, _UNWRITABLE),
        "INCOMPLETE",
        0,
        ("node 1 reported no status",),
        (GOOD,),
        slurm=general(),
    ),
    Fault(
        "madengine is not on the nodes",
        MEASURE,
        "FAILURE",
        3,
        ("node 0 (node", "exited 127 (command not found)", "madengine is not on this node"),
        (BAD,),
        slurm=general(),
        go=_without_madengine,
    ),
    Fault(
        "the script is missing",
        MEASURE,
        "FAILURE",
        3,
        ("scripts/m/other.sh",),
        (BAD,),
        slurm=general(),
        card={"scripts": "scripts/m/other.sh"},
        go=lambda desk: (_rename_script(desk), _go(desk))[1],
    ),
    Fault(
        "results CSV misspelt",
        on(0, CSV.format(name="perf_llama.csv")),
        "NO_METRIC",
        5,
        ("perf_lama.csv", "perf_llama.csv"),
        (("NO_METRIC", ""),),
        slurm=general(),
        card={"multiple_results": "perf_lama.csv"},
    ),
    Fault("metric nan", "echo 'performance: nan x'\n", "NO_METRIC", 5, ("nan",), (("NO_METRIC", ""),), slurm=general()),
    Fault("two ranks measure", MEASURE, "SUCCESS", 0, rows=(("SUCCESS", "25.0"),), slurm=general()),
    Fault(
        "two ranks have the results CSV",
        CSV.format(name="r.csv"),
        "SUCCESS",
        0,
        (),
        (("SUCCESS", "1.5"),),
        slurm=general(),
        card={"multiple_results": "r.csv"},
    ),
    Fault(
        "COMPLETED, but a step FAILED",
        on(0, _OWN_STEP) + MEASURE_ON_1,
        "INCOMPLETE",
        0,
        ("COMPLETED, but step", "FAILED"),
        (GOOD,),
        slurm=general(),
    ),
    Fault(
        "requeued once, then good",
        'if [ "${SLURM_RESTART_COUNT:-0}" = 0 ]; then sleep 100; fi\n' + MEASURE_ON_1,
        "SUCCESS",
        0,
        (),
        (GOOD,),
        slurm=general(requeue=True),
        go=_requeue,
    ),
    Fault(
        "preempted",
        _SLEEP,
        "FAILURE",
        3,
        ("PREEMPTED",),
        (BAD,),
        slurm=on_nodes("node[15-16]", partition="low"),
        go=_while_running(_preempt),
    ),
    Fault(
        "marker seen late",
        on(0, "sleep 8") + MEASURE_ON_1,
        "SUCCESS",
        0,
        (),
        (GOOD,),
        slurm=general(marker_grace_seconds=30),
        go=_late_marker,
    ),
    Fault(
        "a marker of another run",
        on(1, _FOREIGN),
        "FAILURE",
        3,
        ("node 1", "is of another run"),
        (BAD,),
        slurm=general(),
    ),
    Fault(
        "the node's madengine is killed after it measured",
        MEASURE_ON_1 + on(1, "sleep 30"),
        "INCOMPLETE",
        0,
        ("node 1 (node", "exited 137"),
        (GOOD,),
        slurm=general(),
        go=_node_madengine_killed,
    ),
    Fault(
        "16 nodes",
        on(15, MEASURE),
        "SUCCESS",
        0,
        rows=(GOOD,),
        slurm={"nodes": 16, "marker_grace_seconds": 5},
        first=True,
    ),
    Fault(
        "names with spaces and quotes",
        MEASURE_ON_1,
        "SUCCESS",
        0,
        rows=(GOOD,),
        slurm=general(),
        card={"name": 'a model\'s "best" $(touch canary); x', "args": "--name 'it is'"},
    ),
    Fault(
        "env file sets a value with newlines",
        'test "$TWO" = "$(printf "a\\nb")" && ' + MEASURE,
        "SUCCESS",
        0,
        rows=(("SUCCESS", "25.0"),),
        slurm=general(),
        blocks={"env_file": "mad.env", "env_vars": {"TWO": "${LINES2}"}},
        go=lambda desk: (_env_file(desk, "LINES2=$'a\\nb'\n"), _go(desk))[1],
    ),
    Fault(
        "torn down on a bad exit, and none is bad",
        on(0, f"sleep 4; {MEASURE}"),
        "SUCCESS",
        0,
        rows=(GOOD,),
        slurm=general(kill_on_bad_exit=True),
    ),
    Fault(
        "torn down on a bad exit",
        on(1, "exit 3") + on(0, "sleep 60"),
        "FAILURE",
        3,
        ("node 1 (node", "exited 3"),
        (BAD,),
        slurm=general(kill_on_bad_exit=True),
    ),
    Fault(
        "a user who lets srun end late ranks",
        on(0, f"sleep 5; {MEASURE}"),
        "SUCCESS",
        0,
        rows=(GOOD,),
        slurm=general(),
        go=lambda desk: (desk.environment.update(SLURM_WAIT="1", SBATCH_TIMELIMIT="0:01"), _go(desk))[1],
    ),
    Fault(
        "a folder that looks like a pattern",
        MEASURE_ON_1,
        "SUCCESS",
        0,
        rows=(GOOD,),
        slurm=general(output_dir="50% of %j's"),
    ),
    Fault("two manifests at once", MEASURE_ON_1, "SUCCESS", 0, rows=(GOOD, GOOD), slurm=general(), go=_two_at_once),
    Fault("collected twice", MEASURE_ON_1, "SUCCESS", 0, rows=(GOOD,), slurm=general(), go=_collect_twice),
    Fault("submitter killed", MEASURE_ON_1, "SUCCESS", 0, rows=(GOOD,), slurm=general(), go=_submitter_killed),
    Fault(
        "submitter killed before the answer",
        MEASURE_ON_1,
        "SUCCESS",
        0,
        rows=(GOOD,),
        slurm=general(),
        go=_submitter_killed_before_the_answer,
    ),
    Fault(
        "Ctrl-C",
        _SLEEP,
        "FAILURE",
        130,
        ("cancelled by",),
        (BAD,),
        slurm=general(),
        go=_interrupt,
    ),
    Fault(
        "Ctrl-C after it measured",
        MEASURE_ON_1 + _SLEEP,
        "INCOMPLETE",
        130,
        ("cancelled by",),
        (GOOD,),
        slurm=general(),
        go=_interrupt,
    ),
)


def _rename_script(desk: Desk) -> None:
    (desk.package / "scripts/m/other.sh").unlink()


def _env_file(desk: Desk, text: str) -> None:
    (desk.folder / "mad.env").write_text(text)
