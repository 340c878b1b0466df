"""Signals that are counted, on real signals."""

from __future__ import annotations

import signal
import threading

import pytest

from madengine.core.interruptions import Interruptions, counted_interruptions


def test_signals_are_counted_and_raise_nothing() -> None:
    with counted_interruptions() as counted:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
    assert (counted.count, counted.impatience) == (2, 1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
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
    assert restored == [signal.SIG_DFL, signal.SIG_DFL]


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
