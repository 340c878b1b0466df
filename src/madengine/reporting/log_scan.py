"""One pass over a model's log for metric lines and for the first line that looks like an error.

The log may be larger than memory and may hold no line break at all. It is read in chunks into one buffer and searched
for literal texts; only what lies around a hit is looked at. Every decision about a hit depends on the bytes within
``reach`` of it and on nothing else, so the answer does not depend on how the log was cut into chunks.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from madengine.reporting.log_rules import REGEX_REACH, CompiledRules, Pattern, ScanRules, compile_rules
from madengine.reporting.metric_lines import (
    HUGGING_FACE,
    STATEMENT,
    MetricLine,
    Rejected,
    parse_metric_line,
    strip_ansi,
)
from madengine.reporting.plain_file import NotReadableError, open_plain
from madengine.reporting.text_search import OneText, Search
from madengine.verdict.evidence import LogFinding, Measurement

CHUNK = 256 << 10  # bytes read at once
REACH = 8 << 10  # bytes before and after a hit that count as its line
_REGEX_OVERLAP = 512  # bytes that two pieces of an overlong line share
_BEFORE_METRIC = 1 << 10  # bytes that may stand before a metric's key, colour codes included
_TEXT_LIMIT = 300  # characters of a line that a finding quotes
_REJECTED_LIMIT = 10  # rejected lines that are kept, the first ones
_STATEMENT_KEY = OneText(STATEMENT.encode())
_TRAINER_KEY = OneText(HUGGING_FACE.encode())
_COLOURED_KEY = OneText(STATEMENT.encode().rstrip(b":"))  # a colour code may stand between the word and the colon


class Source(Protocol):
    """What a log is read from: ``readinto`` as raw files have it."""

    def readinto(self, buffer: memoryview, /) -> int | None:
        """Fill the buffer, return how many bytes it was, 0 at the end."""


@dataclass(frozen=True)
class LogReading:
    """What a log says.

    ``measurement`` is the last metric line, None when there is none; ``metric_count`` how many there were;
    ``rejected`` sentences (``run.log:12: ...``) about the first metric lines without a usable number;
    ``findings`` at most one, the first line that matches an error pattern; ``notes`` are remarks.
    """

    measurement: Measurement | None = None
    metric_count: int = 0
    rejected: tuple[str, ...] = ()
    findings: tuple[LogFinding, ...] = ()
    notes: tuple[str, ...] = ()


def scan_log(path: Path, *, rules: ScanRules, want_findings: bool = True, label: str = "", rank: int = 0) -> LogReading:
    """Read the log at ``path`` once.

    ``label`` is what sources and findings call the file, its name when empty; ``rank`` is the node that wrote it. A log
    that is missing or cannot be read is a note. Raises :class:`ConfigurationError` for rules that cannot be used.
    """
    compiled = compile_rules(rules)
    name = label or path.name
    scan = LogScan(name, compiled if want_findings else None, rank=rank)
    try:
        with open_plain(path) as file:
            scan.read(file)
    except NotReadableError as error:
        return LogReading(notes=(f"{path}: the log was not searched: {error}",))
    except OSError as error:
        scan.notes.append(f"{path}: the log was searched only in part: {error.strerror or error}")
    return scan.result()


@dataclass(frozen=True)
class _Hit:
    """A line that matches an error pattern: where in the buffer, its text, and the pattern."""

    at: int
    line: bytes
    pattern: Pattern


@dataclass
class _Stated:
    """The metric lines of one kind so far: how many, the last one, its line number, whether their numbers differ."""

    count: int = 0
    line: int = 0
    last: MetricLine | None = None
    differ: bool = False

    def add(self, stated: MetricLine) -> None:
        self.differ = self.differ or (self.last is not None and self.last.value != stated.value)
        self.count, self.last = self.count + 1, stated


@dataclass
class _Rejections:
    """Metric lines without a usable number: how many there were, and the first of them with their places in the file.

    The kinds of lines are searched for one after the other in each chunk, so they do not come in the order of the file.
    """

    count: int = 0
    kept: list[tuple[int, str]] = field(default_factory=list)

    def is_early(self, place: int) -> bool:
        """Whether a line at this place would be kept."""
        return len(self.kept) < _REJECTED_LIMIT or place < self.kept[-1][0]

    def keep(self, place: int, text: str) -> None:
        """Keep a line among the first ones."""
        insort(self.kept, (place, text))
        del self.kept[_REJECTED_LIMIT:]


class LogScan:
    """The state of one pass; ``read`` a source, then ask for the ``result``.

    ``_base`` is the file offset of the buffer's first byte, ``_end`` how much of the buffer is filled, ``_lines`` the
    number of line breaks before what is being searched.
    """

    def __init__(
        self, label: str, rules: CompiledRules | None, *, rank: int = 0, chunk: int = CHUNK, reach: int = REACH
    ) -> None:
        self.notes: list[str] = []
        self._label, self._rules, self._rank = label, rules, rank
        self._chunk, self._reach = chunk, reach
        self._buffer = bytearray(chunk + 2 * reach)
        self._base = self._end = self._lines = self._next_line = 0
        self._finding: LogFinding | None = None
        self._statements, self._trainer = _Stated(), _Stated()
        self._rejections = _Rejections()

    def read(self, source: Source) -> None:
        """Read the source to its end."""
        view = memoryview(self._buffer)
        start = 0
        while True:
            read = source.readinto(view[self._end : self._end + self._chunk]) or 0
            self._end += read
            stop = self._end if read == 0 else max(start, self._end - self._reach)
            self._search(start, stop)
            if read == 0:
                return
            start = self._shift(view, stop)

    def result(self) -> LogReading:
        """What was read. An explicit statement stands above the trainer's own line."""
        stated = self._statements if self._statements.last else self._trainer
        rejections = self._rejections
        notes = list(self.notes)
        if stated.count > 1 and (stated.differ or stated is self._statements):
            notes.append(f"{self._label}: {stated.count} metric lines, the last one (line {stated.line}) counts")
        if stated.last and rejections.count:
            notes.append(f"{rejections.count} more without a usable number, the first: {rejections.kept[0][1]}")
        return LogReading(
            measurement=self._measurement(stated),
            metric_count=stated.count,
            rejected=tuple(text for _, text in rejections.kept),
            findings=(self._finding,) if self._finding else (),
            notes=tuple(notes),
        )

    def _measurement(self, stated: _Stated) -> Measurement | None:
        line = stated.last
        if line is None:
            return None
        source = f"{self._label}:{stated.line}"
        return Measurement(value=line.value, metric=line.metric, source=source, text=line.text, rank=self._rank)

    def _shift(self, view: memoryview, start: int) -> int:
        """Make room for a chunk; what lies within reach before ``start`` stays. Returns the new ``start``."""
        drop = max(0, start - self._reach)
        if not drop or self._end + self._chunk <= len(self._buffer):
            return start
        kept = self._end - drop
        view[:kept] = view[drop : self._end].tobytes()
        self._base, self._end = self._base + drop, kept
        return start - drop

    def _search(self, start: int, stop: int) -> None:
        if self._rules is not None and self._finding is None:
            self._search_errors(self._rules, start, stop)
        coloured = self._buffer.find(b"\x1b", start, self._end) >= 0
        self._search_metric(_COLOURED_KEY if coloured else _STATEMENT_KEY, self._statements, start, stop)
        self._search_metric(_TRAINER_KEY, self._trainer, start, stop)
        self._lines += self._buffer.count(b"\n", start, stop)

    def _line_number(self, start: int, at: int) -> int:
        return self._lines + self._buffer.count(b"\n", start, at) + 1

    def _line_start(self, at: int, reach: int) -> int | None:
        """Where the line of the byte at ``at`` begins, None when that is further away than ``reach``."""
        low = max(0, at - reach)
        start = max(self._buffer.rfind(b"\n", low, at), self._buffer.rfind(b"\r", low, at)) + 1
        if start:
            return start
        return 0 if self._base == 0 and at <= reach else None

    def _line_end(self, at: int, reach: int) -> int:
        end = min(at + reach, self._end)
        for line_break in (b"\n", b"\r"):
            found = self._buffer.find(line_break, at, end)
            end = end if found < 0 else found
        return end

    def _search_errors(self, rules: CompiledRules, start: int, stop: int) -> None:
        hit = self._first_regex(rules, start, stop) if rules.regexes else None
        for probe in rules.probes:
            hit = self._first_literal(rules, probe, start, hit.at if hit else stop) or hit
        if hit:
            number = self._line_number(start, hit.at)
            self._finding = LogFinding(self._label, number, hit.pattern.text, _quote(hit))

    def _first_literal(self, rules: CompiledRules, probe: Search, start: int, stop: int) -> _Hit | None:
        for at in probe.hits(self._buffer, start, stop, self._end):
            begin = self._line_start(at, self._reach)
            low = max(0, at - self._reach) if begin is None else begin
            line = bytes(self._buffer[low : self._line_end(at, self._reach)])
            pattern = rules.match(line)
            if pattern:
                return _Hit(at, line, pattern)
        return None

    def _first_regex(self, rules: CompiledRules, start: int, stop: int) -> _Hit | None:
        """The first line, or piece of an overlong line, that an own expression matches."""
        reach = min(REGEX_REACH, self._reach)
        at = max(start, self._next_line - self._base)
        while at < stop:
            end = self._line_end(at, reach)
            line = bytes(self._buffer[at:end])
            pattern = rules.match_regex(line)
            if pattern:
                return _Hit(at, line, pattern)
            at = end + 1 if end < at + reach else end - min(_REGEX_OVERLAP, reach // 2)
        self._next_line = self._base + at
        return None

    def _search_metric(self, key: OneText, kind: _Stated, start: int, stop: int) -> None:
        last = -1
        for at in key.hits(self._buffer, start, stop, self._end):
            stated = self._stated(key, at)
            if stated is None or stated.hugging_face is not (kind is self._trainer):
                continue
            if isinstance(stated, MetricLine):
                kind.add(stated)
                last = at
            else:
                self._reject(stated, start, at)
        if last >= 0:
            kind.line = self._line_number(start, last)

    def _stated(self, key: OneText, at: int) -> MetricLine | Rejected | None:
        """What the line of the key at ``at`` states; only the first key of a line speaks."""
        after = at + len(key.text)
        if key is _COLOURED_KEY and self._buffer[after : after + 1] not in b":\x1b":
            return None
        begin = self._line_start(at, min(_BEFORE_METRIC, self._reach))
        if begin is None or self._buffer.find(key.text.rstrip(b":"), begin, at) >= 0:
            return None
        return parse_metric_line(bytes(self._buffer[begin : self._line_end(at, self._reach)]))

    def _reject(self, rejected: Rejected, start: int, at: int) -> None:
        self._rejections.count += 1
        if self._rejections.is_early(self._base + at):
            text = f"{self._label}:{self._line_number(start, at)}: {rejected.text} - {rejected.reason}"
            self._rejections.keep(self._base + at, text)


def _quote(hit: _Hit) -> str:
    """The line as a finding shows it: printable, and shortened around the pattern when it is long."""
    at = max(0, hit.line.find(hit.pattern.literal))
    low = max(0, at - _TEXT_LIMIT // 3) if len(hit.line) > _TEXT_LIMIT else 0
    text = hit.line[low : low + _TEXT_LIMIT].decode("utf-8", "replace")
    return "".join(char if char.isprintable() else " " for char in strip_ansi(text)).strip()
