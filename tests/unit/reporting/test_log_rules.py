"""Error patterns and harmless lines."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from madengine.core.errors import ConfigurationError
from madengine.execution.spec import LogScanRules
from madengine.reporting.log_rules import DEFAULT_PATTERNS, REGEX_REACH, compile_rules


@dataclass(frozen=True)
class AnyRules:
    enabled: bool = True
    benign: tuple[object, ...] = ()
    patterns: tuple[object, ...] | None = None


def matched(line: bytes, rules: LogScanRules | None = None) -> str | None:
    pattern = compile_rules(rules or LogScanRules()).match(line)
    return pattern.text if pattern else None


@pytest.mark.parametrize("text", DEFAULT_PATTERNS)
def test_every_default_pattern_matches_its_own_text(text: str) -> None:
    assert matched(f"  {text} 1".encode()) in (text, "RuntimeError:")


@pytest.mark.parametrize(
    ("line", "pattern"),
    [
        (b"torch.OutOfMemoryError: HIP out of memory. Tried", "OutOfMemoryError"),
        (b"RuntimeError: CUDA out of memory", "CUDA out of memory"),
        (b"torch/api.py:826] failed (exitcode: 1) local_rank: 0", "failed (exitcode:"),
        (b"E1201 03:04:05.1 140 torch/api.py:826] failed (exitcode: 1)", "failed (exitcode:"),
        (b"my.CustomException: no", "Exception:"),
        (b"an Exception was handled", None),
        (b"runtimeerror: no", None),
        (b"failed to open", None),
    ],
)
def test_lines_are_matched_by_the_first_pattern_of_the_list(line: bytes, pattern: str | None) -> None:
    assert matched(line) == pattern


@pytest.mark.parametrize(
    "line",
    [
        b"E20261201 03:04:05.123456 139 generateRocpd.cpp:605] RuntimeError: x",
        b"W20261201 03:04:05.123456 139 tool.cc:605] FAILED",
        b"[rocprofv3] FAILED",
        b"x.py:1: FutureWarning: ValueError: in the future",
        b"rpd_tracer: RuntimeError: x",
        b"AMD Metrics Exporter agent: FAILED",
        b"metrics-exporter FAILED",
    ],
)
def test_harmless_lines_match_nothing(line: bytes) -> None:
    assert matched(line) is None


def test_own_harmless_texts_are_literal_and_added() -> None:
    rules = LogScanRules(benign=("known.*issue",))
    assert matched(b"known.*issue FAILED", rules) is None
    assert matched(b"known big issue FAILED", rules) == "FAILED"
    assert matched(b"rpd_tracer FAILED", rules) is None


def test_own_patterns_replace_the_default_ones() -> None:
    rules = LogScanRules(patterns=("DIVERGED", r"loss=(nan|inf)\b"))
    assert matched(b"RuntimeError: x", rules) is None
    assert matched(b"step 1 DIVERGED", rules) == "DIVERGED"
    assert matched(b"step 1 loss=nan,", rules) == r"loss=(nan|inf)\b"
    assert matched(b"step 1 loss=nano", rules) is None


def test_an_own_pattern_also_matches_as_literal_text() -> None:
    rules = LogScanRules(patterns=("exit [code]", "failed (exitcode:", "a.b"))
    assert matched(b"exit [code] 1", rules) == "exit [code]"
    assert matched(b"failed (exitcode: 1", rules) == "failed (exitcode:"
    assert matched(b"axb", rules) == "a.b"


def test_a_pattern_beyond_ascii_matches_the_decoded_line() -> None:
    assert matched("größe 5: Überlauf".encode(), LogScanRules(patterns=("[üÜ]berlauf",))) == "[üÜ]berlauf"


def test_an_own_expression_sees_only_the_beginning_of_an_overlong_line() -> None:
    rules = LogScanRules(patterns=("a[b]c",))
    assert matched(b"x" * (REGEX_REACH - 3) + b"abc", rules) == "a[b]c"
    assert matched(b"x" * (REGEX_REACH - 2) + b"abc", rules) is None


def test_a_switched_off_scan_has_no_patterns() -> None:
    assert compile_rules(LogScanRules(enabled=False)).patterns == ()


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (AnyRules(patterns=("ok", "(oops")), "log_error_patterns holds '(oops', which is no valid regular expression"),
        (AnyRules(patterns=("a{99999999999999999999}",)), "no valid regular expression"),
        (AnyRules(patterns=("",)), "log_error_patterns holds '', where a text"),
        (AnyRules(patterns=(7,)), "log_error_patterns holds 7, where a text"),
        (AnyRules(benign=(" ",)), "log_error_benign_patterns holds ' ', where a text"),
        (AnyRules(benign=(None,)), "log_error_benign_patterns holds None, where a text"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_named(rules: AnyRules, message: str) -> None:
    with pytest.raises(ConfigurationError, match="log_error") as error:
        compile_rules(rules)  # type: ignore[arg-type]
    assert message in str(error.value)


def test_the_hint_shows_how_to_write_literal_text() -> None:
    with pytest.raises(ConfigurationError) as error:
        compile_rules(LogScanRules(patterns=("(oops",)))
    assert r"'\\(oops'" in str(error.value)
