"""Values that are made beside other work."""

from __future__ import annotations

import threading

import pytest

from madengine.core.later import Later


def test_the_value_is_made_while_the_caller_goes_on() -> None:
    caller_went_on = threading.Event()

    def make() -> int:
        assert caller_went_on.wait(10)
        return 42

    value = Later(make)
    caller_went_on.set()
    assert value.get() == 42
    assert value.get() == 42


def test_what_the_maker_raises_is_raised_to_who_asks() -> None:
    def make() -> int:
        raise ValueError("no")

    value = Later(make)
    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            value.get()
