"""Fixtures that all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture
def real_mad() -> Path:
    """The public MAD package's own cards, manifests and results, where they lie beside the checkout."""
    folder = Path(os.environ.get("MAD_REAL_INPUTS", REPOSITORY.parent / "shared" / "real" / "mad"))
    if not (folder / "models.json").is_file():
        pytest.skip(f"the real MAD inputs are not at {folder}; set MAD_REAL_INPUTS to their folder")
    return folder
