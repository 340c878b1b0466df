"""What a person sees while a model runs."""

from __future__ import annotations

import pytest

from madengine.cli.run_progress import last_line


@pytest.mark.parametrize(
    ("chunks", "shown"),
    [
        ([b"one\n", b"two\n"], b"two"),
        ([b"step 1 of", b" 9"], b"step 1 of 9"),
        ([b"10%\r", b"20%\r"], b"20%"),
        ([b"one\ntw", b"o\n"], b"two"),
        ([b""], b""),
        ([b"x" * 9000], b"x" * 400),
    ],
)
def test_the_last_line_is_shown_whatever_the_pieces_of_output(chunks: list[bytes], shown: bytes) -> None:
    line = rest = b""
    for chunk in chunks:
        line, rest = last_line(rest, chunk)
    assert line == shown
