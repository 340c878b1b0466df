"""usage: sampler.py power|vram|system OUTPUT.csv -- COMMAND...

Runs COMMAND and writes a sample per second beside it: GPU power in watts or used memory in MiB, or the machine's load
and used memory in MiB. It needs nothing but Python 3.8 and the vendor's tool, ends with the command's exit code, and
never fails a run.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

INTERVAL = float(os.environ.get("MAD_SAMPLER_INTERVAL", "1"))  # seconds
KINDS = ("power", "vram", "system")


def ask(*argv: str) -> str:
    """What a program prints, nothing when it fails."""
    try:
        done = subprocess.run(argv, check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace")


def nvidia(kind: str) -> list[tuple[str, str]]:
    """Device and value, as nvidia-smi tells them."""
    field = "power.draw" if kind == "power" else "memory.used"
    lines = ask("nvidia-smi", f"--query-gpu=index,{field}", "--format=csv,noheader,nounits").splitlines()
    return [(index.strip(), value.strip()) for index, comma, value in (line.partition(",") for line in lines) if comma]


def amd(kind: str) -> list[tuple[str, str]]:
    """Device and value of rocm-smi: ``{"card0": {"Average Graphics Package Power (W)": "90.0"}}``."""
    text = ask("rocm-smi", "--showpower" if kind == "power" else "--showmeminfo=vram", "--json")
    try:
        cards = json.loads(text[text.index("{") :])
    except ValueError:
        return []
    facts = [(card, name, str(value)) for card, found in sorted(cards.items()) for name, value in found.items()]
    if kind == "power":
        return [(card[len("card") :], value) for card, name, value in facts if "Power (W)" in name]
    return [(card[len("card") :], str(int(value) >> 20)) for card, name, value in facts if "Total Used" in name]


def system(_: str) -> list[tuple[str, str]]:
    """The machine's load average and used memory."""
    text = Path("/proc/meminfo").read_text()
    memory = {name: int(size) for name, size in re.findall(r"^(\w+):\s+(\d+) kB", text, re.MULTILINE)}
    used = memory["MemTotal"] - memory["MemAvailable"]
    return [("load", f"{os.getloadavg()[0]:.2f}"), ("memory", str(used >> 10))]


def source(kind: str) -> Callable[[str], list[tuple[str, str]]] | None:
    """The function that samples, None when there is nothing to ask."""
    if kind == "system":
        return system
    if shutil.which("rocm-smi"):
        return amd
    return nvidia if shutil.which("nvidia-smi") else None


def record(sample: Callable[[str], list[tuple[str, str]]], kind: str, path: str, over: threading.Event) -> None:
    """Sample until ``over`` is set. Columns: seconds since the epoch, device or quantity, value."""
    with Path(path).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("time", "device", kind))
        while True:
            writer.writerows((f"{time.time():.3f}", device, value) for device, value in sample(kind))
            file.flush()
            if over.wait(INTERVAL):
                return


def run(command: list[str]) -> int:
    """The command's exit code; a TERM that ends this process ends the command."""
    try:
        process = subprocess.Popen(command)
    except OSError as error:
        sys.stderr.write(f"sampler: cannot start {command[0]}: {error.strerror}\n")
        return 127
    signal.signal(signal.SIGTERM, lambda *_: process.terminate())
    code = process.wait()
    return 128 - code if code < 0 else code


def main(argv: list[str]) -> int:
    """Run the command, with samples beside it where there is something to ask."""
    if len(argv) < 4 or argv[2] != "--" or argv[0] not in KINDS:
        sys.stderr.write(__doc__ or "")
        return 4
    kind, path, command = argv[0], argv[1], argv[3:]
    sample = source(kind)
    if sample is None:
        sys.stderr.write("sampler: neither rocm-smi nor nvidia-smi is here: running without samples\n")
        return run(command)
    over = threading.Event()
    recorder = threading.Thread(target=record, args=(sample, kind, path, over), daemon=True)
    recorder.start()
    try:
        return run(command)
    finally:
        over.set()
        recorder.join(30)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
