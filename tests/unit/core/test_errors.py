"""What an error says on its one line."""

from __future__ import annotations

import pytest

from madengine.core.errors import MADEngineError, ValidationError


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (MADEngineError("is wrong"), "is wrong"),
        (MADEngineError("is wrong", where="a.json:3"), "a.json:3: is wrong"),
        (MADEngineError("is wrong", where="a.json", hint="mend it"), "a.json: is wrong (mend it)"),
        (ValidationError("is wrong", pointer="/a\nb"), r"document#/a\nb: is wrong"),
        (ValidationError("is wrong", source="ä\x1b[31m", pointer="/k"), r"ä\x1b[31m#/k: is wrong"),
    ],
)
def test_place_message_and_hint_stand_on_one_line(error: MADEngineError, text: str) -> None:
    assert str(error) == text


def test_the_pointer_itself_is_kept_as_it_is() -> None:
    assert ValidationError("is wrong", pointer="/a\nb").pointer == "/a\nb"
