"""A package with one card for each way a run can end, and what it must come to."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MEASURES = "echo performance: 42.5 samples_per_second\n"
OLD_CSV = "model,performance,metric\nq,10,retrieval/10\n"
SAME_ROWS = "printf 'model,performance,metric\\nq,10,retrieval/10\\n'"
CSV = "printf 'model,performance,metric\\na,1.5,ms\\nb,2.5,ms\\n' > ../{name}\n"


@dataclass(frozen=True)
class Case:
    """One card and its verdict: ``exit_code`` plain and under ``--strict``, words that the output must hold.

    ``shipped`` are the files that the package has beside the script, by name.
    """

    name: str
    script: str
    outcome: str
    exit_code: int
    strict: int
    words: tuple[str, ...] = ()
    card: dict[str, Any] = field(default_factory=dict)
    statuses: tuple[str, ...] = ()
    shipped: dict[str, str] = field(default_factory=dict)


CASES = (
    Case("measures", MEASURES, "SUCCESS", 0, 0, statuses=("SUCCESS",)),
    Case(
        "silent",
        "echo all went well\n",
        "NO_METRIC",
        5,
        5,
        ("nothing was measured", "let the script print a line 'performance: <number> <metric>'"),
        statuses=("NO_METRIC",),
    ),
    Case("exits_7", "exit 7\n", "FAILURE", 3, 3, ("exited 7",), statuses=("FAILURE",)),
    Case("exits_5", "exit 5\n", "FAILURE", 3, 3, ("exited 5",), statuses=("FAILURE",)),
    Case("measures_exits_3", MEASURES + "exit 3\n", "INCOMPLETE", 0, 3, ("exited 3",), statuses=("SUCCESS",)),
    Case(
        "misspelt_csv",
        CSV.format(name="perf_llama.csv"),
        "NO_METRIC",
        5,
        5,
        ("perf_lama.csv", "perf_llama.csv", "MAD_OUTPUT_CSV=", '"multiple_results": "perf_llama.csv"'),
        {"multiple_results": "perf_lama.csv"},
        ("NO_METRIC",),
    ),
    Case("prints_nan", "echo performance: nan x\n", "NO_METRIC", 5, 5, ("nan",), statuses=("NO_METRIC",)),
    Case(
        "times_out",
        "echo begun; sleep 60\n",
        "FAILURE",
        3,
        3,
        ("timed out after 1 s",),
        {"timeout": 1},
        ("FAILURE",),
    ),
    Case(
        "measures_then_times_out",
        MEASURES + "sleep 60\n",
        "INCOMPLETE",
        0,
        3,
        ("timed out after 1 s",),
        {"timeout": 1},
        ("SUCCESS",),
    ),
    Case(
        "csv_of_two",
        CSV.format(name="two.csv"),
        "SUCCESS",
        0,
        0,
        card={"multiple_results": "two.csv"},
        statuses=("SUCCESS", "SUCCESS"),
    ),
    Case(
        "csv_with_an_empty_row",
        "printf 'model,performance,metric\\na,1.5,ms\\nb,,ms\\n' > two.csv\n",
        "INCOMPLETE",
        0,
        3,
        ("row 'b'",),
        {"multiple_results": "two.csv"},
        ("SUCCESS", "FAILURE"),
    ),
    Case(
        "csv_with_too_few_rows",
        CSV.format(name="two.csv"),
        "INCOMPLETE",
        0,
        3,
        ("2 of 3 expected rows",),
        {"multiple_results": "two.csv", "expected_results": 3},
        ("SUCCESS", "SUCCESS"),
    ),
    Case(
        "csv_as_before_but_deleted_first",
        f"rm -f results.csv; {SAME_ROWS} > results.csv\n",
        "SUCCESS",
        0,
        0,
        ("1 row is the same as before this run; the file was made anew",),
        {"multiple_results": "results.csv"},
        ("SUCCESS",),
        {"results.csv": OLD_CSV},
    ),
    Case(
        "csv_as_before_and_more_but_moved_away_first",
        f"mv results.csv old.txt; {SAME_ROWS} > results.csv; echo r,3,lat >> results.csv\n",
        "SUCCESS",
        0,
        0,
        ("measured 2 results", "the file was made anew, so that all rows count"),
        {"multiple_results": "results.csv"},
        ("SUCCESS", "SUCCESS"),
        {"results.csv": OLD_CSV},
    ),
    Case(
        "csv_appended_to",
        "echo r,3,lat >> results.csv\n",
        "SUCCESS",
        0,
        0,
        ("measured 3 lat", "1 row from before this run does not count"),
        {"multiple_results": "results.csv"},
        ("SUCCESS",),
        {"results.csv": OLD_CSV},
    ),
    Case(
        "csv_only_touched",
        "touch results.csv\n",
        "NO_METRIC",
        5,
        5,
        ("stale: it holds the same row as before this run", "delete the old file before it writes"),
        {"multiple_results": "results.csv"},
        ("NO_METRIC",),
        {"results.csv": OLD_CSV},
    ),
    Case(
        "csv_of_before_that_ends_in_no_csv",
        "true\n",
        "NO_METRIC",
        5,
        5,
        ("stale: it holds the same row as before this run", "line 3 holds NUL bytes"),
        {"multiple_results": "results.csv"},
        ("NO_METRIC",),
        {"results.csv": OLD_CSV + "\0\n"},
    ),
    Case(
        "csv_of_each_rank",
        f"for rank in 0 1 2 3; do {SAME_ROWS} > two_rank$rank.csv; done\n",
        "NO_METRIC",
        5,
        5,
        ("(two_rank0.csv and 3 more)", "one file 'two.csv' from one rank"),
        {"multiple_results": "two.csv"},
        ("NO_METRIC",),
    ),
    Case(
        "error_in_log",
        "echo 'RuntimeError: no kernel image'\n",
        "FAILURE",
        3,
        3,
        ("run.log:1", "no kernel image"),
        statuses=("FAILURE",),
    ),
    Case(
        "error_in_log_but_measures",
        "echo 'ValueError: harmless'\n" + MEASURES,
        "SUCCESS",
        0,
        0,
        statuses=("SUCCESS",),
    ),
    Case(
        "prose_is_no_metric",
        "echo 'X performance: 5 ms'; set -x; : performance: 6 ms\n",
        "NO_METRIC",
        5,
        5,
        statuses=("NO_METRIC",),
    ),
    Case("command_not_found", "exec no_such_command_here\n", "FAILURE", 3, 3, ("127",), statuses=("FAILURE",)),
    Case("segfaults", "kill -SEGV $$\n", "FAILURE", 3, 3, ("139",), statuses=("FAILURE",)),
)


def write_package(folder: Path, cases: tuple[Case, ...] = CASES) -> Path:
    """The package with all the cards, tagged ``verdicts``."""
    cards = []
    for case in cases:
        script = folder / "scripts" / case.name / "run.sh"
        script.parent.mkdir(parents=True)
        script.write_text(f"#!/bin/bash\n{case.script}")
        for name, text in case.shipped.items():
            script.with_name(name).write_text(text)
        cards.append(
            {
                "name": case.name,
                "dockerfile": "docker/verdicts",
                "scripts": f"scripts/{case.name}/run.sh",
                "n_gpus": "0",
                "tags": ["verdicts"],
                "args": "",
                **case.card,
            }
        )
    (folder / "docker").mkdir()
    (folder / "docker" / "verdicts.Dockerfile").write_text("ARG BASE_DOCKER=local/debian-py:1\nFROM $BASE_DOCKER\n")
    (folder / "models.json").write_text(json.dumps(cards, indent=1))
    return folder
