"""The package's names are there, and loaded only on use."""

from __future__ import annotations

import subprocess
import sys

import pytest

from madengine import schemas


@pytest.mark.parametrize("name", schemas.__all__)
def test_every_public_name_can_be_imported(name: str) -> None:
    assert getattr(schemas, name) is not None


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'validate_everything'"):
        schemas.validate_everything  # type: ignore[attr-defined]  # noqa: B018


def test_the_columns_of_perf_csv_load_nothing_that_checks_documents() -> None:
    code = (
        "import sys; from madengine.schemas import perf_csv_columns; perf_csv_columns(); "
        "print([name for name in sys.modules if name.startswith('madengine.schemas.')])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "['madengine.schemas.loader']"
