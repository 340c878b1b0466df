"""One pass over a log."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from madengine.execution.spec import LogScanRules
from madengine.reporting.log_rules import DEFAULT_PATTERNS, compile_rules
from madengine.reporting.log_scan import CHUNK, REACH, LogReading, LogScan, scan_log
from madengine.reporting.metric_lines import MetricLine, Rejected, parse_metric_line
from madengine.verdict.evidence import LogFinding, Measurement

RULES = LogScanRules()


class Pieces:
    """A source that hands out at most ``size`` bytes at once."""

    def __init__(self, data: bytes, size: int) -> None:
        self.data, self.size, self.at = data, size, 0

    def readinto(self, buffer: memoryview) -> int:
        piece = self.data[self.at : self.at + min(self.size, len(buffer))]
        buffer[: len(piece)] = piece
        self.at += len(piece)
        return len(piece)


def reading(text: str | bytes, tmp_path: Path, rules: LogScanRules = RULES, **options: object) -> LogReading:
    log = tmp_path / "run.log"
    log.write_bytes(text.encode() if isinstance(text, str) else text)
    return scan_log(log, rules=rules, **options)  # type: ignore[arg-type]


def test_a_metric_line_is_measured_with_its_place(tmp_path: Path) -> None:
    result = reading("start\nperformance: 12.5, samples_per_second\nend\n", tmp_path)
    assert result.measurement == Measurement(12.5, "samples_per_second", source="run.log:2", text="12.5")
    assert (result.metric_count, result.rejected, result.findings, result.notes) == (1, (), (), ())


def test_the_last_metric_line_counts_and_that_is_said(tmp_path: Path) -> None:
    result = reading("performance: 1 x\nperformance: 2 x\nperformance: 3 y\nend", tmp_path)
    assert result.measurement == Measurement(3.0, "y", source="run.log:3", text="3")
    assert result.metric_count == 3
    assert result.notes == ("run.log: 3 metric lines, the last one (line 3) counts",)


def test_an_explicit_statement_stands_above_the_trainers_line(tmp_path: Path) -> None:
    result = reading("performance: 1 x\n{'train_samples_per_second': 9.0}\n", tmp_path)
    assert result.measurement == Measurement(1.0, "x", source="run.log:1", text="1")
    assert result.metric_count == 1


def test_the_trainers_dict_and_table_say_one_thing(tmp_path: Path) -> None:
    text = "{'train_samples_per_second': 9.5}\n***** train metrics *****\n  train_samples_per_second = 9.5\n"
    result = reading(text, tmp_path)
    assert result.measurement == Measurement(9.5, "train_samples_per_second", source="run.log:3", text="9.5")
    assert (result.metric_count, result.notes) == (2, ())


def test_different_numbers_of_the_trainer_are_said(tmp_path: Path) -> None:
    result = reading("train_samples_per_second = 9\ntrain_samples_per_second = 8\n", tmp_path)
    assert result.notes == ("run.log: 2 metric lines, the last one (line 2) counts",)


def test_a_carriage_return_breaks_lines_and_does_not_count_as_one(tmp_path: Path) -> None:
    result = reading("10%|#\r 100%|##\rperformance: 5 x\r\nlast\r\n", tmp_path)
    assert result.measurement == Measurement(5.0, "x", source="run.log:1", text="5")


def test_a_metric_never_comes_from_the_next_line(tmp_path: Path) -> None:
    result = reading("performance:\n5 x\nperformance:\r7 x\n", tmp_path)
    assert result.measurement is None
    assert result.rejected == (
        "run.log:1: performance: - no number follows 'performance:'",
        "run.log:3: performance: - no number follows 'performance:'",
    )


def test_colours_between_the_word_and_the_colon_are_ignored(tmp_path: Path) -> None:
    result = reading("\x1b[1mperformance\x1b[0m: 5 x\nperformance is fine\n", tmp_path)
    assert result.measurement == Measurement(5.0, "x", source="run.log:1", text="5")


def test_rejected_lines_are_told_with_line_and_reason(tmp_path: Path) -> None:
    result = reading("a\nperformance: nan x\n\nperformance: 1,234 x\n", tmp_path)
    assert result.measurement is None
    assert result.metric_count == 0
    assert result.rejected == (
        "run.log:2: performance: nan x - 'nan' is not a finite number",
        "run.log:4: performance: 1,234 x - '1,234' has thousands separators or a decimal comma",
    )
    assert result.notes == ()


def test_a_rejected_line_beside_a_measured_one_is_a_note(tmp_path: Path) -> None:
    result = reading("performance: 5 x\nperformance: nan train_samples_per_second\n", tmp_path)
    assert result.measurement is not None
    assert result.notes == (
        "1 more without a usable number, the first: run.log:2: performance: nan train_samples_per_second "
        "- 'nan' is not a finite number",
    )


def test_only_the_first_rejected_lines_are_kept(tmp_path: Path) -> None:
    result = reading("performance: nan x\n" * 5000, tmp_path)
    assert len(result.rejected) == 10
    assert result.rejected[-1].startswith("run.log:10:")


def test_the_first_line_with_an_error_is_found(tmp_path: Path) -> None:
    text = "ok\n  FAILED first\nRuntimeError: second\nTraceback (most recent call last):\n"
    assert reading(text, tmp_path).findings == (LogFinding("run.log", 2, "FAILED", "FAILED first"),)


@pytest.mark.parametrize("pattern", DEFAULT_PATTERNS)
def test_every_default_pattern_is_found_in_a_log(pattern: str, tmp_path: Path) -> None:
    (finding,) = reading(f"fine\n>> {pattern} <<\nfine\n", tmp_path).findings
    assert (finding.line, finding.pattern, finding.text) == (2, pattern, f">> {pattern} <<")


def test_harmless_lines_are_passed_over(tmp_path: Path) -> None:
    text = "x: FutureWarning: ValueError: y\n[rocprofv3] FAILED\nValueError: z\n"
    assert reading(text, tmp_path).findings == (LogFinding("run.log", 3, "ValueError:", "ValueError: z"),)


def test_own_expressions_compete_with_literals_for_the_first_line(tmp_path: Path) -> None:
    rules = LogScanRules(patterns=("STOP", r"loss=\s*nan"))
    text = "go\nloss=  nan\nSTOP\n"
    assert reading(text, tmp_path, rules).findings[0].line == 2
    assert reading("go\nSTOP\nloss= nan\n", tmp_path, rules).findings[0].pattern == "STOP"


def test_an_own_expression_does_not_reach_over_a_line_break(tmp_path: Path) -> None:
    assert reading("loss=\nnan\n", tmp_path, LogScanRules(patterns=(r"loss=\s*nan",))).findings == ()
    assert reading("a\nb^\n", tmp_path, LogScanRules(patterns=(r"^b\^$",))).findings[0].line == 2


def test_the_scan_can_be_off_and_findings_unwanted(tmp_path: Path) -> None:
    text = "FAILED\nperformance: 5 x\n"
    for result in (reading(text, tmp_path, LogScanRules(enabled=False)), reading(text, tmp_path, want_findings=False)):
        assert result.findings == ()
        assert result.measurement is not None


def test_label_and_rank_are_carried(tmp_path: Path) -> None:
    result = reading("FAILED\nperformance: 5 x\n", tmp_path, label="node_3/run.log", rank=3)
    assert result.measurement == Measurement(5.0, "x", source="node_3/run.log:2", text="5", rank=3)
    assert result.findings[0].file == "node_3/run.log"


def test_line_numbers_hold_beyond_one_chunk(tmp_path: Path) -> None:
    lines = CHUNK // 4
    result = reading("abcdefg\n" * lines + "RuntimeError: x\n" + "abc\n" * lines + "performance: 5 x\n", tmp_path)
    assert result.findings[0].line == lines + 1
    assert result.measurement is not None
    assert result.measurement.source == f"run.log:{2 * lines + 2}"


def test_a_log_without_any_line_break_is_searched(tmp_path: Path) -> None:
    text = "x" * (3 * CHUNK) + "RuntimeError: here" + "y" * CHUNK + "performance: 5 x"
    result = reading(text, tmp_path)
    assert result.measurement is None
    assert result.findings[0].line == 1
    assert "RuntimeError: here" in result.findings[0].text
    assert len(result.findings[0].text) <= 300


def test_a_harmless_text_far_away_on_an_endless_line_excuses_nothing(tmp_path: Path) -> None:
    text = "FutureWarning" + "x" * (2 * REACH) + "FAILED"
    assert reading(text, tmp_path).findings[0].pattern == "FAILED"
    assert reading("FutureWarning" + "x" * 100 + "FAILED", tmp_path).findings == ()


def test_an_own_expression_is_found_on_an_overlong_line(tmp_path: Path) -> None:
    text = "x" * 10_000 + "loss=nan" + "x" * 10_000
    (finding,) = reading(text, tmp_path, LogScanRules(patterns=("loss=(nan|inf)",))).findings
    assert finding.line == 1


def test_a_finding_is_quoted_without_colours_and_control_characters(tmp_path: Path) -> None:
    assert reading("\x1b[31mValueError:\x1b[0m a\x07b\n", tmp_path).findings[0].text == "ValueError: a b"


@pytest.mark.parametrize("content", [b"", b"\n", b"\r", b"\xff\xfe\x00", bytes(range(256)) * 100])
def test_any_content_is_read(content: bytes, tmp_path: Path) -> None:
    assert reading(content, tmp_path) == LogReading()


def test_a_log_that_cannot_be_read_is_a_note(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    cases = {"missing.log": "there is no such file", ".": "it is a directory", "pipe": "it is not a regular file"}
    for name, why in cases.items():
        path = tmp_path / name
        assert scan_log(path, rules=RULES).notes == (f"{path}: the log was not searched: {why}",)


def test_a_read_that_fails_half_way_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: LogScan, source: object) -> None:
        self._search(0, 0)
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(LogScan, "read", fail)
    log = tmp_path / "run.log"
    log.touch()
    assert scan_log(log, rules=RULES).notes == (f"{log}: the log was searched only in part: Input/output error",)


FRAGMENTS = st.sampled_from(
    [
        "performance: 5 x",
        "performance: nan x",
        "performance:",
        "performance",
        "\x1b[1mperformance\x1b[0m: 7 y",
        "train_samples_per_second = 3",
        "{'train_samples_per_second': 4}",
        "RuntimeError: a",
        "Error:",
        "FAILED",
        "HIP out of memory",
        "loss=nan",
        "FutureWarning",
        "\n",
        "\n",
        "\r",
        " ",
        "[rank0]: ",
        "xxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "\xe9",
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(FRAGMENTS, max_size=40), st.integers(1, 70), st.integers(1, 70), st.booleans())
def test_any_cut_into_chunks_gives_the_same_answer(parts: list[str], size: int, chunk: int, own: bool) -> None:
    data = "".join(parts).encode("latin-1")
    rules = compile_rules(LogScanRules(patterns=("FAILED", "HIP out of memory", "loss=(nan|inf)") if own else None))

    def answer(source: Pieces, chunk: int) -> LogReading:
        scan = LogScan("run.log", rules, chunk=chunk, reach=48)
        scan.read(source)
        return scan.result()

    whole = answer(Pieces(data, 1 << 20), 1 << 20)
    assert answer(Pieces(data, size), 64) == whole
    assert answer(Pieces(data, 1 << 20), chunk) == whole


@settings(max_examples=100, deadline=None)
@given(st.lists(FRAGMENTS, max_size=30))
def test_the_answer_is_that_of_a_plain_reading_line_by_line(parts: list[str]) -> None:
    data = "".join(parts).encode("latin-1")
    rules = compile_rules(RULES)
    scan = LogScan("run.log", rules)
    scan.read(Pieces(data, 1 << 20))
    lines = [(n, piece) for n, line in enumerate(data.split(b"\n"), 1) for piece in line.split(b"\r")]
    errors = [(n, pattern.text) for n, line in lines if (pattern := rules.match(line))]
    stated = [(n, parse_metric_line(line)) for n, line in lines]
    measured = [(n, line) for n, line in stated if isinstance(line, MetricLine)]
    counting = [pair for pair in measured if not pair[1].hugging_face] or measured
    result = scan.result()
    assert [(found.line, found.pattern) for found in result.findings] == errors[:1]
    assert result.metric_count == len(counting)
    if counting:
        number, line = counting[-1]
        assert result.measurement == Measurement(line.value, line.metric, source=f"run.log:{number}", text=line.text)
    assert bool(result.rejected) == any(isinstance(line, Rejected) for _, line in stated)


@settings(deadline=None)
@given(st.binary(max_size=400))
def test_no_bytes_raise(data: bytes) -> None:
    scan = LogScan("run.log", compile_rules(RULES), chunk=16, reach=32)
    scan.read(Pieces(data, 5))
    scan.result()


def test_a_log_of_rejected_and_harmless_lines_only_takes_no_quadratic_time(tmp_path: Path) -> None:
    began = time.perf_counter()
    reading("performance: nan x\nFutureWarning ValueError: Error:\n" * 20_000, tmp_path)
    assert time.perf_counter() - began < 5


def test_rejected_lines_of_both_kinds_come_in_the_order_of_the_file(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    lines = [f"performance: nan x{n}" if n % 2 else "train_samples_per_second = nan" for n in range(30)]
    log.write_text("\n".join(lines))
    rejected = scan_log(log, rules=LogScanRules()).rejected
    assert [int(text.split(":")[1]) for text in rejected] == list(range(1, 11))
