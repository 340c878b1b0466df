"""What counts as a node's word, and why other files do not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.unit.deployment.slurm.folders import RUN, marker

from madengine.deployment.slurm.markers import Marker, markers_present, read_marker


def read(run_dir: Path, attempt: int | None = None) -> Marker | str:
    return read_marker(str(run_dir / "node_0"), RUN, attempt)


def test_a_marker_tells_a_host_and_a_code(tmp_path: Path) -> None:
    marker(tmp_path, 0, 137, attempt=2)
    assert read(tmp_path) == Marker("h0", 137, 2)


def test_lines_may_stand_in_any_order_with_any_line_ends_and_others_among_them(tmp_path: Path) -> None:
    path = marker(tmp_path, 0, 3)
    lines = [*path.read_text().splitlines()[::-1], "new=fact", "no fact"]
    path.write_bytes("\r\n".join([*lines, ""]).encode())
    assert read(tmp_path) == Marker("h0", 3, 0)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is empty"),
        (f"run={RUN}\nexit_code=0\ntimes".encode(), "is cut off"),
        (f"run={RUN}\nexit_code=0\ntimestamp=x".encode(), "is cut off"),
        (b"exit_code=0\ntimestamp=x\n", "is cut off"),
        (b"run=other\nexit_code=0\ntimestamp=x\n", "is of another run, other"),
        (f"run={RUN}\nexit_code=zero\ntimestamp=x\n".encode(), "has no exit code: 'zero'"),
        (f"run={RUN}\nexit_code=-1\ntimestamp=x\n".encode(), "has no exit code: '-1'"),
        (f"run={RUN}\nexit_code=256\ntimestamp=x\n".encode(), "has no exit code: '256'"),
        (f"run={RUN}\nexit_code={'9' * 5000}\ntimestamp=x\n".encode(), "is cut off"),
        (f"run={RUN}\nexit_code=\ntimestamp=x\n".encode(), "has no exit code: ''"),
        (f"run={RUN}\nexit_code=0\nattempt=x\ntimestamp=x\n".encode(), "has no attempt: 'x'"),
        (b"\xff\xfe\x00binary\n", "is cut off"),
    ],
)
def test_what_cannot_be_read_as_a_marker_is_none_and_says_why(tmp_path: Path, content: bytes, why: str) -> None:
    marker(tmp_path, 0).write_bytes(content)
    assert read(tmp_path) == f"{tmp_path}/node_0/node.status {why}"


def test_a_marker_of_an_earlier_attempt_does_not_count(tmp_path: Path) -> None:
    marker(tmp_path, 0, 143, attempt=0)
    assert isinstance(read(tmp_path, attempt=0), Marker)
    assert str(read(tmp_path, attempt=1)).endswith("is of attempt 0, and the job's is 1")


def test_no_marker_is_said_to_be_none(tmp_path: Path) -> None:
    assert read(tmp_path) == f"there is no {tmp_path}/node_0/node.status"


@pytest.mark.parametrize("kind", ["directory", "pipe", "link"])
def test_neither_a_pipe_nor_a_link_nor_a_folder_is_a_marker_or_waited_for(tmp_path: Path, kind: str) -> None:
    path = marker(tmp_path, 0)
    other = path.rename(tmp_path / "elsewhere")
    if kind == "directory":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(other)
    assert isinstance(read(tmp_path), str)


def test_the_ranks_that_reported_are_counted(tmp_path: Path) -> None:
    marker(tmp_path, 0)
    marker(tmp_path, 2, run="other")
    marker(tmp_path, 3, 143, attempt=1)
    marker(tmp_path, 9)
    assert markers_present(tmp_path, RUN, 4) == {0, 3}
    assert markers_present(tmp_path, RUN, 4, attempt=0) == {0}
