"""One number out of those of several nodes.

Throughput adds up over nodes; latency, time, loss and accuracy are averaged; of memory the largest use counts. A metric
that says "per GPU" is an average already, so it is averaged too. An unknown name is summed, with a warning. Only ranks
that measured count.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from madengine.verdict.evidence import Measurement


class MetricKind(str, Enum):
    """How the numbers of several nodes become one."""

    SUM = "summed"
    MEAN = "averaged"
    MAX = "maximum"
    UNKNOWN = "unknown, summed"


@dataclass(frozen=True)
class Aggregated:
    """The numbers of the whole run, in the order of the first rank, and warnings about unknown names."""

    measurements: tuple[Measurement, ...]
    warnings: tuple[str, ...] = ()


_CONDITIONS = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|\{[^{}]*\}")
_SEPARATORS = re.compile(r"[_\-\s:=,;]+")
_TIME_UNIT = (
    r"(?:s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?|days?|ms|us|ns|msecs?|usecs?|milliseconds?|microseconds?)"
)

_PER_DEVICE = re.compile(r"(?:\bper |/ ?)(?:gpu|device|gcd|rank|node|chip|card|accelerator|worker)s?\b")
_RATE = re.compile(
    rf"(?:\bper |/ ?){_TIME_UNIT}\b"
    r"|\b(?:throughput|bandwidth|busbw|algbw|goodput|speed|[qrt]ps|fps|ips|[kmgtp]?i?bps|[kmgtp]?flops?)\b"
)
_AVERAGED = re.compile(
    rf"\b(?:latency|latencies|time|duration|elapsed|delay|runtime|ttft|tpot|itl|e2el?|ttfs|{_TIME_UNIT}"
    r"|loss|perplexity|ppl|accuracy|acc|precision|recall|f1|bleu|rouge|auc|map|score|error|wer|mfu|hfu"
    r"|utili[sz]ation|efficiency|percent|percentage|ratio|rate)\b|%"
)
_MEMORY = re.compile(r"\b(?:memory|mem|vram|hbm|rss|bytes|[kmgt]i?b)\b")


def kind_of(metric: str) -> MetricKind:
    """What a metric's name says; conditions in brackets (``isl=1024``) say nothing."""
    name = _SEPARATORS.sub(" ", _CONDITIONS.sub(" ", metric).lower()).strip()
    if _PER_DEVICE.search(name):
        return MetricKind.MEAN
    if _RATE.search(name):
        return MetricKind.SUM
    if _AVERAGED.search(name):
        return MetricKind.MEAN
    return MetricKind.MAX if _MEMORY.search(name) else MetricKind.UNKNOWN


def aggregate(measurements: Sequence[Measurement]) -> Aggregated:
    """One measurement for what several ranks measured.

    Rows belong together by name and metric; when a rank has several rows of one name and metric, the first of each
    rank belong together, then the second, and so on. What one rank alone measured stays as it is.
    """
    groups: dict[tuple[str, str, int], list[Measurement]] = {}
    seen: dict[tuple[str, str, int], int] = {}
    for item in measurements:
        counter = (item.name, item.metric, item.rank)
        occurrence = seen[counter] = seen.get(counter, 0) + 1
        groups.setdefault((item.name, item.metric, occurrence), []).append(item)
    unknown = {item.metric for group in groups.values() if len(group) > 1 for item in group[:1]}
    return Aggregated(
        measurements=tuple(_combined(group) for group in groups.values()),
        warnings=tuple(
            f"the metric {metric!r} is of an unknown kind: the numbers of several nodes were summed"
            for metric in sorted(unknown)
            if kind_of(metric) is MetricKind.UNKNOWN
        ),
    )


def _combined(group: Sequence[Measurement]) -> Measurement:
    if len(group) == 1:
        return group[0]
    kind = kind_of(group[0].metric)
    value = _value(kind, [item.value for item in group])
    ranks = ", ".join(str(item.rank) for item in group)
    text = repr(value)
    return replace(group[0], value=value, text=text, source=f"{kind.value} over ranks {ranks}")


def _value(kind: MetricKind, values: Sequence[float]) -> float:
    if kind is MetricKind.MAX:
        return max(values)
    total = sum(values)
    return total / len(values) if kind is MetricKind.MEAN else total
