"""What is looked at before jobs are submitted, and for `madengine doctor`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from madengine.deployment.base import CheckProblem, Finding
from madengine.deployment.slurm.client import Ask
from madengine.deployment.slurm.facts import cluster_facts
from madengine.deployment.slurm.options import SlurmOptions
from madengine.deployment.slurm.preflight import cluster_findings, job_findings
from madengine.deployment.slurm.probe import ProbeContext, probe_findings

T = TypeVar("T")


def check_jobs(options: Sequence[SlurmOptions], context: ProbeContext, ask: Ask) -> tuple[CheckProblem, ...]:
    """What would keep the cluster from taking these jobs; equal ones are looked at once.

    A node is looked at when ``enable_node_check`` asks for it, since that waits for a free one; what it lacks keeps a
    job with ``allow_submit_without_clean_nodes`` from nothing.
    """
    jobs = _distinct(options)
    if not jobs:
        return ()
    found = _problems(_seen(jobs, ask))
    for job in jobs if not found else ():
        if job.enable_node_check and not job.allow_submit_without_clean_nodes:
            found += _problems(probe_findings(job, context, ask))
    return tuple(CheckProblem(f"{each.subject}: {each.detail}", each.remedy) for each in _distinct(found))


def examine_jobs(options: Sequence[SlurmOptions], context: ProbeContext, ask: Ask) -> tuple[Finding, ...]:
    """Everything about the cluster, what these jobs ask of it, and what a node sees of what they need."""
    jobs = _distinct(options)
    found = list(_seen(jobs, ask))
    if not _problems(found):
        found += [each for job in jobs for each in probe_findings(job, context, ask)]
    return tuple(_distinct(found))


def _seen(jobs: Sequence[SlurmOptions], ask: Ask) -> Iterator[Finding]:
    facts = cluster_facts(ask)
    yield from cluster_findings(facts)
    for job in jobs:
        yield from job_findings(job, facts)


def _problems(findings: Iterable[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.state == "problem"]


def _distinct(items: Iterable[T]) -> list[T]:
    """Each once, in their order; options hold mappings and so have no hash."""
    found: list[T] = []
    for item in items:
        if item not in found:
            found.append(item)
    return found
