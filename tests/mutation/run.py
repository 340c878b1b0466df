"""Mutation testing of the modules that must not be wrong: the judge, quoting and parsing.

Each module is copied with its own tests into a folder of its own, where mutmut changes one thing at a time in every
function and runs the tests that reach it. A module scores the share of changes that some test noticed (a test that
then never ends counts as noticed, code that no test reaches does not); under 85 % is a failure.

    python tests/mutation/run.py             all modules
    python tests/mutation/run.py judge -v    one module, and what its tests did not notice
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
TARGET = 85.0

# Module below src/madengine -> its tests below tests/unit.
MODULES = {
    "verdict/judge.py": ("verdict/test_judge.py", "verdict/test_judge_exhaustive.py"),
    "verdict/exit_code.py": ("verdict/test_exit_code.py",),
    "verdict/words.py": ("verdict/test_words.py", "verdict/test_judge.py"),
    "verdict/evidence_json.py": ("verdict/test_evidence_json.py",),
    "core/shell.py": ("core/test_shell.py",),
    "reporting/numbers.py": ("reporting/test_numbers.py",),
    "reporting/metric_lines.py": ("reporting/test_metric_lines.py",),
    "reporting/csv_rows.py": ("reporting/test_csv_rows.py",),
    "reporting/result_csv.py": ("reporting/test_result_csv.py",),
}

# mutmut's marks: a failing test, an internal error of pytest, and its several ways of running out of time.
_NOTICED = {1, 3, 24, -24, 36, 152, 255}

_CONFIGURATION = """
[tool.mutmut]
source_paths = ["src"]
only_mutate = [{module}]
pytest_add_cli_args_test_selection = {tests}
pytest_add_cli_args = ["-p", "no:cacheprovider"]
"""

# mutmut runs the tests several times in one process, which hypothesis takes for a mistake in methods of test classes.
_HYPOTHESIS = """

from hypothesis import HealthCheck, settings

settings.register_profile(
    "mutation", derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)
settings.load_profile("mutation")
"""


@dataclass(frozen=True)
class Score:
    """How many changes of a module were made and noticed, and the names of those that were not."""

    made: int
    unnoticed: tuple[str, ...]

    @property
    def percent(self) -> float:
        return 100 * (1 - len(self.unnoticed) / self.made) if self.made else 0.0


def prepare(folder: Path, module: str, tests: Sequence[str]) -> None:
    """Fill ``folder`` with the sources, the module's tests and a configuration for mutmut."""
    shutil.copytree(REPOSITORY / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(
        REPOSITORY / "tests", folder / "tests", ignore=shutil.ignore_patterns("__pycache__", "test_*.py", "services")
    )
    for test in tests:
        shutil.copy2(REPOSITORY / "tests/unit" / test, folder / "tests/unit" / test)
    configuration = _CONFIGURATION.format(
        module=json.dumps(f"src/madengine/{module}"), tests=json.dumps([f"tests/unit/{test}" for test in tests])
    )
    project = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    (folder / "pyproject.toml").write_text(project + configuration, encoding="utf-8")
    with (folder / "tests/conftest.py").open("a", encoding="utf-8") as conftest:
        conftest.write(_HYPOTHESIS)


def mutmut(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mutmut", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def score(folder: Path, module: str) -> Score:
    """What mutmut noted about each change of the module."""
    notes = json.loads((folder / "mutants/src/madengine" / f"{module}.meta").read_text(encoding="utf-8"))
    marks = notes["exit_code_by_key"]
    return Score(len(marks), tuple(name for name, mark in marks.items() if mark not in _NOTICED))


def changes(folder: Path, names: Sequence[str]) -> Iterator[str]:
    """The changes that no test noticed, as the lines that differ."""
    for name in names:
        lines = mutmut(folder, "show", name).stdout.splitlines()
        yield "\n".join([f"    {name}", *(f"        {line}" for line in lines if line.startswith(("-  ", "+  ")))])


def examine(module: str, tests: Sequence[str], children: int, verbose: bool) -> bool:
    """Test one module and print its line; whether it reached the target."""
    with tempfile.TemporaryDirectory(prefix="madengine-mutation-") as name:
        folder = Path(name)
        prepare(folder, module, tests)
        done = mutmut(folder, "run", "--max-children", str(children))
        if done.returncode:
            print(f"{module}: mutmut failed\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}", flush=True)
            return False
        result = score(folder, module)
        noticed = result.made - len(result.unnoticed)
        print(f"{module:<28} {result.percent:5.1f} %  {noticed} of {result.made} changes noticed", flush=True)
        if verbose:
            print(*changes(folder, result.unnoticed), sep="\n", flush=True)
        return result.percent >= TARGET


def main() -> int:
    parser = argparse.ArgumentParser(description="Mutation testing of the judge, quoting and parsing")
    parser.add_argument("names", nargs="*", metavar="MODULE", help=f"part of one of: {', '.join(MODULES)}")
    parser.add_argument("-v", "--verbose", action="store_true", help="show the changes that no test noticed")
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1, help="how many changes to try at once")
    options = parser.parse_args()
    chosen = [module for module in MODULES if not options.names or any(name in module for name in options.names)]
    if not chosen:
        parser.error(f"no module matches {' '.join(options.names)}")
    reached = [examine(module, MODULES[module], options.jobs, options.verbose) for module in chosen]
    return 0 if all(reached) else 1


if __name__ == "__main__":
    sys.exit(main())
