"""The log files of a run. What goes into them and to the screen has passed the redactor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from madengine.core.redact import Redactor


@contextmanager
def recording(path: Path, redactor: Redactor, live: Callable[[bytes], None]) -> Iterator[Callable[[bytes], None]]:
    """A function that takes output, writes it to ``path`` at once and shows it through ``live``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab", buffering=0) as file:

        def both(data: bytes) -> None:
            file.write(data)
            live(data)

        sink = redactor.sink(both)
        try:
            yield sink
        finally:
            sink.close()
