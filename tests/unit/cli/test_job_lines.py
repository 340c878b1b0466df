"""Jobs as lines: each change once, nothing twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.execution.packages import package, spec

from madengine.cli.job_lines import REPEAT, JobLines, job_line
from madengine.deployment.base import Progress
from madengine.execution.spec import RunSpec

PENDING = Progress(job="4711", state="PENDING", remark="Resources")
RUNNING = Progress(job="4711", state="RUNNING", nodes="node[1-2]", elapsed=1.0)
SILENT = "Slurm does not answer (1 times, since 0 s)"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def runs(tmp_path: Path, *names: str) -> list[RunSpec]:
    one = spec(package(tmp_path))
    return [replace(one, run_id=name, card=replace(one.card, raw={**one.card.raw, "name": name})) for name in names]


@pytest.mark.parametrize(
    ("progress", "line"),
    [
        (PENDING, "job 4711 llama: PENDING (Resources)"),
        (RUNNING, "job 4711 llama: RUNNING on node[1-2]"),
        (replace(RUNNING, remark=SILENT), f"job 4711 llama: RUNNING on node[1-2]: {SILENT}"),
        (Progress(state="PENDING"), "llama: PENDING"),
        (Progress(job="7", remark="asked for"), "job 7 llama: asked for"),
        (Progress(job="7", state="A\x1b[2J", remark="b\nc"), "job 7 llama: A\\x1b[2J (b\\nc)"),
    ],
)
def test_a_line_says_which_job_it_is_where_it_stands_and_why(tmp_path: Path, progress: Progress, line: str) -> None:
    (llama,) = runs(tmp_path, "llama")
    assert job_line(llama, progress) == line


def test_a_name_cannot_make_lines_of_its_own(tmp_path: Path) -> None:
    (evil,) = runs(tmp_path, "a\njob 1 b: COMPLETED\x1b[2J")
    assert job_line(evil, PENDING) == "job 4711 a\\njob 1 b: COMPLETED\\x1b[2J: PENDING (Resources)"


def test_there_is_a_line_for_each_change_of_state_nodes_or_remark_and_none_for_age(tmp_path: Path) -> None:
    (llama,), lines = runs(tmp_path, "llama"), JobLines(Clock())
    story = [
        Progress(),
        PENDING,
        PENDING,
        replace(PENDING, remark="Priority"),
        RUNNING,
        replace(RUNNING, elapsed=9.0),
        replace(RUNNING, state="COMPLETING"),
    ]
    assert [lines.news([(llama, progress)]) for progress in story] == [
        [],
        ["job 4711 llama: PENDING (Resources)"],
        [],
        ["job 4711 llama: PENDING (Priority)"],
        ["job 4711 llama: RUNNING on node[1-2]"],
        [],
        ["job 4711 llama: COMPLETING on node[1-2]"],
    ]


def test_a_count_that_grows_is_told_once_a_minute(tmp_path: Path) -> None:
    (llama,), clock = runs(tmp_path, "llama"), Clock()
    lines, told = JobLines(clock), 0
    for number in range(1, 200):
        clock.now = float(number)
        remark = f"Slurm does not answer ({number} times, since {number} s)"
        told += len(lines.news([(llama, replace(RUNNING, remark=remark))]))
    assert told == 1 + 198 // REPEAT


def test_a_scheduler_that_answers_again_is_a_line(tmp_path: Path) -> None:
    (llama,), lines = runs(tmp_path, "llama"), JobLines(Clock())
    lines.news([(llama, replace(RUNNING, remark=SILENT))])
    assert lines.news([(llama, RUNNING)]) == ["job 4711 llama: RUNNING on node[1-2]"]


def test_what_befalls_many_jobs_at_once_is_one_line(tmp_path: Path) -> None:
    a, b, c = runs(tmp_path, "a", "b", "c")
    lines = JobLines(Clock())
    lines.news([(a, RUNNING), (b, RUNNING), (c, PENDING)])
    assert lines.news([(a, replace(RUNNING, remark=SILENT)), (b, replace(RUNNING, remark=SILENT)), (c, PENDING)]) == [
        f"2 jobs: RUNNING: {SILENT}"
    ]
    other = "its controller moves"
    assert lines.news([(each, replace(seen, remark=other)) for each, seen in ((b, RUNNING), (c, PENDING))]) == [
        f"2 jobs: {other}"
    ]
