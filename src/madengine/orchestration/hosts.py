"""The names of the machines that a run was on, as one short text."""

from __future__ import annotations

import re
from collections.abc import Sequence

MANY = 5  # machines from which on their names are shortened
_NUMBERED = re.compile(r"([^.]*?)([0-9]{1,18})([^.0-9]*(?:\..*)?)")


def shown_hosts(hosts: Sequence[str]) -> str:
    """The names of machines in one cell: joined by commas, and numbered ones in brackets when they are many.

    ``node01,node02``; from five on as Slurm writes its lists of hosts, ``node[01-16],gpu3``.
    """
    if len(hosts) < MANY:
        return ",".join(hosts)
    parts = [_split(host) for host in dict.fromkeys(hosts)]
    padded = {len(digits) for _, digits, _ in parts if digits.startswith("0")}
    groups: dict[tuple[str, str, int], list[int]] = {}
    for stem, digits, rest in parts:
        width = len(digits) if len(digits) in padded else min(1, len(digits))
        groups.setdefault((stem, rest, width), []).append(int(digits or 0))
    return ",".join(_bracketed(*key, numbers) for key, numbers in groups.items())


def _split(host: str) -> tuple[str, str, str]:
    """A name around its last number: ``gpu7-ib0.site`` is ``gpu7-ib``, ``0`` and ``.site``."""
    found = _NUMBERED.fullmatch(host)
    return (found[1], found[2], found[3]) if found else (host, "", "")


def _bracketed(stem: str, rest: str, width: int, numbers: Sequence[int]) -> str:
    """Names that differ in a number of at least ``width`` digits; a width of 0 is a name without one."""
    if not width:
        return stem
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    texts = [f"{a:0{width}}" if a == b else f"{a:0{width}}-{b:0{width}}" for a, b in spans]
    return f"{stem}[{','.join(texts)}]{rest}" if len(numbers) > 1 else f"{stem}{texts[0]}{rest}"
