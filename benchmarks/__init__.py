"""Benchmarks: ratios against a baseline of the same run, so that they mean the same on every machine."""
