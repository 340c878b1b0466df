"""A watcher keeps the time limit of what a client started elsewhere."""

from __future__ import annotations

import threading

import pytest

from madengine.core.process import StreamResult
from madengine.execution.watch import watched


def test_a_client_that_returns_in_time_is_believed() -> None:
    ended = watched(lambda give_up: StreamResult(7, 0.1), end=lambda returned: pytest.fail("stepped in"), timeout=60)
    assert (ended.exit_code, ended.timed_out, ended.cancelled) == (7, False, False)


def test_at_the_time_limit_the_far_end_is_ended_and_the_client_returns_by_itself() -> None:
    over = threading.Event()

    def client(give_up: threading.Event) -> StreamResult:
        assert over.wait(10)
        return StreamResult(137, 1.0)

    ended = watched(client, end=lambda returned: over.set(), timeout=0.01)
    assert (ended.exit_code, ended.timed_out, ended.cancelled) == (124, True, False)


def test_a_client_that_does_not_return_is_given_up() -> None:
    def client(give_up: threading.Event) -> StreamResult:
        assert give_up.wait(10)
        return StreamResult(130, 1.0, cancelled=True)

    assert watched(client, end=lambda returned: None, timeout=0.01).exit_code == 124


def test_a_cancel_outranks_a_time_limit() -> None:
    cancel = threading.Event()
    cancel.set()

    def client(give_up: threading.Event) -> StreamResult:
        assert give_up.wait(10)
        return StreamResult(143, 1.0)

    ended = watched(client, end=lambda returned: None, timeout=0.0, cancel=cancel)
    assert (ended.exit_code, ended.timed_out, ended.cancelled) == (130, False, True)


def test_an_error_of_the_client_ends_the_watch() -> None:
    def client(give_up: threading.Event) -> StreamResult:
        raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        watched(client, end=lambda returned: pytest.fail("stepped in"), timeout=60)
