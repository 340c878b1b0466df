"""``python -m benchmarks [NAME...]``: run all benchmarks, or those whose module names are given."""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from datetime import datetime, timezone
from importlib import import_module
from pathlib import Path

from benchmarks.measure import Outcome, Skipped

MODULES = (
    "startup",
    "discover",
    "validate",
    "perf_append",
    "log_scan",
    "host_run",
    "container_run",
    "slurm_render",
    "slurm_collect",
    "slurm_cluster",
)
RESULTS = Path(__file__).parent / "results"


def main(names: Sequence[str]) -> int:
    """Measure and print each result as it comes; 1 when a target was missed. A run of all is stored as JSON."""
    unknown = [name for name in names if name not in MODULES]
    if unknown:
        print(f"no benchmark named {unknown[0]}; there are: {', '.join(MODULES)}", file=sys.stderr)
        return 4
    results: list[Outcome] = []
    for name in names or MODULES:
        with tempfile.TemporaryDirectory(prefix="madengine-bench-") as folder:
            for result in import_module(f"benchmarks.{name}").measure(Path(folder)):
                print(result.line(), flush=True)
                results.append(result)
    if not names:
        _store(results)
    return 0 if all(isinstance(result, Skipped) or result.met for result in results) else 1


def _store(results: Sequence[Outcome]) -> None:
    now = datetime.now(timezone.utc)
    RESULTS.mkdir(exist_ok=True)
    document = {
        "time": now.isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "cpus": os.cpu_count(),
        "results": [result.to_json() for result in results],
    }
    path = RESULTS / f"{now:%Y%m%dT%H%M%SZ}.json"
    path.write_text(json.dumps(document, indent=2) + "\n")
    print(f"stored as {path.relative_to(Path(__file__).parent.parent)}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
