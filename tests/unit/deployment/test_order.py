"""What the nodes of a run are told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from madengine.core.errors import ConfigurationError, ValidationError
from madengine.deployment.order import FILE_NAME, JobOrder, read_order, write_order

ORDER = JobOrder(
    "r-1", "key é", "m", "slurm", "1.0", "/package with a space", command=("madengine", "run"), timeout=7.5
)


def test_an_order_is_read_as_it_was_written(tmp_path: Path) -> None:
    write_order(tmp_path, ORDER)
    assert read_order(tmp_path) == ORDER


def test_an_order_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=FILE_NAME):
        read_order(tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "x"}, "no job order"),
        (
            {"version": 99},
            r"written by madengine 1\.0 \(job orders of version 99\), and this is madengine .* version 1",
        ),
        ({"nnodes": "2"}, "/nnodes"),
        ({"nnodes": True}, "/nnodes"),
        ({"options": []}, "/options"),
        ({"package": 7}, "/package"),
    ],
)
def test_what_is_no_order_is_refused_with_its_place(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    path = write_order(tmp_path, ORDER)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ValidationError, match=said):
        read_order(tmp_path)


def test_an_order_without_a_needed_field_is_refused(tmp_path: Path) -> None:
    path = write_order(tmp_path, ORDER)
    document = json.loads(path.read_text())
    del document["package"]
    path.write_text(json.dumps(document))
    with pytest.raises(ValidationError, match="lacks 'package'"):
        read_order(tmp_path)
