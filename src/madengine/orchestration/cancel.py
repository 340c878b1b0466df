"""Ending runs that were submitted before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from madengine.core.errors import MADEngineError
from madengine.deployment.base import Handle, RunState
from madengine.orchestration.collect import target_for
from madengine.orchestration.runs_here import FoundRun


@dataclass(frozen=True)
class Cancelled:
    """What became of one wish: ``outcome`` is cancelled, ended (before), or failed, ``detail`` says more."""

    run: FoundRun
    outcome: str
    detail: str = ""


def cancel_all(runs: Sequence[FoundRun], environ: Mapping[str, str]) -> list[Cancelled]:
    """End each run; one that has ended stays as it is. Nothing is recorded: that is what collecting does."""
    return [_cancel(run, environ) for run in runs]


def _cancel(run: FoundRun, environ: Mapping[str, str]) -> Cancelled:
    if run.is_recorded:
        return Cancelled(run, "ended", "it is recorded already")
    handle = Handle(run.order.run_id, run.run_dir)
    try:
        target = target_for([run], environ)
        if target.poll([handle], 0.0)[handle.run_id] is RunState.ENDED:
            return Cancelled(run, "ended", "`madengine collect` records it")
        target.cancel(handle)
    except (MADEngineError, OSError) as error:
        return Cancelled(run, "failed", str(error))
    return Cancelled(run, "cancelled", "`madengine collect` records it")
