"""Multiplies square matrices in plain Python and says how many floating-point operations a second that made."""

import argparse
import random
import time


def multiply(a: list[list[float]], b: list[list[float]]) -> list[list[float]]:
    columns = list(zip(*b))  # noqa: B905 - scripts run on whatever Python 3 an image has
    return [[sum(x * y for x, y in zip(row, column)) for column in columns] for row in a]  # noqa: B905


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=1.5)
    options = parser.parse_args()
    size = options.size
    source = random.Random(7)
    a = [[source.random() for _ in range(size)] for _ in range(size)]
    b = [[source.random() for _ in range(size)] for _ in range(size)]
    rounds, start = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - start) < options.seconds:
        product = multiply(a, b)
        rounds += 1
    print(f"{rounds} products, corner {product[0][0]:.6f}")
    print(f"performance: {2 * size**3 * rounds / elapsed / 1e6:.3f} MFLOP/s")


main()
