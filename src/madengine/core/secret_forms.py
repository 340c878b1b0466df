"""The forms in which a secret can appear in an output: as it is, encoded, escaped, line by line."""

from __future__ import annotations

import re
from collections.abc import Iterator

MIN_LENGTH = 4
"""Bytes. What is shorter stands in every log by chance."""

_MIN_LINE = 8
_PERCENT = re.compile(r"%[0-9A-F]{2}")


def forms(secret: str) -> frozenset[bytes]:
    """All byte strings that give away ``secret`` when one of them is printed."""
    bare = secret.strip()
    found = {_bytes(text) for text in _escaped(bare)}
    found.add(bare.encode("utf-8", "surrogatepass"))
    found.update(_encoded(_bytes(bare)))
    for line in bare.splitlines():
        # The first and last line of a PEM block are no secret, they are the same in every key.
        if len(line.strip()) >= _MIN_LINE and not line.startswith("-----"):
            found.update(_bytes(text) for text in _escaped(line.strip()))
    return frozenset(form for form in found if len(form) >= MIN_LENGTH)


def _bytes(text: str) -> bytes:
    """As a program writes it: an undecodable byte of the environment is that byte again."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _escaped(text: str) -> Iterator[str]:
    """As text inside the text formats that logs, commands and reports are made of."""
    import html
    import json
    from urllib.parse import quote, quote_plus

    yield text
    for ascii_only in (True, False):
        literal = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
        yield from (literal, literal.replace("/", "\\/"), json.dumps(literal, ensure_ascii=ascii_only)[1:-1])
    yield from (repr(text)[1:-1], repr(_bytes(text))[2:-1])
    # Percent-encoding as Python, paths, forms and JavaScript have it.
    for encoded in (*(quote(_bytes(text), safe=safe) for safe in ("", "/", "!*'()")), quote_plus(_bytes(text))):
        yield from (encoded, _PERCENT.sub(lambda code: code[0].lower(), encoded))
    yield from (html.escape(text), html.escape(text, quote=False), html.escape(text).replace("&#x27;", "&#39;"))
    yield from (text.replace("'", "'\"'\"'"), text.replace("'", "'\\''"), re.sub(r"([^\w@%+=:,./-])", r"\\\1", text))
    yield text.replace('"', '""')


def _encoded(data: bytes) -> Iterator[bytes]:
    """In hexadecimal and base64. In base64 the characters depend on the place in what is encoded: three alignments, of
    each the characters that depend on nothing else.
    """
    from base64 import b64encode

    yield from (data.hex().encode(), data.hex().upper().encode())
    for before in range(3):
        first, last = -(-before * 8 // 6), (before + len(data)) * 8 // 6
        core = b64encode(b"\0" * before + data)[first:last]
        yield from (core, core.replace(b"+", b"-").replace(b"/", b"_"))
