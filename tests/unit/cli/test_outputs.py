"""Files that a command is asked to write: refused beforehand, written whole."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from madengine.cli.outputs import MANIFEST_MARKS, SUMMARY_MARKS, refuse_unwritable, write_document
from madengine.core.errors import ConfigurationError, MADEngineError


@pytest.mark.parametrize("text", ["", "\n", '{"built_images": {}}', '{\n "context": {},\n "built_images": {}}'])
def test_an_earlier_manifest_may_be_replaced(tmp_path: Path, text: str) -> None:
    path = tmp_path / "m.json"
    path.write_text(text)
    refuse_unwritable(path, MANIFEST_MARKS)


@pytest.mark.parametrize("marks", [MANIFEST_MARKS, SUMMARY_MARKS])
def test_somebody_elses_file_is_not_replaced(tmp_path: Path, marks: tuple[str, ...]) -> None:
    path = tmp_path / "models.json"
    path.write_text('[{"name": "m"}]')
    with pytest.raises(ConfigurationError, match="would be overwritten"):
        refuse_unwritable(path, marks)


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    pipe, loop = tmp_path / "pipe", tmp_path / "loop"
    os.mkfifo(pipe)
    loop.symlink_to("loop")
    for path in (pipe, loop, Path("/dev/null")):
        with pytest.raises(ConfigurationError, match="no regular file"):
            refuse_unwritable(path, SUMMARY_MARKS)


def test_a_link_to_a_file_that_will_be_is_fine(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("later.json")
    refuse_unwritable(link, SUMMARY_MARKS)
    write_document(link, {"a": 1})
    assert json.loads((tmp_path / "later.json").read_text()) == {"a": 1}


def test_a_folder_that_cannot_be_made_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MADEngineError, match="folder"):
        write_document(tmp_path / "file" / "below" / "x.json", {})
