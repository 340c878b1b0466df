"""What a person is told of runs that a scheduler has."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.cli.test_job_lines import Clock, runs

from madengine.cli.job_narrator import JobNarrator
from madengine.deployment.base import Progress
from madengine.execution.spec import RunSpec
from madengine.orchestration.report import FinishedRun
from madengine.verdict.evidence import Evidence, Outcome, Verdict

PENDING = Progress(job="4711", state="PENDING", remark="Resources")
RUNNING = Progress(job="4711", state="RUNNING", nodes="node[1-2]", elapsed=5.0)


class Terminal(io.StringIO):
    """A standard error that is a terminal; ``lines`` are those that a person sees on it."""

    def isatty(self) -> bool:
        return True

    @property
    def lines(self) -> list[str]:
        shown: list[str] = []
        for up, text in re.findall(r"(?:\x1b\[(\d+)A\r\x1b\[J)|([^\n]*\n)", self.getvalue()):
            if up:
                del shown[len(shown) - int(up) :]
            else:
                shown.append(re.sub(r"\x1b\[\d+m", "", text[:-1]))
        return shown


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Terminal()


def finished(run: RunSpec, job: str = "4711") -> FinishedRun:
    return FinishedRun(run, Evidence(run.run_id), Verdict(Outcome.SUCCESS, ""), (), 61.5, job=job)


def test_where_no_terminal_is_each_change_is_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (llama,), narrator = runs(tmp_path, "llama"), JobNarrator(Clock())
    narrator.started(1, 2, llama)
    for progress in (PENDING, PENDING, RUNNING, replace(RUNNING, elapsed=9.0)):
        narrator.progress([(llama, progress)])
    narrator.interrupted(llama)
    narrator.interrupted(replace(llama, run_id="other"))
    narrator.ended(1, 2, finished(llama))
    narrator.progress([])
    shown = capsys.readouterr()
    assert shown.err.splitlines() == [
        "run 1/2 llama",
        "job 4711 llama: PENDING (Resources)",
        "job 4711 llama: RUNNING on node[1-2]",
        "interrupted: cancelling llama (Ctrl-C 2 times more: do not wait for it)",
        "interrupted: cancelling llama",
        "run 1/2 llama: SUCCESS in 1 min 02 s (job 4711)",
    ]
    assert shown.out == ""


def test_a_run_without_a_job_says_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (llama,) = runs(tmp_path, "llama")
    JobNarrator(Clock()).ended(2, 2, finished(llama, job=""))
    assert capsys.readouterr().err == "run 2/2 llama: SUCCESS in 1 min 02 s\n"


@pytest.mark.parametrize("variable", ["NO_COLOR", "TERM"])
def test_a_terminal_that_wants_no_drawing_gets_lines(
    tmp_path: Path, terminal: Terminal, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv(variable, "dumb")
    (llama,), narrator = runs(tmp_path, "llama"), JobNarrator(Clock())
    narrator.progress([(llama, PENDING)])
    assert terminal.getvalue() == "job 4711 llama: PENDING (Resources)\n"


def test_on_a_terminal_there_is_one_table_and_what_ended_stays_above_it(
    tmp_path: Path, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", terminal)
    llama, gpt = runs(tmp_path, "llama", "gpt")
    narrator = JobNarrator(Clock())
    narrator.started(1, 2, llama)
    narrator.started(2, 2, gpt)
    narrator.progress([(llama, RUNNING), (gpt, PENDING)])
    narrator.progress([(llama, RUNNING), (gpt, PENDING)])
    assert [line.split()[0] for line in terminal.lines] == ["model", "llama", "gpt"]
    narrator.ended(1, 2, finished(llama))
    assert terminal.lines[0] == "run 1/2 llama: SUCCESS in 1 min 02 s (job 4711)"
    assert [line.split()[0] for line in terminal.lines[1:]] == ["model", "gpt"]
    narrator.progress([])
    assert len(terminal.lines) == 1


def test_what_is_being_submitted_stands_in_the_table(
    tmp_path: Path, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", terminal)
    (llama,) = runs(tmp_path, "llama")
    JobNarrator(Clock()).started(1, 1, llama)
    assert "submitting" in terminal.lines[1]


def test_ages_go_on_between_two_answers_of_the_scheduler(
    tmp_path: Path, terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", terminal)
    (llama,), clock = runs(tmp_path, "llama"), Clock()
    narrator = JobNarrator(clock)
    seen = []
    for now, elapsed in ((0.0, 5.0), (3.0, 5.0), (7.0, 5.0), (8.0, 13.0)):
        clock.now = now
        narrator.progress([(llama, replace(RUNNING, elapsed=elapsed))])
        seen.append(terminal.lines[1].split("  ")[-1])
    assert seen == ["5 s", "8 s", "12 s", "13 s"]


def test_the_terminals_drawing_is_loaded_on_a_terminal_only() -> None:
    code = "import sys, json, madengine.cli.job_narrator; print(json.dumps('rich' in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) is False
