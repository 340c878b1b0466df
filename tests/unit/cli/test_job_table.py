"""The live table of jobs, line by line."""

from __future__ import annotations

import re

import pytest

from madengine.cli.job_table import HEADERS, JobRow, table_lines

LLAMA = JobRow("llama", "4711", "RUNNING", "node[1-2]", 75.4)
GPT = JobRow("gpt", "4712", "PENDING", reason="Resources")


def plain(line: str) -> str:
    return re.sub(r"\x1b\[\d+m", "", line)


def lines(rows: list[JobRow], width: int = 100, height: int = 40) -> list[str]:
    return [plain(line) for line in table_lines(rows, width, height)]


def test_each_job_has_a_line_under_the_names_of_the_columns() -> None:
    assert lines([LLAMA, GPT]) == [
        "model  job   state    nodes      elapsed     reason",
        "llama  4711  RUNNING  node[1-2]  1 min 15 s",
        "gpt    4712  PENDING                         Resources",
    ]


@pytest.mark.parametrize(("elapsed", "text"), [(0.0, "0 s"), (59.0, "59 s"), (3700.0, "1 h 01 min"), (None, "")])
def test_ages_are_what_people_read(elapsed: float | None, text: str) -> None:
    assert LLAMA._replace(elapsed=elapsed).cells()[4] == text


def test_states_have_colours() -> None:
    _, running, pending = table_lines([LLAMA, GPT], 100, 40)
    assert (running[:5], pending[:5]) == ("\x1b[32m", "\x1b[33m")


@pytest.mark.parametrize("width", [0, 1, 20, 40, 60, 79])
def test_no_line_is_wider_than_the_terminal_whatever_stands_in_it(width: int) -> None:
    from rich.cells import cell_len

    row = JobRow("模型" * 20, "4711", "RUNNING", "node[1-99]" * 9, 1.0, "a reason that goes on and on " * 3)
    assert max(cell_len(line) for line in lines([row, GPT], width)) <= width


def test_on_a_narrow_terminal_the_longest_texts_lose_their_middle() -> None:
    rows = [LLAMA._replace(model=f"a-model-with-a-very-long-name-{n}") for n in (1, 2)]
    assert lines(rows, 60)[1:] == [
        "a-mode...ame-1  4711  RUNNING  node[1-2]  1 min 15 s",
        "a-mode...ame-2  4711  RUNNING  node[1-2]  1 min 15 s",
    ]


def test_more_jobs_than_lines_show_what_neither_waits_nor_runs_first_then_what_runs() -> None:
    rows = [JobRow(f"p{n}", state="PENDING") for n in range(10)] + [LLAMA, JobRow("odd", state="SUSPENDED")]
    shown = lines(rows, height=5)
    assert [line.split()[0] for line in shown] == ["model", "odd", "llama", "p0", "..."]
    assert shown[-1] == "... and 9 more: 9 PENDING"


@pytest.mark.parametrize("count", [1, 4, 5, 50])
def test_the_table_is_never_higher_than_the_terminal(count: int) -> None:
    assert len(lines([LLAMA] * count, height=5)) == min(count + 1, 5)


def test_jobs_that_fit_keep_the_order_in_which_they_began() -> None:
    assert [line.split()[0] for line in lines([GPT, LLAMA])] == ["model", "gpt", "llama"]


def test_names_drive_no_terminal() -> None:
    row = JobRow("a\x1b[2J\nb", "1", "X\r", "n\x07", 1.0, "\u202er")
    assert row.cells() == ["a\\x1b[2J\\nb", "1", "X\\r", "n\\x07", "1 s", "\\u202er"]
    assert lines([row] * 9, height=4)[-1] == "... and 7 more: 7 X\\r"
    assert len(HEADERS) == len(row)
