"""Numbers of several nodes."""

from __future__ import annotations

import pytest

from madengine.reporting.aggregate import MetricKind, aggregate, kind_of
from madengine.verdict.evidence import Measurement


@pytest.mark.parametrize(
    ("metric", "kind"),
    [
        ("samples_per_second", MetricKind.SUM),
        ("train_samples_per_second", MetricKind.SUM),
        ("tok/s (isl=1024 osl=1024 con=8)", MetricKind.SUM),
        ("tok/sec", MetricKind.SUM),
        ("tokens per second", MetricKind.SUM),
        ("tokens/s", MetricKind.SUM),
        ("images/sec", MetricKind.SUM),
        ("requests/s", MetricKind.SUM),
        ("requests per minute", MetricKind.SUM),
        ("it/s", MetricKind.SUM),
        ("iterations_per_second", MetricKind.SUM),
        ("QPS", MetricKind.SUM),
        ("throughput_tot", MetricKind.SUM),
        ("GB/s RDMA (bf16)", MetricKind.SUM),
        ("GB/s (backend=x size=4KB)", MetricKind.SUM),
        ("memory bandwidth", MetricKind.SUM),
        ("busbw", MetricKind.SUM),
        ("TFLOPS", MetricKind.SUM),
        ("TFLOP/s", MetricKind.SUM),
        ("Gbps", MetricKind.SUM),
        ("fps", MetricKind.SUM),
        ("tok/s/gpu", MetricKind.MEAN),
        ("tokens_per_second_per_gpu", MetricKind.MEAN),
        ("TFLOP/s/GPU", MetricKind.MEAN),
        ("throughput per GCD", MetricKind.MEAN),
        ("ms TTFT p50 (isl=1024)", MetricKind.MEAN),
        ("median_ttft", MetricKind.MEAN),
        ("median_tpot", MetricKind.MEAN),
        ("median_itl", MetricKind.MEAN),
        ("median_e2el", MetricKind.MEAN),
        ("latency (ms)", MetricKind.MEAN),
        ("time_per_output_token_ms", MetricKind.MEAN),
        ("ms/step", MetricKind.MEAN),
        ("s/it", MetricKind.MEAN),
        ("seconds_per_iteration", MetricKind.MEAN),
        ("seconds", MetricKind.MEAN),
        ("step time", MetricKind.MEAN),
        ("train_loss", MetricKind.MEAN),
        ("perplexity", MetricKind.MEAN),
        ("accuracy", MetricKind.MEAN),
        ("exact match %", MetricKind.MEAN),
        ("MFU", MetricKind.MEAN),
        ("cache hit rate", MetricKind.MEAN),
        ("peak_memory", MetricKind.MAX),
        ("max_mem_gb", MetricKind.MAX),
        ("GiB", MetricKind.MAX),
        ("vram (GB)", MetricKind.MAX),
        ("retrieval/10 (niah words=N seeds=n)", MetricKind.UNKNOWN),
        ("samples", MetricKind.UNKNOWN),
        ("stages", MetricKind.UNKNOWN),
        ("", MetricKind.UNKNOWN),
        ("(tokens/s)", MetricKind.UNKNOWN),
    ],
)
def test_a_metrics_name_says_how_nodes_add_up(metric: str, kind: MetricKind) -> None:
    assert kind_of(metric) is kind


def node(rank: int, value: float, metric: str = "tok/s", name: str = "m") -> Measurement:
    return Measurement(value, metric, name=name, source=f"x.csv:{rank}", text=str(value), rank=rank)


@pytest.mark.parametrize(
    ("metric", "values", "value", "how"),
    [
        ("tok/s", (1.5, 2.5, 3.0), 7.0, "summed over ranks 0, 1, 2"),
        ("latency", (1.0, 2.0, 6.0), 3.0, "averaged over ranks 0, 1, 2"),
        ("peak_memory", (1.0, 9.0, 6.0), 9.0, "maximum over ranks 0, 1, 2"),
        ("things", (1.0, 2.0), 3.0, "unknown, summed over ranks 0, 1"),
    ],
)
def test_ranks_are_combined_by_kind(metric: str, values: tuple[float, ...], value: float, how: str) -> None:
    result = aggregate([node(rank, number, metric) for rank, number in enumerate(values)])
    assert result.measurements == (Measurement(value, metric, name="m", source=how, text=repr(value), rank=0),)


def test_an_unknown_name_is_summed_with_one_warning() -> None:
    rows = [node(rank, 1.0, "things", name) for name in ("a", "b") for rank in (0, 1)]
    assert aggregate(rows).warnings == (
        "the metric 'things' is of an unknown kind: the numbers of several nodes were summed",
    )


def test_what_one_rank_alone_measured_stays_as_it_is() -> None:
    rows = [node(3, 5.0, "things"), node(3, 6.0, "tok/s")]
    assert aggregate(rows).measurements == tuple(rows)
    assert aggregate(rows).warnings == ()
    assert aggregate([]).measurements == ()


def test_rows_of_one_name_belong_together_in_their_order() -> None:
    rows = [node(0, 1), node(0, 2), node(1, 10), node(1, 20), node(1, 30)]
    assert [item.value for item in aggregate(rows).measurements] == [11.0, 22.0, 30]


def test_names_and_metrics_are_kept_apart() -> None:
    rows = [node(0, 1, name="a"), node(1, 2, name="b"), node(0, 3, "ms"), node(1, 4, "GB")]
    assert aggregate(rows).measurements == tuple(rows)


def test_numbers_that_overflow_together_are_no_finite_number() -> None:
    assert aggregate([node(0, 1.7e308), node(1, 1.7e308)]).measurements[0].value == float("inf")
