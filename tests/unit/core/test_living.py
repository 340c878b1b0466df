"""Whether a process lives."""

from __future__ import annotations

import os
import subprocess
import sys

from madengine.core.living import process_space, start_time


def test_a_process_that_lives_has_a_start_time_that_stays() -> None:
    assert start_time(os.getpid()) == start_time(os.getpid()) is not None


def test_a_process_that_has_ended_or_waits_to_be_buried_has_none() -> None:
    process = subprocess.Popen(["true"], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.read()  # its end: the process is about to be a zombie
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert start_time(process.pid) is None
    process.communicate()
    assert start_time(process.pid) is None


def test_numbers_of_processes_mean_the_same_in_a_child() -> None:
    code = "from madengine.core.living import process_space; print(process_space())"
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert shown.strip() == process_space() != ""
