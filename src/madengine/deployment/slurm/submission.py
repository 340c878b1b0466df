"""What is on record of a run's submission: the job that Slurm made of it, or why there is none.

``submitted.json`` is written right after ``sbatch`` has answered; the job itself leaves its id in ``job_id`` when it
begins. Between the two a submitting process may be killed: then the job is found by its name, which is the run id.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from madengine.core.documents import load_json
from madengine.core.errors import ConfigurationError, MADEngineError
from madengine.core.files import write_atomic
from madengine.deployment.carrier import Carrier
from madengine.deployment.slurm.client import SlurmClient, Submission
from madengine.deployment.slurm.layout import JOB_ID, JOB_LOG, JOB_SCRIPT, SUBMITTED

_WHAT = "record of a submission"


@dataclass(frozen=True)
class Submitted:
    """A run as Slurm knows it.

    ``job_id`` is empty when there is no job; ``refusal`` then says why. ``carrier`` is the process that carries a run
    inside of an allocation that was there before (``salloc``), whose job is not the run's own. ``time`` is in ISO 8601.
    """

    job_id: str = ""
    refusal: str = ""
    carrier: Carrier | None = None
    time: str = ""


def submit_job(client: SlurmClient, run_dir: Path, environment: Mapping[str, str], after: str) -> Submitted:
    """Hand the job script to ``sbatch`` and write down what came of it.

    When the answer is lost the job may be there all the same: Slurm is asked for a job of that name.
    """
    # sbatch lets its variables beat what stands in a script; those that hold a site's defaults are directives already.
    heard = {name: value for name, value in environment.items() if not name.startswith("SBATCH_")}
    answer = client.submit(run_dir / JOB_SCRIPT, environment=heard, after=after)
    if answer.unsure:
        found = client.find(run_dir.name)
        answer = Submission(found.value) if found.value else Submission(refusal=_unsure(answer.refusal))
    return _noted(run_dir, Submitted(answer.job_id, answer.refusal, time=_now()))


def start_inside(
    run_dir: Path, job_id: str, environment: Mapping[str, str]
) -> tuple[Submitted, subprocess.Popen[bytes]]:
    """Run the job script at once, inside of the allocation ``job_id`` that this process is in.

    The script gets a session of its own and goes on when this process ends; until then its end is noted here.
    """
    log = run_dir / JOB_LOG
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        process = subprocess.Popen(
            ["bash", str(run_dir / JOB_SCRIPT)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            start_new_session=True,
        )
    return _noted(run_dir, Submitted(job_id, carrier=Carrier.of(process.pid), time=_now())), process


def find_submitted(client: SlurmClient, run_dir: Path) -> Submitted | None:
    """The submission of a run directory, as far as anybody knows; None when Slurm cannot be asked right now.

    A run that nobody submitted is ``Submitted`` without a job and with the reason, unless its submitter still lives:
    that one is about to submit it.
    """
    noted = read_submitted(run_dir)
    if noted is not None:
        return noted
    found = client.find(run_dir.name)
    if found.value is None:
        return None
    if found.value:
        return Submitted(found.value)
    carrier = Carrier.read(run_dir)
    if carrier is not None and carrier.may_live():
        return None
    return Submitted(refusal="the run was never submitted: the process that was to do it has ended before")


def read_submitted(run_dir: Path) -> Submitted | None:
    """What the run directory says: the submitter's record, else the id that the job itself left."""
    try:
        document = load_json(run_dir / SUBMITTED, what=_WHAT)
        return _submitted(document)
    except (ConfigurationError, KeyError, TypeError):
        return _left_by_the_job(run_dir)


def _submitted(document: Any) -> Submitted:
    carrier = document["carrier"]
    return Submitted(
        str(document["job_id"]),
        str(document["refusal"]),
        Carrier(int(carrier["pid"]), int(carrier["started"]), str(carrier["host"])) if carrier else None,
        str(document["time"]),
    )


def _left_by_the_job(run_dir: Path) -> Submitted | None:
    try:
        job_id = (run_dir / JOB_ID).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return Submitted(job_id) if job_id.isascii() and job_id.isdecimal() else None


def _noted(run_dir: Path, submitted: Submitted) -> Submitted:
    try:
        write_atomic(run_dir / SUBMITTED, json.dumps(asdict(submitted), indent=1) + "\n")
    except MADEngineError:
        return submitted  # the job has its id in its own file, and its name
    return submitted


def _unsure(said: str) -> str:
    return f"sbatch did not say whether it took the job ({said}), and Slurm knows none of this name" if said else said


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
