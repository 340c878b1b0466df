"""The header line of perf.csv, for programs that import it from here."""

from __future__ import annotations

from madengine.schemas import perf_csv_header

PERF_CSV_HEADER: str = perf_csv_header()
"""The columns of perf.csv, comma-separated, in the order of ``perf_csv.schema.json``."""
