"""Two commands at once, processes that are killed, disks that are full, folders that go away."""

from __future__ import annotations

import csv
import errno
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.integration.packages import MADENGINE, card, make_package, manifest, read_csv, write_json

HOST = ("run", "--engine", "host")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    make_package(tmp_path / "package")
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def environment(work: Path) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("MAD_", "MODEL_DIR"))}
    return {**inherited, "MODEL_DIR": str(work.parent / "package"), "HERE": str(work.parent)}


def started(work: Path, *words: str, where: Path | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*MADENGINE, *words],
        cwd=where or work,
        env=environment(work),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str], seconds: float = 60) -> tuple[int, str, str]:
    try:
        out, err = process.communicate(timeout=seconds)
    finally:
        process.kill()
    assert "Traceback" not in out + err, err
    assert "defect" not in out + err, err
    return process.returncode, out, err


def ran(work: Path, *words: str, where: Path | None = None) -> tuple[int, str, str]:
    return ended(started(work, *words, where=where))


def script(work: Path, text: str) -> None:
    (work.parent / "package/scripts/m/run.sh").write_text(text)


def appears(path: Path, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.01)


def whole_rows(path: Path) -> list[dict[str, str]]:
    """The rows of perf.csv, each with all of its columns."""
    with path.open(newline="") as file:
        lines = list(csv.reader(file))
    assert {len(line) for line in lines} == {len(lines[0])}
    assert path.read_bytes().endswith(b"\n")
    return read_csv(path)


# --- two at once


def test_commands_at_once_in_one_folder_do_not_meet(work: Path) -> None:
    """Each waits inside its script until all four are there."""
    script(
        work,
        'touch "$HERE/$$.there"\nwhile [ "$(ls "$HERE" | grep -c there)" -lt 4 ]; do sleep 0.02; done\n'
        "printf 'model,performance,metric\\n%s,1,x\\nb,2,y\\n' $$ >../r.csv\n",
    )
    write_json(work / "manifest.json", manifest([card(multiple_results="r.csv")]))
    processes = [started(work, *HOST, "--manifest-file", "manifest.json") for _ in range(4)]
    for process in processes:
        code, _, err = ended(process)
        assert code == 0, err
    rows = whole_rows(work / "perf.csv")
    assert len(rows) == 8
    assert len({row["model"] for row in rows}) == 5
    assert len(json.loads((work / "perf_super.json").read_text())) == 8
    assert len(whole_rows(work / "perf_super.csv")) == 8
    assert len(read_csv(work / "perf_entry.csv")) == 2
    assert len(list((work / "runs").iterdir())) == 4


# --- killed


def test_a_killed_command_leaves_files_that_the_next_one_continues(work: Path) -> None:
    assert ran(work, *HOST, "--tags", "m")[0] == 0
    before = (work / "perf.csv").read_bytes()
    script(work, 'touch "$HERE/there"\necho performance: 2 x\nsleep 5\n')
    process = started(work, *HOST, "--tags", "m")
    appears(work.parent / "there")
    process.kill()
    process.communicate()
    assert (work / "perf.csv").read_bytes() == before
    script(work, "echo performance: 3 x\n")
    assert ran(work, *HOST, "--tags", "m")[0] == 0
    assert [row["performance"] for row in whole_rows(work / "perf.csv")] == ["1", "3"]


def test_commands_that_are_killed_at_any_moment_tear_no_file(work: Path) -> None:
    write_json(work / "manifest.json", manifest([card(f"m{i}") for i in range(40)]))
    for moment in range(5):
        process = started(work, *HOST, "--manifest-file", "manifest.json")
        time.sleep(0.25 + moment * 0.1)
        process.kill()
        process.communicate()
    assert ran(work, *HOST, "--tags", "m")[0] == 0
    assert {row["performance"] for row in whole_rows(work / "perf.csv")} == {"1"}
    assert all(row["performance"] == "1" for row in json.loads((work / "perf_super.json").read_text()))


# --- Ctrl-C with containers


def containers(model: str) -> list[str]:
    words = ["docker", "ps", "--all", "--quiet", "--filter", f"label=madengine.model={model}"]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()


