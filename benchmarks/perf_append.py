"""Adding one row to a perf.csv that has grown for years."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.measure import Result, interleaved, require
from madengine.reporting.perf_csv import append_rows

SMALL, LARGE = 10_000, 1_000_000
BLOCK = 1_000  # rows that are made once and repeated
ROW = {
    "model": "pyt_vllm_deepseek-r1_fp4",
    "n_gpus": "8",
    "nnodes": "1",
    "gpus_per_node": "8",
    "args": "--model_repo example/DeepSeek-R1-0528-MXFP4 --config configs/default.yaml",
    "tags": "pyt,vllm,vllm_default,inference",
    "docker_file": "docker/pyt_vllm.ubuntu.amd.Dockerfile",
    "base_docker": "rocm/vllm-dev:nightly",
    "docker_image": "ci-pyt_vllm_deepseek-r1_fp4_pyt_vllm.ubuntu.amd",
    "machine_name": "node-17",
    "deployment_type": "local",
    "launcher": "none",
    "gpu_architecture": "gfx950",
    "performance": "1234.5678",
    "metric": "tokens/s",
    "status": "SUCCESS",
    "test_duration": "1803.4",
    "dataname": "huggingface",
}


def measure(folder: Path) -> Iterator[Result]:
    """One row with fsync, into a large and a small file, against each other and against a bare write and fsync."""
    small, large, bare = (folder / name for name in ("small.csv", "large.csv", "bare.csv"))
    _fill(small, SMALL)
    _fill(large, LARGE)
    _fill(bare, SMALL)
    line = bare.read_bytes().splitlines(keepends=True)[-1]
    size = large.stat().st_size
    plain, in_small, in_large = interleaved(
        lambda: _bare_append(bare, line), _appending(small), _appending(large), repetitions=51
    )
    require(large.stat().st_size == size + 52 * len(line), "whole rows at the end")
    name = f"append a row to a perf.csv of {LARGE:,} rows"
    yield Result(name, f"the same to {SMALL:,} rows", in_large, in_small, "s", 1.5 * in_small, "<= 1.5x")
    yield Result(f"{name}, fsync included", "a bare write and fsync of it", in_large, plain, "s", 0.005, "<= 5 ms")


def _appending(path: Path) -> Callable[[], None]:
    return lambda: append_rows(path, [ROW])


def _bare_append(path: Path, line: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(fd, line)
        os.fsync(fd)
    finally:
        os.close(fd)


def _fill(path: Path, rows: int) -> None:
    """A perf.csv of so many rows, on disk before anything is measured."""
    append_rows(path, [ROW] * BLOCK)
    header, body = path.read_bytes().split(b"\n", 1)
    with path.open("wb") as file:
        file.write(header + b"\n")
        for _ in range(rows // BLOCK):
            file.write(body)
        file.flush()
        os.fsync(file.fileno())
