"""Where things lie in the run directory of a Slurm run, which is on storage that all nodes see.

::

    <run id>/
      job.json          what is to be run: see deployment.order
      manifest.json     the part of the effective manifest that the run uses, without secrets
      job.sh            the batch script
      node.sh           each node's part, started by the batch script
      submitted.json    Slurm's job id, written by the submitting process
      job_id            the same, written by the job itself: whoever submits may be killed between the two
      time_limit        the job's limit, when Slurm gave notice that it is near
      cancelled.json    who cancelled the run, when it was one of us
      logs/job.out      what the batch script printed
      node_<rank>/      one per node: node.status, evidence.json, run.json, stdout, stderr, logs/, workspace/, artefacts
      attempt_<n>/      the node folders of an attempt that Slurm requeued, n counting from 0

Ranks write only into their own ``node_<rank>/``; the collecting process writes beside them.
"""

from __future__ import annotations

from pathlib import Path

JOB_SCRIPT = "job.sh"
NODE_SCRIPT = "node.sh"
SUBMITTED = "submitted.json"
JOB_ID = "job_id"
TIME_LIMIT = "time_limit"
CANCELLED = "cancelled.json"
MARKER = "node.status"
EVIDENCE = "evidence.json"
JOB_LOG = "logs/job.out"


def node_dir(run_dir: Path, rank: int) -> Path:
    """The folder of one node."""
    return run_dir / f"node_{rank}"
