"""What is kept of a workspace before it goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from madengine.core.redact import Redactor
from madengine.execution import artefacts


def test_a_file_that_changed_is_kept_and_one_that_did_not_is_not(tmp_path: Path) -> None:
    folder, destination = tmp_path / "w", tmp_path / "kept"
    folder.mkdir()
    for name in ("changed.csv", "same.csv", "notes.txt"):
        (folder / name).write_text("old")
    before = artefacts.inventory([folder])
    (folder / "changed.csv").write_text("old and new")
    kept, notes = artefacts.collect([folder], before, destination, Redactor(()))
    assert ([path.name for path in kept], notes) == (["changed.csv"], [])


def test_a_file_that_is_too_big_stays_and_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artefacts, "SIZE_LIMIT", 3)
    (tmp_path / "big.csv").write_text("four")
    kept, notes = artefacts.collect([tmp_path], {}, tmp_path / "kept", Redactor(()))
    assert kept == []
    assert "big.csv is too big" in notes[0]


def test_a_file_that_cannot_be_copied_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("x")
    (tmp_path / "kept").write_text("a file where the folder belongs")
    kept, notes = artefacts.collect([tmp_path], {}, tmp_path / "kept", Redactor(()))
    assert kept == []
    assert notes[0].startswith("x.csv could not be kept")


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert artefacts.inventory([tmp_path / "none"]) == {}
    assert artefacts.collect([tmp_path / "none"], {}, tmp_path / "kept", Redactor(())) == ([], [])


def test_what_is_kept_holds_no_secret(tmp_path: Path) -> None:
    (tmp_path / "my_env.csv").write_text("A,hf_secret_value\n" * 3)
    [copy], _ = artefacts.collect([tmp_path], {}, tmp_path / "kept", Redactor(["hf_secret_value"]))
    assert copy.read_text() == "A,***\n" * 3
