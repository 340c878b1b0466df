"""Slurm's commands, asked and understood. Nothing else runs them.

Formats are those of sbatch(1), squeue(1), sacct(1), scontrol(1) and scancel(1), as Slurm 22.05 writes them; JSON is not
asked for, since clusters run versions that have none. Every question has a time limit: a controller that is away makes
the commands try again for minutes.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Generic, TypeVar

from madengine.core.process import Completed, run
from madengine.deployment.slurm.states import AccountingRecord, QueueEntry

Ask = Callable[[Sequence[str], Mapping[str, str] | None, float], Completed]
"""Runs a command: its words, the whole environment (None: this process's own) and a limit in seconds."""

T = TypeVar("T")

QUESTION_LIMIT = 10.0  # seconds for an answer
SUBMIT_LIMIT = 120.0  # sbatch waits that long for a controller that is busy
_FOR_PEOPLE = ("SCANCEL_", "SQUEUE_", "SACCT_", "SINFO_", "SLURM_TIME_FORMAT")
_UNKNOWN_JOB = "Invalid job id specified"
_NO_ACCOUNTING = "accounting storage is disabled"
_QUEUE_FIELDS = ("JobID", "State", "RestartCnt", "TimeUsed", "Reason", "NodeList")
_QUEUE_FORMAT = ",".join(f"{name}:|" for name in _QUEUE_FIELDS)
_ACCOUNTING_FORMAT = "jobidraw,state,exitcode,derivedexitcode,end,reason"
_LOST_ANSWERS = ("unable to contact", "timed out", "connection refused", "zero bytes", "communication")


@dataclass(frozen=True)
class Answer(Generic[T]):
    """What Slurm said. ``value`` is None when it did not answer, and ``trouble`` is then what kept it from it."""

    value: T | None = None
    trouble: str = ""
    disabled: bool = False


@dataclass(frozen=True)
class Submission:
    """What ``sbatch`` said: a job id, or a refusal in its own words. ``unsure``: the answer was lost on its way."""

    job_id: str = ""
    refusal: str = ""
    unsure: bool = False


def ask_program(argv: Sequence[str], environment: Mapping[str, str] | None, limit: float) -> Completed:
    """Run a command for real. Variables that filter or format what Slurm answers a person are not heard here."""
    asked = os.environ if environment is None else environment
    heard = {name: value for name, value in asked.items() if not name.startswith(_FOR_PEOPLE)}
    return run(argv, timeout=limit, env=heard)


class SlurmClient:
    """Asks a cluster's controller and its accounting."""

    def __init__(self, ask: Ask = ask_program) -> None:
        self._ask = ask

    def submit(self, script: Path, *, environment: Mapping[str, str], after: str = "") -> Submission:
        """Hand a job script to ``sbatch``; with ``after`` it begins when that job has ended, however it ended."""
        dependency = [f"--dependency=afterany:{after}"] if after else []
        done = self._ask(["sbatch", "--parsable", *dependency, str(script)], environment, SUBMIT_LIMIT)
        job_id = done.stdout.strip().rpartition("\n")[2].partition(";")[0]
        if done.exit_code == 0 and job_id.isascii() and job_id.isdecimal():
            return Submission(job_id)
        said = _said(done) or f"sbatch exited {done.exit_code}"
        ended_oddly = done.exit_code == 0 or done.exit_code > 128
        lost = done.timed_out or ended_oddly or any(words in said.lower() for words in _LOST_ANSWERS)
        return Submission(refusal=said, unsure=lost)

    def queue(self, job_ids: Sequence[str]) -> Answer[Mapping[str, QueueEntry]]:
        """The jobs that the controller knows, by id; ended ones stay known for ``MinJobAge``."""
        listed = ",".join(job_ids)
        done = self._ask(["squeue", "-a", "-h", "-t", "all", "-j", listed, "-O", _QUEUE_FORMAT], None, QUESTION_LIMIT)
        if done.exit_code == 0:
            return Answer({entry.job_id: entry for entry in map(_queue_entry, done.stdout.splitlines()) if entry})
        return Answer({}) if _UNKNOWN_JOB in done.stderr else Answer(trouble=_trouble(done))

    def job(self, job_id: str) -> Answer[QueueEntry | bool]:
        """One job in full (``scontrol show job``), with its exit code; False when the controller does not know it."""
        done = self._ask(["scontrol", "-o", "show", "job", job_id], None, QUESTION_LIMIT)
        if done.exit_code == 0 and (entry := _scontrol_entry(done.stdout)):
            return Answer(entry)
        return Answer(False) if _UNKNOWN_JOB in done.stderr else Answer(trouble=_trouble(done))

    def accounting(self, job_ids: Sequence[str]) -> Answer[Mapping[str, tuple[AccountingRecord, ...]]]:
        """The accounting's records by job id, each job's own and those of its steps; after a requeue the last ones.

        ``disabled`` when the cluster keeps none. A job that it has not heard of yet is absent.
        """
        argv = ["sacct", "-n", "-P", "-j", ",".join(job_ids), "-o", _ACCOUNTING_FORMAT]
        done = self._ask(argv, None, QUESTION_LIMIT)
        if _NO_ACCOUNTING in done.stderr:
            return Answer(trouble=_trouble(done), disabled=True)
        if done.exit_code != 0:
            return Answer(trouble=_trouble(done), disabled=done.exit_code == 127)
        return Answer(_records(done.stdout))

    def find(self, name: str) -> Answer[str]:
        """The id of the newest job of that name: of the queue, else of the accounting; empty when there is none."""
        done = self._ask(["squeue", "-a", "-h", "-t", "all", "--name", name, "-O", "JobID:|"], None, QUESTION_LIMIT)
        if done.exit_code != 0:
            return Answer(trouble=_trouble(done))
        if found := _ids(done.stdout):
            return Answer(found[-1])
        argv = ["sacct", "-n", "-P", "-X", "-S", "now-30days", "--name", name, "-o", "jobidraw"]
        past = self._ask(argv, None, QUESTION_LIMIT)
        found = _ids(past.stdout) if past.exit_code == 0 else []
        return Answer(found[-1] if found else "")

    def cancel(self, job_id: str) -> str:
        """End a job; what kept Slurm from it, empty when it is told or has ended already."""
        done = self._ask(["scancel", job_id], None, QUESTION_LIMIT)
        gone = any(words in done.stderr for words in (_UNKNOWN_JOB, "already completing or completed"))
        return "" if done.exit_code == 0 or gone else _trouble(done)


def seconds(text: str) -> float:
    """A duration as Slurm writes it (``[days-]hours:minutes:seconds``, ``minutes:seconds``); 0 for anything else."""
    match = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", text.strip())
    if match is None:
        return 0.0
    days, hours, minutes, rest = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + rest)


