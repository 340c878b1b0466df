"""Many processes, readers, full disks and killed writers: the file stays whole."""

from __future__ import annotations

import csv
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from madengine.core.errors import ExecutionError
from madengine.reporting import appending
from madengine.reporting.perf_csv import append_rows

FORK = multiprocessing.get_context("fork")
COLUMNS = ("model", "performance", "metric", "status")


def read(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def row(model: str, **values: object) -> dict[str, object]:
    return {"model": model, "performance": "1.5", "metric": "tok/s", "status": "SUCCESS", **values}


def small(path: Path, *models: str) -> None:
    """A file of four columns."""
    append_rows(path, [row(model) for model in models], columns=COLUMNS)


def test_on_a_full_disk_the_file_is_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "perf.csv"
    small(path, "a")
    before = path.read_bytes()

    def write_beyond_the_limit(connection: object) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 20, resource.RLIM_INFINITY))
        try:
            append_rows(path, [row("b" * 200)])
        except ExecutionError as error:
            connection.send(str(error))  # type: ignore[attr-defined]

    ours, theirs = FORK.Pipe()
    process = FORK.Process(target=write_beyond_the_limit, args=(theirs,))
    process.start()
    message = ours.recv() if ours.poll(20) else ""
    process.join()
    assert "nothing was written" in message
    assert "b" * 200 in message
    assert path.read_bytes() == before


