"""Searching a gigabyte of log for error patterns and metrics."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measure import Result, command, interleaved, require

SIZE = 1_000_000_000  # bytes
BLOCK = 4 << 20  # bytes of lines that are made once and repeated
LAST = b"[rank0]: torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB.\nperformance: 123.5 tokens/s\n"
PATTERN = "OutOfMemoryError"
MOST_MIB = 64.0
LEAST_MB_S = 250.0

# VmHWM and not ru_maxrss: the latter begins with the size of the process that forked this one.
SCAN = """
import sys
from pathlib import Path
from madengine.execution.spec import LogScanRules
from madengine.reporting.log_scan import scan_log
seen = scan_log(Path(sys.argv[1]), rules=LogScanRules())
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(seen.measurement.value if seen.measurement else "none", len(seen.findings), peak)
"""

LINES = (
    "INFO {t} [metrics.py:417] Avg prompt throughput: {a}.7 tokens/s, Avg generation throughput: {b}.4 tokens/s, "
    "Running: {c} reqs, Swapped: 0 reqs, Pending: 0 reqs, GPU KV cache usage: 41.{c}%, CPU KV cache usage: 0.0%.",
    " iteration {a:8d}/ 500000 | consumed samples: {b:12d} | elapsed time per iteration (ms): {b}.4 | learning rate: "
    "3.000E-0{d} | global batch size: {c:5d} | lm loss: 7.{a}E+00 | loss scale: 1.0 | grad norm: 1.{b} | "
    "number of skipped iterations: 0 | number of nan iterations: 0 |",
    "node-{d}:{a}:{b} [{d}] NCCL INFO Channel {c:02d}/0 : {d}[{d}] -> 5[5] via P2P/IPC/read",
    "Collecting torch=={d}.7.{c}+rocm6.3 (from -r requirements.txt (line {c}))",
    "  Downloading https://example.com/whl/torch-{d}.7.{c}-cp310-manylinux_2_28_x86_64.whl ({a}.5 MB)",
    "{t} - W&B online. Running your script from this directory; Xformers={d}, JIT kernels={c}, QKV fused=True",
    "WARNING {t} [config.py:{c}] Possibly too large swap space. {d}.00 GiB out of the {b}.93 GiB total CPU memory.",
    "\rEvaluating:  {c}%|####      | {a}/{b} [00:1{d}<00:0{d}, {c}.15it/s]",
    "",
)


def measure(folder: Path) -> Iterator[Result]:
    """Whole processes that read the whole log, with line breaks and without a single one; ``grep`` in the C locale."""
    yield from _measured(folder / "run.log", lines=True)
    yield from _measured(folder / "run.log", lines=False)


def _measured(path: Path, *, lines: bool) -> Iterator[Result]:
    _write_log(path, lines=lines)
    grep = command(["grep", "-c", "-F", PATTERN, path], env={"LC_ALL": "C"})
    scan = command([sys.executable, "-c", SCAN, path])
    peaks = []

    def scanned() -> None:
        value, findings, peak = scan().split()
        # Without line breaks the metric is not at the beginning of a line, so it is none.
        require((value, findings) == (b"123.5" if lines else b"none", b"1"), f"{value!r}, {findings!r} findings")
        peaks.append(int(peak) / 1024)

    bare, scanning = interleaved(grep, scanned, repetitions=7)
    name = "log scan of 1 GB" + ("" if lines else " without a line break")
    mb = path.stat().st_size / 1e6
    yield Result(
        name, "grep -F of one pattern", mb / scanning, mb / bare, "MB/s", LEAST_MB_S, ">= 250 MB/s", at_least=True
    )
    yield Result(f"{name}, peak memory", "the target", max(peaks), MOST_MIB, "MiB", MOST_MIB, "<= 64 MiB")


def _write_log(path: Path, *, lines: bool) -> None:
    chance = random.Random(7)
    block = _block(chance)
    end = LAST
    if not lines:
        block, end = (text.replace(b"\n", b" ").replace(b"\r", b" ") for text in (block, end))
    with path.open("wb") as file:
        for _ in range(SIZE // len(block)):
            file.write(block)
        file.write(end)


def _block(chance: random.Random) -> bytes:
    texts: list[str] = []
    size = 0
    while size < BLOCK:
        text = chance.choice(LINES).format(
            t=f"12-01 04:{chance.randrange(60):02d}:{chance.randrange(60):02d}",
            a=chance.randrange(10**5),
            b=chance.randrange(10**4),
            c=chance.randrange(100),
            d=chance.randrange(8),
        )
        texts.append(text)
        size += len(text) + 1
    return ("\n".join(texts) + "\n").encode()
