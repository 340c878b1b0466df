"""Metric lines: what counts as the statement of a number in a model's own output.

``performance: <number> <metric>`` is a statement of its own. Before it on the line may stand blanks, time stamps and
rank prefixes, nothing else, so prose ("X performance: 5 ms") and shell trace ("+ echo performance: 5 x") say nothing.
Hugging Face's trainer prints ``train_samples_per_second`` in a dict and in a summary table; both are read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from madengine.reporting.numbers import NUMBER, NotANumber, quoted, read_number

STATEMENT = "performance:"
HUGGING_FACE = "train_samples_per_second"
METRIC_LIMIT = 200  # characters kept of a metric's name
PREFIX_LIMIT = 256  # characters that may stand before a statement
_NO_METRIC = "no metric name follows the number"


@dataclass(frozen=True)
class MetricLine:
    """A number that a line states.

    ``metric`` is the name as the model wrote it, ``text`` the number as it was written. ``hugging_face`` marks the
    trainer's own line, which yields to an explicit statement.
    """

    value: float
    metric: str
    text: str
    hugging_face: bool = False


@dataclass(frozen=True)
class Rejected:
    """A metric line without a usable number; ``reason`` says why, ``text`` is the statement (shortened)."""

    reason: str
    text: str
    hugging_face: bool = False


_ANSI = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # colours and cursor moves
    r"|\][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles and links
    r"|[@-Z\\^_])"
)

_DATE = r"[0-9]{4}[-/.][0-9]{2}[-/.][0-9]{2}"
_TIME = r"[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?"
_ZONE = r"(?: ?(?:Z|UTC|GMT|[+-][0-9]{2}:?[0-9]{2}))?"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_CALENDAR = rf"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? )?{_MONTH} [ 0-9]?[0-9],? {_TIME}(?: [A-Z]{{3,4}})?(?: [0-9]{{4}})?"
_EPOCH = r"[0-9]{10}(?:[0-9]{3})?(?:\.[0-9]{1,9})?"
_STAMP = rf"(?:{_DATE}(?:[T ]{_TIME}{_ZONE})?|{_TIME}{_ZONE}|{_CALENDAR}|{_EPOCH})"
_UPTIME = r"[0-9]{1,9}\.[0-9]{1,9}"  # "[   12.345678]", as the kernel and `ts -s` write it
_RANK = r"(?:[Rr]ank|RANK|default)[ _=:-]?[0-9]{1,6}(?:/[0-9]{1,6})?"
_PREFIX = (
    r"(?:[ \t\ufeff]"
    rf"|\[ *(?:{_STAMP}|{_UPTIME}) *\](?: ?[:|,-](?=[ \t]))?"
    rf"|\({_STAMP}\)(?: ?[:|,-](?=[ \t]))?"
    rf"|{_STAMP}(?: ?[:|,-])?(?=[ \t\[])"
    rf"|\[ *(?:{_RANK}|[0-9]{{1,6}}) *\]:?"
    rf"|\((?:{_RANK})\):?"
    r"|\[(?:[\w.@-]{1,64}@)?[0-9]{1,6},[0-9]{1,6}\](?:<std(?:out|err)>)?:?"  # mpirun --tag-output
    rf"|{_RANK}:"
    r"|[0-9]{1,6}:(?=[ \t])"  # srun --label
    r")*"
)
_VALUE = re.compile(rf"(?P<number>{NUMBER})(?:/[A-Za-z]+)?(?:[ \t]*,[ \t]*|[ \t]+)(?P<metric>[^\s,].*)")
_BARE_VALUE = re.compile(rf"{NUMBER}(?:/[A-Za-z]+)?[ \t]*,?")
_GROUPED = re.compile(r"[+-]?[0-9][0-9.]*,[0-9][0-9.,]*|[+-]?[0-9]{1,3}(?:[' _][0-9]{3})+(?![\w.])")
_PROGRESS_BAR = re.compile(r"[^{]*[0-9]%\|[^{]*\] *")
_HF_VALUE = re.compile(r"['\"]?[ \t]*[:=][ \t]*['\"]?(?P<number>[^\s,'\"}]*)")


def parse_metric_line(line: bytes | str) -> MetricLine | Rejected | None:
    """What one line states: a number, a number that cannot be used, or nothing.

    The line may end in a line break; a text of several lines states nothing, since a metric never comes from the
    next line. Colour codes are ignored.
    """
    text = line.decode("utf-8", "replace") if isinstance(line, bytes) else line
    text = strip_ansi(text.rstrip("\r\n"))
    if "\n" in text or "\r" in text:
        return None
    return _statement(text) or _hugging_face(text)


def strip_ansi(text: str) -> str:
    """``text`` without terminal escape sequences."""
    return _ANSI.sub("", text) if "\x1b" in text else text


def _statement(text: str) -> MetricLine | Rejected | None:
    before, found, rest = text.partition(STATEMENT)
    if not found or not _is_prefix(before):
        return None
    rest = rest.strip()
    reason = _refusal(rest)
    if reason:
        return Rejected(reason, _shown(f"{STATEMENT} {rest}"))
    match = _VALUE.fullmatch(rest)
    if match is None:
        return Rejected(_why_unreadable(rest), _shown(f"{STATEMENT} {rest}"))
    value = read_number(match["number"])
    if isinstance(value, NotANumber):
        return Rejected(value.reason, _shown(f"{STATEMENT} {rest}"))
    metric = _clean(match["metric"])
    if not metric:
        return Rejected(_NO_METRIC, _shown(f"{STATEMENT} {rest}"))
    return MetricLine(value, metric, match["number"])


def _is_prefix(before: str) -> bool:
    return not before or (len(before) <= PREFIX_LIMIT and _prefix().fullmatch(before) is not None)


@cache
def _prefix() -> re.Pattern[str]:
    """Compiled on use: it takes as long as all other expressions here, and most statements have nothing before them."""
    return re.compile(_PREFIX)


def _refusal(rest: str) -> str:
    """Why a statement that may look readable is not to be read, or an empty string."""
    grouped = _GROUPED.match(rest)
    if grouped:
        return f"{quoted(grouped[0])} has thousands separators or a decimal comma"
    if STATEMENT in rest:
        return "two statements run together on one line"
    return ""


def _why_unreadable(rest: str) -> str:
    if not rest:
        return f"no number follows '{STATEMENT}'"
    if _BARE_VALUE.fullmatch(rest):
        return _NO_METRIC
    word = rest.split(maxsplit=1)[0]
    number = read_number(word.rstrip(","))
    return number.reason if isinstance(number, NotANumber) else f"{quoted(rest)} is not '<number> <metric>'"


def _hugging_face(text: str) -> MetricLine | Rejected | None:
    before, found, rest = text.partition(HUGGING_FACE)
    if not found or not _is_trainer_output(before):
        return None
    match = _HF_VALUE.match(rest)
    if match is None:
        return None
    value = read_number(match["number"])
    if isinstance(value, NotANumber):
        return Rejected(value.reason, _shown(HUGGING_FACE + rest), hugging_face=True)
    return MetricLine(value, HUGGING_FACE, match["number"], hugging_face=True)


def _is_trainer_output(before: str) -> bool:
    """Whether the key stands in the trainer's table, in its dict, or in a dict printed behind a progress bar."""
    head, brace, _ = before.partition("{")
    if not brace:
        return _is_prefix(before.removesuffix("'").removesuffix('"'))
    return _is_prefix(head) or _PROGRESS_BAR.fullmatch(head) is not None


def _clean(metric: str) -> str:
    printable = "".join(char if char.isprintable() else " " for char in metric[: 4 * METRIC_LIMIT])
    return " ".join(printable.split())[:METRIC_LIMIT].rstrip()


def _shown(text: str) -> str:
    return _clean(text)[:120]
