"""Signals that are counted, on real signals."""

from __future__ import annotations

import importlib
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from madengine.core.interruptions import IMPATIENT, Interruptions, counted_interruptions, raised_interruptions


def test_signals_are_counted_and_raise_nothing() -> None:
    with counted_interruptions() as counted:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGHUP)
    assert (counted.count, counted.impatience) == (3, 1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_afterwards_signals_do_what_they_did_before(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with counted_interruptions():
        assert signal.getsignal(number) != before
    assert signal.getsignal(number) == before


def test_an_exception_restores_them_too() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(ValueError, match="x"), counted_interruptions():
        raise ValueError("x")
    assert signal.getsignal(signal.SIGINT) == before


def test_a_handler_that_python_does_not_know_becomes_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    restored: list[object] = []

    def fake(number: int, handler: object) -> None:
        restored.append(handler)

    monkeypatch.setattr(signal, "signal", fake)
    with counted_interruptions():
        restored.clear()
    assert restored == [signal.SIG_DFL] * 3


def test_in_another_thread_nothing_is_counted() -> None:
    found: list[Interruptions] = []

    def work() -> None:
        with counted_interruptions() as counted:
            found.append(counted)

    before = signal.getsignal(signal.SIGINT)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found[0].count == 0
    assert signal.getsignal(signal.SIGINT) == before


@pytest.fixture
def no_hangup() -> Iterator[None]:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.usefixtures("no_hangup")
def test_a_hangup_that_nohup_has_ignored_stays_ignored() -> None:
    with raised_interruptions() as raised, counted_interruptions() as counted:
        signal.raise_signal(signal.SIGHUP)
    assert (raised.count, counted.count) == (0, 0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_where_work_may_be_broken_off_a_signal_raises_and_is_counted(number: signal.Signals) -> None:
    with raised_interruptions() as heard:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
        heard.only_count()
        signal.raise_signal(number)
    assert heard.count == 2


def test_a_step_that_may_be_broken_off_raises_and_the_next_one_counts() -> None:
    with counted_interruptions() as counted:
        with pytest.raises(KeyboardInterrupt), counted.raised():
            signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)
    assert counted.count == 2


def test_an_interruption_that_came_before_breaks_the_step_off_at_its_beginning() -> None:
    begun = []
    with counted_interruptions() as counted:
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt), counted.raised():
            begun.append(True)
    assert begun == []


def imported(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Import a module that does what ``text`` says."""
    name = f"interrupted_{folder.name}"
    (folder / f"{name}.py").write_text(f"import signal, time\n{text}\ndone = True\n")
    monkeypatch.syspath_prepend(folder)
    importlib.import_module(name)


def test_an_import_is_finished_before_the_interruption_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with raised_interruptions() as heard, pytest.raises(KeyboardInterrupt):
        imported(tmp_path, "signal.raise_signal(signal.SIGINT)\ntime.sleep(0.02)", monkeypatch)
        time.sleep(10)
    assert sys.modules.pop(f"interrupted_{tmp_path.name}").done
    assert heard.count == 1
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL


def test_an_interruption_that_waits_for_an_import_is_counted_where_nothing_may_be_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with raised_interruptions() as raised:
        imported(tmp_path, "signal.raise_signal(signal.SIGINT)", monkeypatch)
        with counted_interruptions() as counted:
            time.sleep(0.05)
        assert (raised.count, counted.count) == (1, 1)
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL


def test_a_user_who_insists_does_not_wait_for_an_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    insists = "signal.raise_signal(signal.SIGINT)\n" * IMPATIENT
    with raised_interruptions(), pytest.raises(KeyboardInterrupt):
        imported(tmp_path, insists + "time.sleep(0)", monkeypatch)
    assert f"interrupted_{tmp_path.name}" not in sys.modules
