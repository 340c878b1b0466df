"""Counts primes with a sieve and says how many numbers a second it sieved."""

import argparse
import time


def count_primes(limit: int) -> int:
    """Primes below ``limit``, by the sieve of Eratosthenes on a bytearray."""
    candidates = bytearray([1]) * limit
    candidates[:2] = bytes(2)
    for number in range(2, int(limit**0.5) + 1):
        if candidates[number]:
            multiples = range(number * number, limit, number)
            candidates[number * number :: number] = bytes(len(multiples))
    return sum(candidates)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=150)
    options = parser.parse_args()
    start = time.perf_counter()
    for number in range(options.rounds):
        primes = count_primes(options.limit)
        if number % 50 == 0:
            print(f"round {number + 1} of {options.rounds}: {primes} primes below {options.limit}", flush=True)
    elapsed = time.perf_counter() - start
    print(f"performance: {options.limit * options.rounds / elapsed / 1e6:.3f} million_numbers_per_second")


main()
