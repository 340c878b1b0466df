"""Runs four small CPU kernels for a while each and writes their throughput to a results CSV."""

import argparse
import csv
import hashlib
import json
import random
import time
import zlib

MEGABYTE = 1 << 20


def hashing(data: bytes) -> float:
    hashlib.sha256(data).digest()
    return len(data) / MEGABYTE


def compression(data: bytes) -> float:
    zlib.compress(data, 6)
    return len(data) / MEGABYTE


def sorting(data: bytes) -> float:
    values = [int.from_bytes(data[index : index + 4], "big") for index in range(0, 200_000, 4)]
    values.sort()
    return len(values) / 1e6


def parsing(data: bytes) -> float:
    document = json.dumps(list(data[:50_000]))
    json.loads(document)
    return len(document) / MEGABYTE


KERNELS = {
    "sha256": (hashing, "MB/s"),
    "zlib": (compression, "MB/s"),
    "sort": (sorting, "million_items_per_second"),
    "json": (parsing, "MB/s"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", required=True)
    parser.add_argument("--seconds", type=float, default=0.5)
    options = parser.parse_args()
    data = random.Random(7).randbytes(4 * MEGABYTE)
    with open(options.output, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["model", "performance", "metric", "rounds"])
        for name, (kernel, unit) in KERNELS.items():
            done, rounds, start = 0.0, 0, time.perf_counter()
            while (elapsed := time.perf_counter() - start) < options.seconds or rounds == 0:
                done += kernel(data)
                rounds += 1
            print(f"{name}: {rounds} rounds", flush=True)
            writer.writerow([name, f"{done / elapsed:.3f}", unit, rounds])


main()
