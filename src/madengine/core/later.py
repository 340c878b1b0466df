"""A value that is made while other work goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Later(Generic[T]):
    """Calls ``make`` in a thread of its own, from now on.

    For questions to other programs, whose answers take their time and none of ours. The thread does not keep the
    process alive when nobody asks for the value.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._values: list[T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="later", daemon=True)
        self._thread.start()

    def get(self) -> T:
        """The value, once it is there. Raises what ``make`` raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._values[0]

    def _work(self) -> None:
        try:
            self._values.append(self._make())
        except BaseException as error:
            self._error = error