def _queue_entry(line: str) -> QueueEntry | None:
    cells = [cell.strip() for cell in line.split("|")]
    if len(cells) < len(_QUEUE_FIELDS) or not cells[0].isdecimal():
        return None
    job_id, state, restarts, elapsed, reason, nodes = cells[: len(_QUEUE_FIELDS)]
    return QueueEntry(job_id, state, _reason(reason), nodes, seconds(elapsed), restarts=_number(restarts))


def _scontrol_entry(text: str) -> QueueEntry | None:
    """The ``Name=value`` words of ``scontrol -o``.

    The job's name comes early and the paths late, and both can imitate other words: the last ones before the paths
    count.
    """
    words = text.partition(" Command=")[0]
    facts = dict(re.findall(r"(?:^| )(JobState|Reason|ExitCode|RunTime|NodeList|Restarts|JobId)=(\S*)", words))
    if "JobState" not in facts:
        return None
    return QueueEntry(
        job_id=facts.get("JobId", ""),
        state=facts["JobState"],
        reason=_reason(facts.get("Reason", "")),
        nodes="" if facts.get("NodeList") == "(null)" else facts.get("NodeList", ""),
        elapsed=seconds(facts.get("RunTime", "")),
        exit_code=facts.get("ExitCode", ""),
        restarts=_number(facts.get("Restarts", "")),
    )


def _records(text: str) -> dict[str, tuple[AccountingRecord, ...]]:
    found: dict[str, list[AccountingRecord]] = {}
    for line in text.splitlines():
        cells = line.split("|")
        if len(cells) < 6:
            continue
        job_id, _, step = cells[0].partition(".")
        reason = _reason("|".join(cells[5:]))
        record = AccountingRecord(step, cells[1], cells[2], cells[3], reason, _seconds_since(cells[4]))
        found.setdefault(job_id, []).append(record)
    return {job_id: tuple(records) for job_id, records in found.items()}


def _seconds_since(moment: str) -> float | None:
    """How long ago a moment was, as Slurm writes it in this machine's time."""
    try:
        return max(0.0, time.time() - datetime.fromisoformat(moment).timestamp())
    except (ValueError, OverflowError, OSError):
        return None


def _ids(text: str) -> list[str]:
    ids = (line.strip().rstrip("|") for line in text.splitlines())
    return sorted((each for each in ids if each.isdecimal()), key=int)


def _reason(text: str) -> str:
    """A reason that says more than the state does."""
    return "" if text.strip() in ("None", "(null)", "N/A", "NonZeroExitCode") else text.strip()


def _number(text: str) -> int:
    digits = re.match(r"\d+", text.strip())
    return int(digits.group()) if digits else 0


def _said(done: Completed) -> str:
    """What the command wrote, on one line: Slurm puts the plain words first and the general ones last."""
    return "; ".join(line.strip() for line in done.stderr.splitlines() if line.strip())


def _trouble(done: Completed) -> str:
    if done.timed_out:
        return f"{done.argv[0]} did not answer within {QUESTION_LIMIT:g} s"
    return _said(done) or f"{done.argv[0]} exited {done.exit_code}"