@pytest.mark.parametrize("call", ["fsync", "pwritev"])
def test_an_error_of_the_disk_is_an_execution_error_and_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    path = tmp_path / "perf.csv"
    small(path, "a")
    before = path.read_bytes()

    def failing(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(appending.os, call, failing)
    with pytest.raises(ExecutionError, match="no space left on device"):
        append_rows(path, [row("b")])
    monkeypatch.undo()
    assert path.read_bytes() == before


def test_a_failed_widening_leaves_the_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "perf.csv"
    small(path, "a")
    before = path.read_bytes()

    def failing(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(appending.os, "fsync", failing)
    with pytest.raises(ExecutionError):
        append_rows(path, [row("b", tp="8")])
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert names(tmp_path) == ["perf.csv"]


def test_a_lock_that_is_held_for_too_long_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "perf.csv"
    small(path, "a")
    monkeypatch.setattr(appending, "LOCK_PATIENCE", 0.01)
    with (
        appending.sole_writer(path, what="perf.csv"),
        pytest.raises(ExecutionError, match="locked by another process"),
    ):
        append_rows(path, [row("b")])


# Many at once


def _appending(path: Path, worker: int, count: int, width: int) -> None:
    for index in range(count):
        append_rows(path, [row(f"m{worker}-{index}", args='a "quoted"\ntext ' + "x" * width)])


def _reading(path: Path, stop: object, findings: object) -> None:
    """Read without any lock, all the time, and count what is torn."""
    reads = torn = 0
    while not stop.is_set():  # type: ignore[attr-defined]
        text = path.read_bytes() if path.exists() else b""
        reads += 1
        time.sleep(0.0003)
        torn += bool(text) and (not text.endswith(b"\n") or text.count(b'"') % 6 != 0)
    findings.put((reads, torn))  # type: ignore[attr-defined]


def _hammer(path: Path, workers: int, count: int, width: int) -> tuple[int, int]:
    stop, findings = FORK.Event(), FORK.Queue()
    reader = FORK.Process(target=_reading, args=(path, stop, findings))
    writers = [FORK.Process(target=_appending, args=(path, n, count, width)) for n in range(workers)]
    for process in [reader, *writers]:
        process.start()
    for process in writers:
        process.join()
    stop.set()
    result: tuple[int, int] = findings.get(timeout=20)
    reader.join()
    assert [process.exitcode for process in writers] == [0] * workers
    return result


def test_32_processes_append_200_rows_each_and_a_reader_never_sees_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "perf.csv"
    reads, torn = _hammer(path, workers=32, count=200, width=60)
    rows = read(path)
    assert len(rows) == 6401
    assert {len(cells) for cells in rows} == {29}
    assert {cells[0] for cells in rows[1:]} == {f"m{w}-{n}" for w in range(32) for n in range(200)}
    assert reads > 20
    assert torn == 0


def test_rows_longer_than_a_page_are_never_seen_torn(tmp_path: Path) -> None:
    path = tmp_path / "perf.csv"
    reads, torn = _hammer(path, workers=4, count=25, width=9000)
    assert len(read(path)) == 101
    assert reads > 20
    assert torn == 0


def test_a_row_of_several_pages_appears_whole_although_a_reader_keeps_the_file_open(tmp_path: Path) -> None:
    path = tmp_path / "perf.csv"
    small(path, "a")
    with path.open("rb") as reader:
        append_rows(path, [row("b" * 10000)])
        assert reader.read().count(b"\n") == 2  # the old file, whole
    assert len(read(path)) == 3


@pytest.mark.parametrize("reason", ["a second name", "a folder that is not ours"])
def test_a_file_that_a_copy_would_take_from_somebody_stays_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    path = tmp_path / "perf.csv"
    small(path, "a")
    if reason == "a second name":
        path.with_name("second.csv").hardlink_to(path)
    else:
        (tmp_path / ".perf.csv.new").mkdir()  # as if the name could not be made
    inode = path.stat().st_ino
    with path.open("rb"):
        append_rows(path, [row("b" * 10000)])
    assert path.stat().st_ino == inode
    assert len(read(path)) == 3


def test_a_large_file_that_a_reader_keeps_open_is_appended_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "perf.csv"
    small(path, "a")
    monkeypatch.setattr(appending, "COPY_LIMIT", 10)
    monkeypatch.setattr(appending, "LEASE_PATIENCE_LARGE", 0.01)
    inode = path.stat().st_ino
    with path.open("rb"):
        append_rows(path, [row("b" * 10000)])
    assert path.stat().st_ino == inode
    assert len(read(path)) == 3


def test_processes_that_add_columns_at_once_lose_no_row(tmp_path: Path) -> None:
    path = tmp_path / "perf.csv"
    path.write_text("model\n")

    def work(worker: int) -> None:
        for index in range(10):
            append_rows(path, [{"model": f"{worker}-{index}", f"column {worker} {index % 3}": "x"}])

    processes = [FORK.Process(target=work, args=(n,)) for n in range(8)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    rows = read(path)
    assert len(rows) == 81
    assert len(set(rows[0])) == len(rows[0]) == 25
    assert {len(cells) for cells in rows} == {25}
    assert names(tmp_path) == ["perf.csv"]


def test_a_writer_whose_file_was_replaced_while_it_waited_writes_into_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "perf.csv"
    small(path, "a")
    go = FORK.Event()

    def wait_and_append() -> None:
        go.wait(20)
        append_rows(path, [row("b")])

    process = FORK.Process(target=wait_and_append)
    process.start()  # before the lock is taken, which a forked process would share
    with path.open("rb+") as held:
        appending.fcntl.flock(held, appending.fcntl.LOCK_EX)  # as a writer on another machine holds it
        go.set()
        time.sleep(0.05)
        (tmp_path / "other").write_text("model,performance,metric,status\nreplaced,,,\n")
        (tmp_path / "other").replace(path)
    process.join()
    assert [cells[0] for cells in read(path)] == ["model", "replaced", "b"]


def test_killed_writers_leave_no_row_that_merges_with_another(tmp_path: Path) -> None:
    path = tmp_path / "perf.csv"
    for attempt in range(12):
        process = FORK.Process(target=_appending, args=(path, attempt, 10_000, 5000))
        process.start()
        time.sleep(0.02 + attempt * 0.002)
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
    append_rows(path, [row("last")])
    rows = read(path)
    assert rows[-1][0] == "last"
    assert all(len(cells) == 29 or not cells[0].startswith("last") for cells in rows)
    assert {cells[0].split("-")[0] for cells in rows[1:-1]} <= {f"m{n}" for n in range(12)}


def test_appending_does_not_read_a_large_file(tmp_path: Path) -> None:
    path = tmp_path / "perf.csv"
    small(path, "a")
    with path.open("ab") as file:
        file.truncate(3 << 30)  # a hole: as good as three gigabytes of rows
        file.write(b"\n")
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (400 << 20, 400 << 20));"
        "from pathlib import Path; from madengine.reporting.perf_csv import append_rows;"
        "append_rows(Path(sys.argv[1]), [{'model': 'b'}])"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, timeout=20)
    with path.open("rb") as file:
        file.seek(-6, os.SEEK_END)
        assert file.read() == b"\nb,,,\n"
