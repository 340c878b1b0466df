"""A lock between machines that outlives no holder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from madengine.core.errors import ExecutionError
from madengine.execution.shared_lock import LIMIT, Holder, SharedLock


class Time:
    """A clock that a pause moves on; ``at_pause`` is what others do meanwhile."""

    def __init__(self, at_pause: Callable[[int], None] = lambda number: None) -> None:
        self.now, self.pauses, self._at_pause = 0.0, 0, at_pause

    def clock(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds
        self.pauses += 1
        assert self.pauses < 1000, "it waits for ever"
        self._at_pause(self.pauses)


def lock(path: Path, time: Time | None = None) -> SharedLock:
    time = time or Time()
    return SharedLock(path, clock=time.clock, pause=time.pause)


def holder_file(path: Path) -> Path:
    return path.with_name(f".{path.name}.holder")


def held_by(path: Path, holder: Holder) -> Path:
    holder_file(path).write_text(json.dumps(asdict(holder)))
    return holder_file(path)


STRANGER = Holder("t-1", "far-away", "another-boot", 1, 1)


def never() -> bool:
    return False


def test_who_holds_it_is_named_and_nothing_stays_behind(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    with lock(path).held_unless(never) as held:
        assert held
        named = json.loads(holder_file(path).read_text())
        assert (named["pid"], named["host"]) == (os.getpid(), os.uname().nodename)
    assert list(tmp_path.iterdir()) == []


def test_one_of_many_threads_holds_it_at_a_time(tmp_path: Path) -> None:
    inside, most, path = [], [0], tmp_path / "x.tar"

    def work() -> None:
        with SharedLock(path, pause=lambda seconds: None).held_unless(never):
            inside.append(1)
            most[0] = max(most[0], len(inside))
            inside.pop()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]


def test_it_is_not_waited_for_when_it_is_not_needed_any_more(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    held_by(path, STRANGER)
    time = Time(lambda number: path.touch() if number == 3 else None)
    with lock(path, time).held_unless(path.exists) as held:
        assert not held
    assert time.pauses == 3


def test_what_is_not_needed_any_more_is_not_taken_either(tmp_path: Path) -> None:
    with lock(tmp_path / "x.tar").held_unless(lambda: True) as held:
        assert not held
    assert list(tmp_path.iterdir()) == []


def test_a_holder_far_away_that_shows_signs_of_life_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    file = held_by(path, STRANGER)

    def lives(number: int) -> None:
        if number % 5 == 0:
            os.utime(file, ns=(number, number))
        if number == 500:
            file.unlink()

    time = Time(lives)
    with lock(path, time).held_unless(never) as held:
        assert held
    assert time.pauses == 500


def test_a_holder_far_away_without_a_sign_of_life_loses_it(tmp_path: Path) -> None:
    path, time = tmp_path / "x.tar", Time()
    held_by(path, STRANGER)
    with lock(path, time).held_unless(never) as held:
        assert held
    assert LIMIT < time.now < 2 * LIMIT


@pytest.mark.parametrize("text", ["", "{", "[]", '{"x": 1}', "7"])
def test_a_lock_that_says_nothing_is_a_silent_one(tmp_path: Path, text: str) -> None:
    path, time = tmp_path / "x.tar", Time()
    holder_file(path).write_text(text)
    with lock(path, time).held_unless(never) as held:
        assert held
    assert time.now > LIMIT


def test_a_dead_process_of_this_machine_loses_it_at_once(tmp_path: Path) -> None:
    path, time = tmp_path / "x.tar", Time()
    code = (
        "import os, sys, signal\n"
        "from pathlib import Path\n"
        "from madengine.execution.shared_lock import SharedLock\n"
        "with SharedLock(Path(sys.argv[1])).held_unless(lambda: False):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert done.returncode == -9
    assert holder_file(path).exists()
    with lock(path, time).held_unless(never) as held:
        assert held
    assert time.pauses <= 1


def test_a_process_of_this_machine_that_lives_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    file = held_by(path, Holder.this_process())
    time = Time(lambda number: file.unlink() if number == 10 else None)
    with lock(path, time).held_unless(never):
        assert time.pauses == 10


def test_of_several_that_wait_one_takes_it_away(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    file = held_by(path, STRANGER)
    claim = file.with_name(f"{file.name}.{STRANGER.token}")
    claim.touch()  # another is about to

    def another_has(number: int) -> None:
        if number == LIMIT + 10:
            held_by(path, Holder("t-2", "near"))
            claim.unlink()
        if number == LIMIT + 20:
            file.unlink()

    time = Time(another_has)
    with lock(path, time).held_unless(never):
        assert time.pauses == LIMIT + 20


def test_one_that_died_while_it_took_the_lock_away_does_not_block_the_others(tmp_path: Path) -> None:
    path, time = tmp_path / "x.tar", Time()
    file = held_by(path, STRANGER)
    file.with_name(f"{file.name}.{STRANGER.token}").touch()
    with lock(path, time).held_unless(never) as held:
        assert held
    assert 2 * LIMIT < time.now < 3 * LIMIT
    assert list(tmp_path.iterdir()) == []


def test_a_lock_that_another_has_taken_meanwhile_is_left_to_it(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    with lock(path).held_unless(never):
        held_by(path, STRANGER)
    assert holder_file(path).exists()


def test_a_failure_is_told_to_those_who_waited_for_it_and_to_nobody_else(tmp_path: Path) -> None:
    path = tmp_path / "x.tar"
    first, waiting, later = lock(path), lock(path), lock(path)
    looks = iter((False, True))
    with first.held_unless(never):
        with waiting.held_unless(lambda: next(looks)):
            pass
        first.fail("no space left")
    told = waiting.failure()
    assert told is not None
    assert (told.reason, told.host) == ("no space left", os.uname().nodename)
    assert later.failure() is None


def test_a_folder_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ExecutionError, match="the lock cannot be made"), lock(tmp_path / "no" / "x").held_unless(never):
        pass
