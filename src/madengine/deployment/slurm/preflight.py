"""Whether a cluster will take a job, judged from what it offers. Pure; each problem is one line with its remedy."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator

from madengine.deployment.base import Finding
from madengine.deployment.slurm.facts import ClusterFacts, Partition
from madengine.deployment.slurm.options import CARD, CONFIGURED, SlurmOptions
from madengine.deployment.slurm.script import limit_seconds

SHOWN = 12


def cluster_findings(facts: ClusterFacts) -> Iterator[Finding]:
    """The cluster by itself: its commands, its controller, its partitions."""
    if facts.missing_needed:
        names = ", ".join(facts.missing_needed)
        remedy = "run this where jobs are submitted, or load Slurm's module"
        yield Finding("slurm commands", "problem", f"not found: {names}", remedy)
        return
    if facts.trouble:
        yield Finding(
            "slurmctld", "problem", f"does not answer: {facts.trouble}", "see `scontrol ping`; try again later"
        )
        return
    yield Finding("slurmctld", "ok", "answers")
    if facts.accounts is None:
        yield Finding("accounting", "warning", "does not answer: job states come from the controller alone")
    for partition in facts.partitions.values():
        yield Finding(f"partition {partition.name}", "ok", _offer(partition))


def job_findings(options: SlurmOptions, facts: ClusterFacts) -> Iterator[Finding]:
    """What one job asks for, against what there is. Nothing is said where nothing is known."""
    if facts.trouble or facts.missing_needed:
        return
    yield from _named("account", options.account, facts.accounts)
    yield from _named("qos", options.qos, facts.qos)
    yield from _named("reservation", options.reservation, facts.reservations)
    yield from _constraint(options, facts)
    partition = _partition(options, facts)
    if partition is None:
        if facts.partitions:
            for name in options.partition.split(","):  # of several Slurm itself chooses one that fits
                yield from _named("partition", name, facts.partitions)
            if not options.partition:
                names = ", ".join(sorted(facts.partitions)[:SHOWN])
                yield Finding(
                    "partition", "problem", "none is given and the cluster has no default", f"one of: {names}"
                )
        return
    yield from _partition_findings(options, partition)


def _partition_findings(options: SlurmOptions, partition: Partition) -> Iterator[Finding]:
    subject = f"partition {partition.name}"
    if partition.state != "UP":
        yield Finding(subject, "problem", f"it is {partition.state}", "choose another one, or wait")
    if partition.accounts is not None and options.account.lower() not in ("", *partition.accounts):
        names = ", ".join(sorted(partition.accounts))
        yield Finding(subject, "problem", f"it does not take the account {options.account!r}", f"it takes: {names}")
    if not options.nodelist:
        yield from _node_count(options, partition)
    limit = limit_seconds(options.time)
    if options.time and limit is None and options.time.upper() not in ("0", "UNLIMITED", "INFINITE"):
        yield Finding(
            "time", "problem", f"{options.time!r} is no time limit", 'write "24:00:00", "2-00:00:00" or minutes'
        )
    elif partition.max_time is not None and (limit is None or limit > partition.max_time):
        yield Finding(
            "time",
            "problem",
            f"{options.time} is longer than {partition.name} allows",
            f"at most {_shown_time(partition.max_time)}",
        )
    yield from _gpus(options, partition)


def _node_count(options: SlurmOptions, partition: Partition) -> Iterator[Finding]:
    most = min(partition.nodes, partition.max_nodes or partition.nodes)
    wanted = f"{options.nodes} node{'s' if options.nodes != 1 else ''}"
    if options.nodes > most:
        yield Finding("nodes", "problem", f"{wanted}: {partition.name} gives at most {most}", f"ask for at most {most}")
    elif partition.usable is not None and options.nodes > partition.usable:
        yield Finding(
            "nodes",
            "warning",
            f"{wanted}: only {partition.usable} of {partition.nodes} in {partition.name} can be used now",
            "the job will wait; see `sinfo -R`",
        )


def _gpus(options: SlurmOptions, partition: Partition) -> Iterator[Finding]:
    """A count that nobody wrote down is no reason to refuse: the cluster may know its GPUs otherwise."""
    offered = partition.gpus
    if offered is None or options.gpus_per_node <= offered or options.skip_gpus_directive:
        return
    asked = options.origins.get("gpus_per_node") in (CONFIGURED, CARD)
    knows = f"at most {offered}" if offered else "none"
    yield Finding(
        "gpus_per_node",
        "problem" if asked or not offered else "warning",
        f"{options.gpus_per_node} asked for, and Slurm knows {knows} on a node of {partition.name}",
        "set slurm.gpus_per_node, or slurm.skip_gpus_directive where the cluster hands out whole nodes",
    )


def _constraint(options: SlurmOptions, facts: ClusterFacts) -> Iterator[Finding]:
    """A plain feature can be looked up; expressions (``a&b``, ``[x|y]``) are Slurm's to judge."""
    wanted = options.constraint
    if wanted and facts.features is not None and wanted.replace("_", "").replace("-", "").isalnum():
        yield from _named("constraint", wanted, facts.features)


def _named(what: str, wanted: str, known: Collection[str] | None) -> Iterator[Finding]:
    if not wanted or known is None or wanted.lower() in {name.lower() for name in known}:
        return
    close = difflib.get_close_matches(wanted, sorted(known), n=1)
    names = ", ".join(sorted(known)[:SHOWN]) or "none"
    remedy = f"known here: {names}" + (f"; closest: {close[0]}" if close else "")
    yield Finding(what, "problem", f"the cluster has no {what} {wanted!r}", remedy)


def _partition(options: SlurmOptions, facts: ClusterFacts) -> Partition | None:
    if options.partition:
        return facts.partitions.get(options.partition)
    return next((partition for partition in facts.partitions.values() if partition.default), None)


def _offer(partition: Partition) -> str:
    limits = [f"at most {partition.max_nodes} for a job"] if partition.max_nodes else []
    limits += [f"at most {_shown_time(partition.max_time)}"] if partition.max_time else ["no time limit"]
    gpus = f", {partition.gpus} GPUs each" if partition.gpus else ""
    default = ", the default" if partition.default else ""
    usable = "" if partition.usable is None else f"{partition.usable} of "
    return f"{partition.state}, {usable}{partition.nodes} nodes usable{gpus}, {', '.join(limits)}{default}"


def _shown_time(seconds: float) -> str:
    """A limit as people say it."""
    return f"{seconds / 3600:g} h" if seconds >= 3600 else f"{seconds / 60:g} min"
