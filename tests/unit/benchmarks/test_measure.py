"""The harness of the benchmarks: what counts as met, and what is measured in turns."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks import measure
from benchmarks.__main__ import main
from benchmarks.cards import cards
from benchmarks.measure import Result, Skipped, command, interleaved, require

from madengine.schemas import validate_build_manifest, validate_model_cards

RESULT = Result("start", "python -c pass", 0.02, 0.01, "s", 0.03, "<= 3x")


@pytest.mark.parametrize(
    ("measured", "at_least", "met"),
    [(0.02, False, True), (0.03, False, True), (0.04, False, False), (0.04, True, True), (0.02, True, False)],
)
def test_a_target_is_a_limit_from_above_or_from_below(measured: float, at_least: bool, met: bool) -> None:
    assert replace(RESULT, measured=measured, at_least=at_least).met is met


def test_a_result_as_a_line_and_as_json() -> None:
    assert RESULT.line() == ("met     start: 0.02 s against 0.01 s (python -c pass), ratio 2.00, target <= 3x")
    assert replace(RESULT, measured=1.0).line().startswith("MISSED  start: 1 s")
    assert RESULT.to_json()["ratio"] == 2.0
    assert RESULT.to_json()["met"] is True
    assert replace(RESULT, baseline=0.0).ratio == float("inf")


def test_what_was_not_measured_says_why() -> None:
    gap = Skipped("container", "no docker")
    assert gap.line() == "SKIPPED container: no docker"
    assert gap.to_json() == {"name": "container", "skipped": "no docker"}


def test_jobs_take_turns_after_one_that_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(measure.time, "perf_counter", lambda: clock[0])
    seen: list[str] = []

    def job(name: str, seconds: list[float]) -> None:
        seen.append(name)
        clock[0] += seconds.pop(0)

    slow, fast = [100.0, 3.0, 9.0, 5.0], [100.0, 1.0, 1.0, 2.0]
    medians = interleaved(lambda: job("slow", slow), lambda: job("fast", fast), repetitions=3)
    assert medians == [5.0, 1.0]
    assert seen == ["slow", "fast"] * 4


def test_a_command_that_fails_ends_the_benchmark() -> None:
    assert command([sys.executable, "-c", "print(7)"])() == b"7\n"
    with pytest.raises(RuntimeError, match="exited 3: sad"):
        command([sys.executable, "-c", "import sys; sys.stderr.write('sad'); sys.exit(3)"])()


def test_commands_may_keep_their_modules_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    shown = command([sys.executable, "-c", "import os; print(sorted(os.environ))"], env={"EXTRA": "1"})().decode()
    assert "'EXTRA'" in shown
    assert "PYTHONDONTWRITEBYTECODE" not in shown
    assert os.environ["PYTHONDONTWRITEBYTECODE"] == "1"


def test_a_benchmark_of_something_else_ends() -> None:
    require(True, "fine")
    with pytest.raises(RuntimeError, match="does not measure what it should: no rows"):
        require(False, "no rows")


def test_an_unknown_name_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sparkles"]) == 4
    assert "no benchmark named sparkles; there are: startup, discover" in capsys.readouterr().err


def test_the_cards_and_manifests_that_are_measured_are_valid(tmp_path: Path) -> None:
    from benchmarks.validate import manifest

    assert validate_model_cards(cards(200), "models.json") == []
    assert cards(3) == cards(3)
    assert validate_build_manifest(manifest()) == []


def test_the_log_that_is_searched_has_no_hit_before_its_end() -> None:
    import random

    from benchmarks.log_scan import _block

    from madengine.execution.spec import LogScanRules
    from madengine.reporting.log_rules import compile_rules

    rules = compile_rules(LogScanRules())
    lines = set(_block(random.Random(7)).splitlines()[:20_000])
    assert not any(rules.match(line) for line in lines)
    assert not any(b"performance" in line for line in lines)
