"""What Slurm 22.05.8 answered on this project's test cluster (recordings), and a Slurm that plays it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from madengine.core.process import Completed

CANNOT_CONNECT = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n"
UNKNOWN_JOB = "slurm_load_jobs error: Invalid job id specified\n"
NO_DATABASE = (
    "sacct: error: slurm_persist_conn_open_without_init: failed to open persistent connection to host:127.0.0.1:17290: "
    "Connection refused\nsacct: error: Sending PersistInit msg: Connection refused\n"
    "sacct: error: Problem talking to the database: Connection refused\n"
)
DISABLED = "Slurm accounting storage is disabled\n"
SQUEUE = (
    "5|RUNNING|0|1:05|None|node[1-2]|\n6|PENDING|0|0:00|PartitionNodeLimit||\n"
    "7|COMPLETED|1|1-02:03:04|None|node[3-4]|\n"
)
SACCT = (
    "5|FAILED|3:0|3:0|2020-12-01T11:03:05|None\n5.batch|FAILED|3:0||Unknown|\n5.0|FAILED|3:0||Unknown|\n"
    "6|CANCELLED by 0|0:0|0:0|Unknown|None\n7|COMPLETED|0:0|5:0|Unknown|None\n"
    "7.batch|COMPLETED|0:0||Unknown|\n7.0|FAILED|5:0||Unknown|\n"
)
SCONTROL = (
    'JobId=2 JobName=a b"c#d JobState=FAILED UserId=root(0) JobState=COMPLETED Reason=None Dependency=(null) Requeue=1 '
    "Restarts=1 BatchFlag=1 Reboot=0 ExitCode=0:0 RunTime=00:00:07 TimeLimit=365-00:00:00 NodeList=node[1-2] "
    "NumNodes=2 NumCPUs=2 Command=/tmp/x ExitCode=9:9 JobState=FAILED WorkDir=/tmp\n"
)


@dataclass
class Slurm:
    """Answers by the first word of a command; what is not told answers nothing, successfully."""

    answers: dict[str, Completed | Callable[[Sequence[str]], Completed]] = field(default_factory=dict)
    asked: list[list[str]] = field(default_factory=list)
    environments: list[Mapping[str, str] | None] = field(default_factory=list)

    def __call__(self, argv: Sequence[str], environment: Mapping[str, str] | None, limit: float) -> Completed:
        self.asked.append(list(argv))
        self.environments.append(environment)
        answer = self.answers.get(argv[0], said())
        return answer(argv) if callable(answer) else answer

    def count(self, command: str) -> int:
        return sum(words[0] == command for words in self.asked)


def said(stdout: str = "", stderr: str = "", code: int = 0, timed_out: bool = False) -> Completed:
    return Completed(("slurm",), code, stdout, stderr, 0.0, timed_out)
