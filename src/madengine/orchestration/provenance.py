"""The beginning of a run's record: what is to be run, with which names, on which machine, by which command."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone

from madengine.core.shell import quote
from madengine.execution.spec import GpuGrant, RunSpec
from madengine.reporting.git_state import GitState
from madengine.reporting.run_record import Machine, RunGpus, RunImage, RunRecord, SpecSummary, utc


def started_record(
    spec: RunSpec, *, machine: Machine, command: Sequence[str], package_git: GitState | None
) -> RunRecord:
    """The record of a run that starts now. Of variables it holds the names only."""
    return RunRecord(
        run_id=spec.run_id,
        model=spec.card.name,
        machine=machine,
        command=tuple(command),
        started=utc(datetime.now(timezone.utc)),
        key=spec.key,
        target=spec.place.deployment,
        engine=spec.engine,
        package=str(spec.package),
        package_git=package_git,
        image=RunImage(spec.image.docker_image),
        gpus=run_gpus(spec.gpus),
        spec=_summary(spec),
    )


def run_gpus(gpus: GpuGrant) -> RunGpus:
    """The GPUs of a run in the words of its record."""
    return RunGpus(
        vendor=gpus.vendor,
        indices=gpus.indices,
        total=gpus.total,
        architecture=gpus.architecture,
        product=gpus.product,
        driver=gpus.hip_version,
    )


def _summary(spec: RunSpec) -> SpecSummary:
    return SpecSummary(
        script=str(spec.script.folder / spec.script.file),
        args=spec.script.args,
        launcher=spec.launcher,
        timeout=spec.timeout,
        results_file=spec.results_file,
        expected_results=spec.expected_results,
        variables=tuple(sorted(spec.environment)),
        secrets=tuple(sorted(spec.secrets)),
        mounts=tuple(f"{m.source}:{m.target}{':ro' if m.read_only else ''}" for m in spec.mounts),
        options=spec.run_options,
        tools=tuple(quote(word) for word in spec.prefix),
    )
