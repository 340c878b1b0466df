"""What is known of a run without looking at its results: the plain columns of perf.csv."""

from __future__ import annotations

from collections.abc import Mapping

from madengine.execution.spec import RunSpec
from madengine.reporting.perf_rows import RunFacts

PIPELINE_VARIABLE = "pipeline"
BUILD_VARIABLE = "BUILD_NUMBER"


def run_facts(spec: RunSpec, *, duration: float, git_commit: str, machine: str, environ: Mapping[str, str]) -> RunFacts:
    """The facts of one run. ``duration`` is in seconds, ``git_commit`` the package's or the cloned repository's."""
    card, image = spec.card, spec.image
    gpus = len(spec.gpus.indices)
    return RunFacts(
        model=card.name,
        n_gpus=gpus if gpus or spec.gpus.vendor == "CPU" else card.n_gpus,
        nnodes=1,
        gpus_per_node=gpus,
        training_precision=card.text("training_precision"),
        pipeline=environ.get(PIPELINE_VARIABLE, ""),
        args=card.text("args"),
        tags=card.tags,
        docker_file=image.text("dockerfile"),
        base_docker=image.text("base_docker"),
        docker_sha=image.text("docker_sha"),
        docker_image=image.docker_image,
        git_commit=git_commit,
        machine_name=machine,
        deployment_type="local",
        launcher=spec.launcher,
        gpu_architecture=spec.gpus.architecture,
        build_duration=image.build_duration,
        test_duration=round(duration, 3),
        dataname=str(spec.data.get("dataname") or card.text("data")),
        data_provider_type=str(spec.data.get("data_provider_type") or ""),
        build_number=environ.get(BUILD_VARIABLE) or 0,
        additional_docker_run_options=card.text("additional_docker_run_options"),
    )
