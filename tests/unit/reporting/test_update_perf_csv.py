"""The header that other programs import."""

from __future__ import annotations

from madengine.reporting.update_perf_csv import PERF_CSV_HEADER
from madengine.schemas import perf_csv_columns


def test_the_header_holds_the_columns_of_the_schema() -> None:
    assert tuple(name.strip() for name in PERF_CSV_HEADER.split(",")) == perf_csv_columns()
    assert PERF_CSV_HEADER.startswith("model,n_gpus,nnodes,")