@pytest.mark.docker
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_command_takes_its_container_along(
    work: Path, docker_engine: Mapping[str, str], number: signal.Signals
) -> None:
    name = f"first-{os.getpid()}-{number.value}"
    script(work, 'touch "$THERE"\nsleep 300 & sleep 300\n')
    cards = [card(name, env_vars={"THERE": "/myworkspace/there"}), card("second"), card("third")]
    write_json(work / "manifest.json", manifest(cards, image="local/debian-py:1"))
    process = started(work, "run", "--engine", "docker", "--manifest-file", "manifest.json")
    deadline = time.monotonic() + 30
    while not list(work.glob("runs/*/workspace/there")):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert len(containers(name)) == 1
    process.send_signal(number)
    code, _, err = ended(process)
    assert code == 130
    assert containers(name) == []
    [row] = whole_rows(work / "perf.csv")
    assert (row["model"], row["status"]) == (name, "FAILURE")
    [record] = work.glob("runs/*/run.json")
    assert json.loads(record.read_text())["verdict"]["reason"].startswith("cancelled after ")
    assert "not started: second, third" in err


@pytest.mark.docker
@pytest.mark.usefixtures("docker_engine")
def test_the_doctor_names_the_container_that_a_killed_command_left_and_no_other(work: Path) -> None:
    name = f"left-{os.getpid()}"
    write_json(work / "manifest.json", manifest([card(name)], image="local/debian-py:1"))
    script(work, "touch ../there\nsleep 300\n")
    process = started(work, "run", "--engine", "docker", "--manifest-file", "manifest.json")
    deadline = time.monotonic() + 30
    while not list(work.glob("runs/*/workspace/there")):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    (run_dir,) = (work / "runs").iterdir()
    container = f"madengine-{run_dir.name}"
    assert container not in ran(work, "doctor")[1]
    process.kill()
    process.communicate()
    code, out, err = ran(work, "doctor")
    subprocess.run(["docker", "rm", "--force", container], check=True, capture_output=True)
    assert code == 0
    assert container in out
    assert "docker rm -f " in err
    assert container in err


# --- no room


@pytest.fixture
def small_disk(work: Path) -> Iterator[Path]:
    """A disk of one megabyte; only root can make one."""
    folder = work.parent / "disk"
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if (
        os.geteuid()
        or shutil.which("mount") is None
        or subprocess.run(words, check=False, capture_output=True).returncode
    ):
        pytest.skip("a small disk takes root and mount")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=False)


def fill(folder: Path, leave: int) -> None:
    """Write until only so many bytes are free."""
    with (folder / "filler").open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError as error:
            assert error.errno == errno.ENOSPC
        file.truncate(max(0, file.tell() - leave))


@pytest.mark.parametrize("leave", [0, 4096, 8192, 12288, 16384, 24576, 32768, 49152])
def test_a_full_disk_is_a_sentence_and_no_row_is_lost_unsaid(work: Path, small_disk: Path, leave: int) -> None:
    fill(small_disk, leave)
    code, out, err = ran(work, *HOST, "--tags", "m", where=small_disk)
    rows = read_csv(small_disk / "perf.csv")
    assert code != 0 or (rows and rows[0]["performance"] == "1")
    if code:
        assert "No space left" in err or "no space left" in err
        assert rows or "1,x" in err or '"performance": "1"' in out or "FAILURE" in out + err
    (small_disk / "filler").unlink()
    assert ran(work, *HOST, "--tags", "m", where=small_disk)[0] == 0
    assert whole_rows(small_disk / "perf.csv")[-1]["performance"] == "1"


def test_a_disk_that_fills_up_during_the_run_keeps_the_number(work: Path, small_disk: Path) -> None:
    script(work, f"echo performance: 42.5 x\ncat /dev/zero >{small_disk}/filler\ntrue\n")
    code, out, err = ran(work, *HOST, "--tags", "m", where=small_disk)
    assert code != 0
    assert "42.5" in out + err
    assert "no space left" in err.lower()


