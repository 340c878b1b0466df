"""What is known of a run without looking at its results: the plain columns of perf.csv."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from madengine.deployment.base import Observed
from madengine.execution.spec import RunSpec
from madengine.orchestration.hosts import shown_hosts
from madengine.orchestration.report import NOTHING_OBSERVED
from madengine.reporting.perf_rows import RunFacts

PIPELINE_VARIABLE = "pipeline"
BUILD_VARIABLE = "BUILD_NUMBER"


def run_facts(
    spec: RunSpec,
    *,
    duration: float,
    git_commit: str,
    machine: str,
    environ: Mapping[str, str],
    observed: Observed = NOTHING_OBSERVED,
) -> RunFacts:
    """The facts of one run. ``duration`` is in seconds, ``git_commit`` the package's or the cloned repository's.

    ``machine`` is the one that gave the command; a run that was elsewhere has the names of its own.
    """
    card, image = spec.card, spec.image
    gpus = _gpus(spec, observed)
    return RunFacts(
        model=card.name,
        n_gpus=gpus.in_all,
        nnodes=spec.place.nnodes,
        gpus_per_node=gpus.per_node,
        training_precision=card.text("training_precision"),
        pipeline=environ.get(PIPELINE_VARIABLE, ""),
        args=card.text("args"),
        tags=card.tags,
        docker_file=image.text("dockerfile"),
        base_docker=image.text("base_docker"),
        docker_sha=image.text("docker_sha"),
        docker_image=image.docker_image,
        git_commit=git_commit,
        machine_name=shown_hosts(observed.hosts) if spec.place.elsewhere else machine,
        deployment_type=spec.place.deployment,
        launcher=spec.launcher,
        gpu_architecture=gpus.architecture,
        build_duration=image.build_duration,
        test_duration=round(duration, 3),
        dataname=str(spec.data.get("dataname") or card.text("data")),
        data_provider_type=str(spec.data.get("data_provider_type") or ""),
        build_number=environ.get(BUILD_VARIABLE) or 0,
        additional_docker_run_options=card.text("additional_docker_run_options"),
    )


class _Gpus(NamedTuple):
    in_all: str | int
    per_node: str | int
    architecture: str


def _gpus(spec: RunSpec, observed: Observed) -> _Gpus:
    """The GPUs in perf.csv: those that were granted, else those that are asked for."""
    place, asked = spec.place, spec.card.n_gpus
    granted = observed.gpus if place.elsewhere else spec.gpus
    if granted is not None:
        count = len(granted.indices)
        in_all = count * place.nnodes if count or granted.vendor == "CPU" else asked
        return _Gpus(in_all, count, granted.architecture)
    if place.gpus_per_node is None:
        return _Gpus(asked, "", "")
    return _Gpus(place.gpus_per_node * place.nnodes, place.gpus_per_node, "")
