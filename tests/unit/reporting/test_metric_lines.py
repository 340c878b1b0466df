"""What counts as a metric line."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from madengine.reporting.metric_lines import (
    METRIC_LIMIT,
    PREFIX_LIMIT,
    MetricLine,
    Rejected,
    parse_metric_line,
    strip_ansi,
)

FIVE = MetricLine(5.0, "x", "5")


@pytest.mark.parametrize(
    ("line", "value", "metric", "text"),
    [
        ("performance: 12.5 samples_per_second", 12.5, "samples_per_second", "12.5"),
        ("performance: 12.5, samples_per_second", 12.5, "samples_per_second", "12.5"),
        ("performance: 12.5 , samples_per_second", 12.5, "samples_per_second", "12.5"),
        ("performance: 12.5,samples_per_second", 12.5, "samples_per_second", "12.5"),
        ("performance: 3e4/s tokens", 30000.0, "tokens", "3e4"),
        ("performance: 30/sec, tokens", 30.0, "tokens", "30"),
        ("performance:5 x", 5.0, "x", "5"),
        ("performance:\t5\tx", 5.0, "x", "5"),
        ("performance:   -5.25   x  ", -5.25, "x", "-5.25"),
        ("performance: +.5e-3 x", 0.0005, "x", "+.5e-3"),
        ("performance: 5. x", 5.0, "x", "5."),
        ("performance: 0 x", 0.0, "x", "0"),
        ("performance: 5 99th_percentile_ms", 5.0, "99th_percentile_ms", "5"),
        ("performance: 5, 99th percentile", 5.0, "99th percentile", "5"),
        ("performance: 5 100GB/s", 5.0, "100GB/s", "5"),
        ("performance: 5000 100 items", 5000.0, "100 items", "5000"),
        ("performance: 1234.5 tok/s (isl=1024 osl=1024 con=8)", 1234.5, "tok/s (isl=1024 osl=1024 con=8)", "1234.5"),
        ("performance: 5 ms TTFT p50 (isl=1,024)", 5.0, "ms TTFT p50 (isl=1,024)", "5"),
        ("performance: 5 GB/s  RDMA\t(bf16)", 5.0, "GB/s RDMA (bf16)", "5"),
        ("performance: 5 train_samples_per_second", 5.0, "train_samples_per_second", "5"),
        ("performance: 5 бит/с", 5.0, "бит/с", "5"),
    ],
)
def test_a_statement_gives_its_number_and_metric(line: str, value: float, metric: str, text: str) -> None:
    assert parse_metric_line(line) == MetricLine(value, metric, text)
    assert parse_metric_line(line.encode()) == MetricLine(value, metric, text)


@pytest.mark.parametrize(
    "prefix",
    [
        "",
        "   \t ",
        "\ufeff",
        "2026-12-01 ",
        "2026/12/01 03:04:05 ",
        "2026-12-01T03:04:05Z ",
        "2026-12-01T03:04:05+00:00 ",
        "2026-12-01T03:04:05.123456-0800: ",
        "2026-12-01 03:04:05 UTC ",
        "2026-12-01 03:04:05,123 ",
        "2026-12-01 03:04:05,123 - ",
        "2026-12-01 03:04:05.123 | ",
        "03:04:05 ",
        "3:04:05.5 ",
        "[03:04:05] ",
        "[03:04:05]",
        "[2026-12-01 03:04:05,123] ",
        "[2026-12-01T03:04:05Z]: ",
        "(03:04:05) ",
        "(2026-12-01): ",
        "Dec  1 03:04:05 ",
        "Dec 01 03:04:05 ",
        "Tue Dec  1 03:04:05 2026 ",
        "Tue Dec  1 03:04:05 UTC 2026: ",
        "Tue, Dec 1, 03:04:05 ",
        "1764559445 ",
        "1764559445123 ",
        "1764559445.123 ",
        "[1764559445.123] ",
        "[   12.345678] ",
        "[rank0]:",
        "[rank0]: ",
        "[rank 0] ",
        "[Rank 3/8] ",
        "[default7]:",
        "[0]:",
        "[12] ",
        "(rank 0) ",
        "(RANK=3): ",
        "rank0: ",
        "rank 12:",
        "Rank_1: ",
        "RANK-1: ",
        "3: ",
        " 3: ",
        "000003:\t",
        "[1,0]<stdout>:",
        "[1,0]<stderr>: ",
        "[1,0] ",
        "[prterun-gpu-07-123@1,12]<stdout>: ",
        "[2026-12-01 03:04:05] [rank0]: ",
        "0: [rank0]:[03:04:05] ",
        "03:04:05 3: ",
    ],
)
def test_blanks_time_stamps_and_rank_prefixes_may_stand_before_a_statement(prefix: str) -> None:
    assert parse_metric_line(f"{prefix}performance: 5 x") == FIVE


@pytest.mark.parametrize(
    "line",
    [
        "",
        "performance",
        "performance 5 x",
        "performance : 5 x",
        "Performance: 5 x",
        "PERFORMANCE: 5 x",
        "model_performance: 5 x",
        "X performance: 5 ms",
        "the performance: 5 x",
        "final: performance: 5 x",
        "INFO performance: 5 x",
        "[INFO] performance: 5 x",
        "INFO:root:performance: 5 x",
        "2026-12-01 03:04:05 INFO performance: 5 x",
        "+ echo performance: 5 x",
        "++ performance: 5 x",
        'echo "performance: 5 x"',
        '"performance: 5 x"',
        '{"performance": 5}',
        "- performance: 5 x",
        "> performance: 5 x",
        "# performance: 5 x",
        "12 performance: 5 x",
        "3:performance: 5 x",
        "1234567: performance: 5 x",
        "rank0 performance: 5 x",
        "ranks 0: performance: 5 x",
        "03:04performance: 5 x",
        "03:04:05performance: 5 x",
        "2026-12-01performance: 5 x",
        "2026-12 performance: 5 x",
        "[12.5.1] performance: 5 x",
        "[] performance: 5 x",
        "[rank] performance: 5 x",
        "gpu-07: performance: 5 x",
        "Foo  1 03:04:05 performance: 5 x",
        "123456789 performance: 5 x",
        "03:04:05 * performance: 5 x",
        "performance:\n5 x",
        "performance: 5\nx",
        "done\nperformance: 5 x",
        "performance:\r5 x",
        "50%|###\rperformance: 5 x",
        "Reperformance: 5 x",
    ],
)
def test_prose_and_shell_trace_state_nothing(line: str) -> None:
    assert parse_metric_line(line) is None


@pytest.mark.parametrize(
    ("rest", "reason"),
    [
        (" nan x", "'nan' is not a finite number"),
        (" -inf x", "'-inf' is not a finite number"),
        (" NA x", "'NA' says that there is no value"),
        (" N/A, x", "'N/A' says that there is no value"),
        (" 1e999 x", "'1e999' is too large for a number"),
        (" 1e999/s x", "'1e999' is too large for a number"),
        (" 1,234 x", "'1,234' has thousands separators or a decimal comma"),
        (" -1,234,567.8 x", "'-1,234,567.8' has thousands separators or a decimal comma"),
        (" 12,5 x", "'12,5' has thousands separators or a decimal comma"),
        (" 1.234,5 x", "'1.234,5' has thousands separators or a decimal comma"),
        (" 12 345 x", "'12 345' has thousands separators or a decimal comma"),
        (" 12 345 678 x", "'12 345 678' has thousands separators or a decimal comma"),
        (" 5 100 items", "'5 100' has thousands separators or a decimal comma"),
        (" 12'345 x", "'12'345' has thousands separators or a decimal comma"),
        (" 1_000 x", "'1_000' has thousands separators or a decimal comma"),
        (" 5", "no metric name follows the number"),
        (" 5/s", "no metric name follows the number"),
        (" 5,", "no metric name follows the number"),
        (" 5 ,", "no metric name follows the number"),
        (" 5 \x1b", "no metric name follows the number"),
        (" 5/s ,", "no metric name follows the number"),
        ("", "no number follows 'performance:'"),
        ("   ", "no number follows 'performance:'"),
        ("  tok/s", "'tok/s' is not a number"),
        (" 5ms latency", "'5ms' is not a number"),
        (" 95% accuracy", "'95%' is not a number"),
        (" 1.2.3 x", "'1.2.3' is not a number"),
        (" $X x", "'$X' is not a number"),
        (" 5 ,, x", "'5 ,, x' is not '<number> <metric>'"),
        (" ٣ x", "'٣' is not a number"),
        (" 5 xperformance: 6 y", "two statements run together on one line"),
    ],
)
def test_a_statement_without_a_usable_number_is_rejected_with_its_reason(rest: str, reason: str) -> None:
    stated = parse_metric_line(f"[rank0]: performance:{rest}")
    assert stated == Rejected(reason, " ".join(f"performance: {rest}".replace("\x1b", "").split()))


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("  train_samples_per_second =     12.345", "12.345"),
        ("train_samples_per_second=12.345", "12.345"),
        ("[rank0]: train_samples_per_second: 12.345", "12.345"),
        ('    "train_samples_per_second": 12.345,', "12.345"),
        ("'train_samples_per_second': '12.345'", "12.345"),
        ("{'train_runtime': 10.0, 'train_samples_per_second': 12.345, 'epoch': 3.0}", "12.345"),
        ("{'train_samples_per_second': '12.345', 'epoch': '3.0'}", "12.345"),
        ("03:04:05 {'train_samples_per_second': 12.345}", "12.345"),
        ("100%|####| 10/10 [00:10<00:00,  1.00it/s]{'train_samples_per_second': 12.345}", "12.345"),
        ("100%|####| 10/10 [00:10<00:00,  1.00it/s] {'train_samples_per_second': 12.345}", "12.345"),
    ],
)
def test_the_trainers_own_lines_are_read(line: str, text: str) -> None:
    assert parse_metric_line(line) == MetricLine(12.345, "train_samples_per_second", text, hugging_face=True)


@pytest.mark.parametrize(
    "line",
    [
        "the train_samples_per_second = 12.3",
        "logging {'train_samples_per_second': 12.3}",
        "100% {'train_samples_per_second': 12.3}",
        "train_samples_per_second",
        "train_samples_per_second 12.3",
        "train_samples_per_seconds = 12.3",
        "eval_samples_per_second = 12.3",
        "train_samples_per_second = 1\ntrain_samples_per_second = 2",
    ],
)
def test_a_mention_of_the_trainers_key_states_nothing(line: str) -> None:
    assert parse_metric_line(line) is None


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("train_samples_per_second = nan", "'nan' is not a finite number"),
        ("{'train_samples_per_second': 1e999}", "'1e999' is too large for a number"),
        ("train_samples_per_second =", "the value is empty"),
    ],
)
def test_a_trainers_line_without_a_number_is_rejected(line: str, reason: str) -> None:
    shown = line.strip("{'")
    assert parse_metric_line(line) == Rejected(reason, shown, hugging_face=True)


@pytest.mark.parametrize(
    "line",
    [
        "\x1b[32mperformance\x1b[0m: \x1b[1;31m5\x1b[0m x",
        "\x1b[2K\x1b[38;5;208mperformance: 5 x\x1b[0m\x1b[K",
        "\x1b]0;title\x07performance: 5 x",
        "\x1b]8;;http://a\x1b\\performance: 5 x\x1b]8;;\x1b\\",
        "\x1bMperformance: 5 x",
        "performance: 5 x\r\n",
        "performance: 5 x\n",
    ],
)
def test_colour_codes_and_the_line_break_are_ignored(line: str) -> None:
    assert parse_metric_line(line) == FIVE


def test_stripping_colours_leaves_a_plain_text_alone() -> None:
    assert strip_ansi("a[0m b") == "a[0m b"
    assert strip_ansi("\x1b[1ma\x1b[0mb") == "ab"


def test_the_name_of_a_metric_is_printable_and_bounded() -> None:
    assert parse_metric_line("performance: 5 a\x00\x07b") == MetricLine(5.0, "a b", "5")
    long = parse_metric_line("performance: 5 " + "y" * 5000)
    assert isinstance(long, MetricLine)
    assert long.metric == "y" * METRIC_LIMIT


def test_a_rejected_statement_is_quoted_in_at_most_120_characters() -> None:
    stated = parse_metric_line("performance: nan " + "y" * 500)
    assert isinstance(stated, Rejected)
    assert stated.text == "performance: nan " + "y" * 103


def test_a_prefix_has_a_limit() -> None:
    assert parse_metric_line(" " * PREFIX_LIMIT + "performance: 5 x") == FIVE
    assert parse_metric_line(" " * (PREFIX_LIMIT + 1) + "performance: 5 x") is None


def test_bytes_that_are_not_utf_8_do_no_harm() -> None:
    assert parse_metric_line(b"performance: 5 \xff") == MetricLine(5.0, "\ufffd", "5")
    assert parse_metric_line(b"\xffperformance: 5 x") is None


@settings(deadline=None)
@given(st.one_of(st.text(), st.text(alphabet="performance: 0123456789.,eE+-/ \x1b[m{}'")), st.text(max_size=20))
@example("\x1b[", "")
@example("9:" * 100, "")
@example("[" * 200, "")
def test_no_line_raises_and_every_number_is_finite(before: str, after: str) -> None:
    for line in (before, f"performance: {before}{after}", f"{before}performance: 5 {after}"):
        stated = parse_metric_line(line)
        if isinstance(stated, MetricLine):
            assert math.isfinite(stated.value)
            assert stated.metric
        elif stated is not None:
            assert stated.reason


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_raise(line: bytes) -> None:
    parse_metric_line(b"performance: " + line)
    parse_metric_line(line + b"performance: 5 x")
