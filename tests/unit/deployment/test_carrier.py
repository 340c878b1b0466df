"""The process that carries a run."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from madengine.core.errors import ExecutionError
from madengine.deployment.carrier import Carrier


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    Carrier.this_process().write(tmp_path)
    assert Carrier.read(tmp_path) == Carrier.this_process()


def test_this_process_lives_and_has_a_start_time() -> None:
    here = Carrier.this_process()
    assert here.may_live()
    assert here.started > 0


@pytest.mark.parametrize(
    "fields", [{"pid": 2**22 + 1}, {"started": 1}, {"pid": -1}, {"pid": 0}, {"pid": 0, "started": 0}]
)
def test_another_number_is_another_process(fields: dict[str, int]) -> None:
    assert not replace(Carrier.this_process(), **fields).may_live()


def test_a_process_that_has_ended_and_is_not_buried_yet_is_dead() -> None:
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    stat = Path(f"/proc/{child.pid}/stat").read_text()
    assert not Carrier(child.pid, int(stat.split()[21]), os.uname().nodename).may_live()
    child.wait()


@pytest.mark.parametrize("text", ["", "7", "7 8", "a b c", "7 8 h x", "\udcff"])
def test_what_cannot_be_understood_is_nobody(tmp_path: Path, text: str) -> None:
    (tmp_path / "pid").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert Carrier.read(tmp_path) is None


def test_a_process_that_is_gone_needs_no_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(pid: int, number: int) -> None:
        raise ProcessLookupError

    monkeypatch.setattr(os, "kill", gone)
    Carrier.this_process().end()
    replace(Carrier.this_process(), started=1).end()


def test_another_users_process_cannot_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(pid: int, number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refused)
    with pytest.raises(ExecutionError, match="is another user's"):
        Carrier.this_process().end()