def test_a_log_that_fills_the_disk_ends_in_a_sentence(work: Path, small_disk: Path) -> None:
    script(work, "echo performance: 42.5 x\nhead -c 5000000 /dev/zero | tr '\\0' x\n")
    code, out, err = ran(work, *HOST, "--tags", "m", where=small_disk)
    assert code != 0
    assert "no space left" in (out + err).lower()


# --- folders and files that change behind our back


def test_a_folder_that_was_removed_is_a_sentence(work: Path) -> None:
    code, _, err = ended(
        subprocess.Popen(
            ["sh", "-c", 'rmdir ../gone; exec "$@"', "sh", *MADENGINE, *HOST, "--tags", "m"],
            cwd=made(work.parent / "gone"),
            env=environment(work),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    )
    assert code == 4
    assert "error:" in err


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


KEEP_THE_NUMBER = [
    'rm "$HERE/work/perf.csv"', 'rm "$HERE/work/perf.csv" && mkdir "$HERE/work/perf.csv"',
    'echo nonsense >"$HERE/work/perf.csv"', 'rm "$HERE/work/perf.csv" && mkfifo "$HERE/work/perf.csv"',
    "rm -rf ../../workspace", 'rm -rf "$HERE/package"', "chmod 000 . ..",
    "rm ../../run.json ../../manifest.json; mkdir ../../run.json",
]  # fmt: skip
TAKE_IT = [
    'mv "$HERE/work/runs" "$HERE/elsewhere"',
    'rm -rf "$HERE/work/runs"',
    "rm -rf ../../logs",
    'rm -rf "$HERE/work"',
]


@pytest.mark.parametrize("meanwhile", KEEP_THE_NUMBER)
def test_a_script_that_changes_our_files_takes_no_number_away(work: Path, meanwhile: str) -> None:
    assert ran(work, *HOST, "--tags", "m")[0] == 0
    script(work, f"echo performance: 42.5 x\n{meanwhile}\ntrue\n")
    code, out, err = ran(work, *HOST, "--tags", "m")
    rows = (work / "perf.csv").read_text() if (work / "perf.csv").is_file() else ""
    assert "42.5" in rows + out + err
    assert code in (0, 1)
    assert code or "42.5" in rows


@pytest.mark.parametrize("meanwhile", TAKE_IT)
def test_a_script_that_takes_its_own_log_away_is_no_success(work: Path, meanwhile: str) -> None:
    script(work, f"echo performance: 42.5 x\n{meanwhile}\ntrue\n")
    code, _, err = ran(work, *HOST, "--tags", "m")
    assert code not in (0, 4)
    assert "no such file" in err.lower() or "not there any more" in err


def test_a_read_only_perf_csv_is_refused_first(work: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write it all the same")
    (work / "perf.csv").write_text("model,performance\n")
    (work / "perf.csv").chmod(0o444)
    code, _, err = ran(work, *HOST, "--tags", "m")
    assert code == 4
    assert "perf.csv" in err


def test_a_locked_perf_csv_is_waited_for(work: Path) -> None:
    import fcntl

    assert ran(work, *HOST, "--tags", "m")[0] == 0
    with (work / "perf.csv").open("rb+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        timer = threading.Timer(1.0, lambda: fcntl.flock(file, fcntl.LOCK_UN))
        timer.start()
        assert ran(work, *HOST, "--tags", "m")[0] == 0
        timer.join()
    assert len(whole_rows(work / "perf.csv")) == 2


def test_a_reader_that_goes_away_is_no_error(work: Path) -> None:
    for words in (["discover"], [*HOST, "--tags", "m", "--json"], ["schema", "build_manifest"]):
        line = ["sh", "-c", '"$@" | true', "sh", *MADENGINE, *words]
        done = subprocess.run(line, check=False, cwd=work, env=environment(work), capture_output=True, text=True)
        assert "Traceback" not in done.stderr
        assert "Exception" not in done.stderr


@pytest.mark.parametrize("words", [["discover"], ["schema", "build_manifest"], ["--help"], [*HOST, "--tags", "m"]])
def test_an_output_without_room_is_a_sentence(work: Path, words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*MADENGINE, *words], check=False, cwd=work, env=environment(work), stdout=full, stderr=-1, text=True
        )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "defect" not in done.stderr
