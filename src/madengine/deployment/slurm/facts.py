"""What a cluster offers, asked of Slurm's own commands before anything is submitted.

Formats are those of scontrol(1), sinfo(1) and sacctmgr(1). What a command does not tell is None: unknown claims
nothing.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from madengine.deployment.slurm.client import Ask, ask_program
from madengine.deployment.slurm.script import limit_seconds

COMMANDS = ("sbatch", "squeue", "scontrol", "scancel", "srun", "sacct")
LIMIT = 20.0  # seconds for an answer
_USABLE = ("idle", "mixed", "allocated", "completing", "planned")


@dataclass(frozen=True)
class Partition:
    """A partition. ``max_nodes`` and ``max_time`` (seconds) are None without a limit.

    ``nodes`` is how many it has, ``usable`` how many of these are not down or drained, ``gpus`` the most that one node
    has; both are None when nobody says. ``accounts`` are those that may use it, None for all.
    """

    name: str
    state: str = "UP"
    default: bool = False
    nodes: int = 0
    usable: int | None = None
    max_nodes: int | None = None
    max_time: float | None = None
    gpus: int | None = None
    accounts: frozenset[str] | None = None


@dataclass(frozen=True)
class ClusterFacts:
    """What is known of a cluster. ``trouble`` is why its controller could not be asked; nothing else is known then."""

    missing: tuple[str, ...] = ()
    trouble: str = ""
    partitions: Mapping[str, Partition] = field(default_factory=dict)
    accounts: frozenset[str] | None = None
    qos: frozenset[str] | None = None
    reservations: frozenset[str] | None = None
    features: frozenset[str] | None = None

    @property
    def missing_needed(self) -> tuple[str, ...]:
        """The commands without which no job can be submitted and watched; accounting is a help, not a need."""
        return tuple(name for name in self.missing if name != "sacct")


def cluster_facts(ask: Ask = ask_program, which: Callable[[str], str | None] = shutil.which) -> ClusterFacts:
    """Ask the cluster what it offers. Starts nothing."""
    missing = tuple(name for name in COMMANDS if which(name) is None)
    if "scontrol" in missing:
        return ClusterFacts(missing, "Slurm's commands are not here")
    ping = ask(["scontrol", "ping"], None, LIMIT)
    if ping.exit_code != 0 or "UP" not in ping.stdout:
        said = " ".join((ping.stdout + ping.stderr).split()) or f"scontrol ping exited {ping.exit_code}"
        return ClusterFacts(missing, said)
    return ClusterFacts(
        missing,
        partitions=_partitions(ask),
        accounts=_lines(ask, "sacctmgr", "-n", "-P", "show", "account", "format=account"),
        qos=_lines(ask, "sacctmgr", "-n", "-P", "show", "qos", "format=name"),
        reservations=_reservations(ask),
        features=_features(ask),
    )


def _partitions(ask: Ask) -> dict[str, Partition]:
    shown = ask(["scontrol", "-a", "-o", "show", "partition"], None, LIMIT).stdout
    asked = ask(["sinfo", "-a", "-h", "-o", "%R|%D|%T|%G"], None, LIMIT)
    sizes = _sizes(asked.stdout) if asked.exit_code == 0 else {}
    found = {}
    for line in shown.splitlines():
        words = dict(re.findall(r"(\w+)=(\S*)", line))
        name = words.get("PartitionName", "")
        if name:
            usable, gpus = sizes.get(name, (None, None))
            found[name] = Partition(
                name,
                words.get("State", "UP"),
                words.get("Default") == "YES",
                int(words.get("TotalNodes") or 0),
                usable,
                _count(words.get("MaxNodes", "")),
                limit_seconds(words.get("MaxTime", "")),
                gpus,
                _accounts(words.get("AllowAccounts", "")),
            )
    return found


def _sizes(text: str) -> dict[str, tuple[int, int]]:
    """Per partition, the nodes that can be used and the most GPUs of one node, of all types together."""
    found: dict[str, tuple[int, int]] = {}
    for line in text.splitlines():
        name, count, state, gres = ([*line.split("|"), "", "", ""])[:4]
        usable, gpus = found.get(name, (0, 0))
        counts = [int(number) for number in re.findall(r"gpu(?::[^:,()]+)?:(\d+)", gres)]
        here = state.rstrip("*+~#$@!%^-").lower() in _USABLE
        found[name] = (usable + (int(count) if here and count.isdecimal() else 0), max(sum(counts), gpus))
    return found


def _reservations(ask: Ask) -> frozenset[str] | None:
    done = ask(["scontrol", "-o", "show", "reservation"], None, LIMIT)
    return frozenset(re.findall(r"ReservationName=(\S+)", done.stdout)) if done.exit_code == 0 else None


def _features(ask: Ask) -> frozenset[str] | None:
    done = ask(["sinfo", "-a", "-h", "-o", "%f"], None, LIMIT)
    if done.exit_code != 0:
        return None
    return frozenset(
        word for line in done.stdout.splitlines() for word in line.split(",") if word not in ("", "(null)")
    )


def _lines(ask: Ask, *argv: str) -> frozenset[str] | None:
    done = ask(argv, None, LIMIT)
    return frozenset(line.strip() for line in done.stdout.splitlines() if line.strip()) if done.exit_code == 0 else None


def _count(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


def _accounts(text: str) -> frozenset[str] | None:
    return None if text in ("", "ALL") else frozenset(text.lower().split(","))
