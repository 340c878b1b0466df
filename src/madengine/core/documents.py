"""Reading the files people hand to madengine: strictly, quickly, and with the line when something is wrong.

Whatever a path turns out to be (missing, a directory, a pipe, a picture, two hundred megabytes, JSON nested a hundred
thousand deep), the answer is one :class:`DocumentError` that names it, within a second
and a bounded amount of memory. Valid documents pay little for this: the tests beyond the parser's own are single
passes of C code over the bytes, and positions are looked for only when there is something to report.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
from pathlib import Path
from typing import Any, NoReturn

from madengine.core import json_positions as positions
from madengine.core.errors import ConfigurationError

MAX_BYTES = 16 * 1024 * 1024
"""Largest document that is read. Ten thousand model cards are 5 MB."""

MAX_VALUES = 600_000
"""Most values in one document, so that parsing it stays below 200 MiB of memory."""

MAX_DEPTH = 100
"""Deepest nesting. Real documents have at most six levels."""

WRITER_WAIT = 1.0
"""Seconds that a pipe may be without a writer before it is given up."""

SILENCE = 30.0
"""Seconds that the writer of a pipe may be silent."""

_MAX_INTEGER_DIGITS = 19  # 64 bits, what every JSON reader can hold
_NOT_STRUCTURE = bytes(set(range(256)) - set(b'[]{}",'))
_NO_CHARACTER = re.compile(r"\\u(?:[dD][89a-fA-F]|0000)")
_LONG_WORD = re.compile(r"([^\s{}\[\]:,\"']{4})[^\s{}\[\]:,\"']{5,}")  # could be somebody's token
BYTE_ORDER_MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"


class _RefusedValueError(Exception):
    """Raised inside the parser when a value is JSON by the letter but not usable."""

    def __init__(self, literal: str, reason: str) -> None:
        super().__init__(reason)
        self.literal = literal
        self.reason = reason


class _DuplicateKeyError(Exception):
    """Raised inside the parser when an object has a key twice."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


class DocumentError(ConfigurationError):
    """A file that cannot be read as the document it should be. ``line`` counts from 1, None when it has none."""

    def __init__(self, message: str, *, where: str, line: int | None = None, hint: str | None = None) -> None:
        super().__init__(message, where=where, hint=hint)
        self.line = line


def printable(value: object, limit: int = 200) -> str:
    """Text that is safe on one line of a terminal: control characters and lone surrogates escaped, long text cut."""
    text = str(value)
    if len(text) > limit:
        text = text[: limit - 3] + "..."
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def read_text(
    path: str | os.PathLike[str], *, what: str, limit: int = MAX_BYTES, keep_mark: bool = False, pipes: bool = False
) -> str:
    """The text of a file, without its byte-order mark unless that is to be kept; line ends stay as they are.

    ``what`` names the kind of document for the error ("manifest", "model cards"). ``pipes``: also what comes through
    a pipe is read, for a path that a person typed (``<(jq ...)``). Raises DocumentError when there is no such file,
    when nobody writes to the pipe, when there are more than ``limit`` bytes, or when they are not UTF-8 text.
    """
    data = _read_bytes(path, what, limit, pipes)
    if b"\0" in data or data[:2] in {b"\xff\xfe", b"\xfe\xff"}:
        _refuse(path, f"the {what} is {_sort_of_binary(data)}, not UTF-8 text", hint="save it as UTF-8")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        reason = f"the {what} is not UTF-8 text: byte 0x{data[error.start]:02x} does not belong there"
        _refuse(path, reason, line=line, hint="save it as UTF-8")
    return text if keep_mark else text.removeprefix(BYTE_ORDER_MARK)


def load_json(path: str | os.PathLike[str], *, what: str, pipes: bool = False) -> Any:
    """The document in a JSON file, read as strictly as :func:`parse_json` does; ``pipes`` as in :func:`read_text`."""
    return parse_json(read_text(path, what=what, pipes=pipes), source=str(path), what=what)


def parse_json(text: str, *, source: str, what: str) -> Any:
    """The document that a text holds.

    Beyond what JSON itself forbids, this refuses a key that stands twice in one object, ``NaN`` and ``Infinity``,
    numbers beyond 64 bits, nesting deeper than MAX_DEPTH, more than MAX_VALUES values, NUL characters and half
    surrogate pairs.
    Raises DocumentError; ``source`` (a path or a name such as "--additional-context") and the line stand in it.
    """
    text = text.removeprefix(BYTE_ORDER_MARK)
    _check_size(text, source, what)
    try:
        document = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        _refuse(source, _explain(error, text, what), line=error.lineno, column=error.colno)
    except _DuplicateKeyError as error:
        _refuse_duplicate(text, source, error.key)
    except _RefusedValueError as error:
        offset = positions.find_scalar(text, error.literal)
        line = None if offset is None else positions.line_at(text, offset)
        _refuse(source, f"{printable(error.literal, 40)} {error.reason}", line=line)
    if _NO_CHARACTER.search(text) and (offset := positions.find_unusable_string(text)) is not None:
        reason = "a string holds a NUL character or half of a surrogate pair (\\u0000, \\ud800 to \\udfff)"
        _refuse(source, reason, line=positions.line_at(text, offset), hint="no path, variable or argument can hold it")
    return document


def _check_size(text: str, source: str, what: str) -> None:
    """Refuse what would be expensive or impossible to parse, before parsing it."""
    if not text or text.isspace():
        _refuse(source, f"the {what} is empty", hint="a JSON document was expected")
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        _refuse(source, f"the {what} is not text", line=positions.line_at(text, error.start))
    if len(data) > MAX_BYTES:
        _refuse(source, f"the {what} has {len(data):,} bytes; at most {MAX_BYTES:,} are read")
    structure = _structure(data)
    values = len(structure.translate(None, b'"]}'))
    if values >= MAX_VALUES:
        _refuse(source, f"the {what} holds some {values:,} values; at most {MAX_VALUES:,} are read")
    if _is_deep(structure):
        offset = positions.find_depth(text, MAX_DEPTH)
        if offset is not None:
            reason = f"the {what} is nested deeper than {MAX_DEPTH} levels"
            _refuse(source, reason, line=positions.line_at(text, offset))


def _structure(data: bytes) -> bytes:
    """The brackets, commas and quotes of a JSON text, without the quotes that are escaped: a tenth of its size."""
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    return data.translate(None, _NOT_STRUCTURE)


def _is_deep(structure: bytes) -> bool:
    """Whether the brackets may be nested deeper than MAX_DEPTH. Exact for balanced ones, in passes of C code.

    Strings are taken out, then innermost pairs of brackets are peeled off, one or two levels in each round.
    """
    brackets = structure.translate(None, b",").replace(b'""', b"")
    brackets = re.sub(rb'"[^"]*"?', b"", brackets)
    for _ in range(MAX_DEPTH // 2):
        peeled = brackets.replace(b"{}", b"").replace(b"[]", b"")
        if len(peeled) == len(brackets):
            break
        brackets = peeled
    return b"{" in brackets or b"[" in brackets


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _DuplicateKeyError(_repeated(pairs))
    return members


def _repeated(pairs: list[tuple[str, Any]]) -> str:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            break
        seen.add(key)
    return key


def _integer(literal: str) -> int:
    if len(literal.lstrip("-")) > _MAX_INTEGER_DIGITS:
        raise _RefusedValueError(literal, "is an integer beyond 64 bits")
    return int(literal)


def _float(literal: str) -> float:
    value = float(literal)
    if math.isinf(value):
        raise _RefusedValueError(literal, "is a number beyond what a double can hold")
    return value


def _constant(literal: str) -> NoReturn:
    raise _RefusedValueError(literal, "is not a JSON number")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant)


def _explain(error: json.JSONDecodeError, text: str, what: str) -> str:
    """What is wrong with the JSON, in the words of someone who has the file open."""
    rest = text[error.pos :].strip()
    if not rest or error.msg.startswith("Unterminated string"):
        return f"the {what} is not complete JSON: it ends inside {_inside(error)}"
    found = _LONG_WORD.sub(r"\1...", printable(rest[:20].split("\n")[0].strip(), 20))
    if error.msg == "Extra data":
        return f"the {what} goes on after the end of the JSON document with {found!r}"
    expected = error.msg.removeprefix("Expecting ").removeprefix("Illegal trailing ")
    if error.msg.startswith("Expecting"):
        return f"the {what} is not valid JSON: expected {expected}, found {found!r}"
    return f"the {what} is not valid JSON: {error.msg[0].lower()}{error.msg[1:]}, near {found!r}"


def _inside(error: json.JSONDecodeError) -> str:
    return "a string" if error.msg.startswith("Unterminated") else "an object or a list"


def _refuse_duplicate(text: str, source: str, key: str) -> NoReturn:
    reason = f'the key "{printable(key, 60)}" stands twice in one object'
    hint = "remove or rename one of them"
    found = positions.find_duplicate(text, key)
    if found is None:
        _refuse(source, reason, hint=hint)
    first, second = (positions.line_at(text, offset) for offset in found)
    _refuse(source, f"{reason}, first on line {first}", line=second, hint=hint)


def _read_bytes(path: str | os.PathLike[str], what: str, limit: int, pipes: bool) -> bytes:
    """The content of a file. Opened without waiting, so that a pipe without a writer cannot hang us."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        _refuse(path, "there is no such file" + (f" ({what})" if what != "file" else ""))
    except (OSError, ValueError) as error:
        _refuse(path, f"the {what} cannot be read: {_reason(error)}")
    try:
        status = os.fstat(descriptor)
        if pipes and stat.S_ISFIFO(status.st_mode):
            return _read_pipe(path, descriptor, what, limit)
        if not stat.S_ISREG(status.st_mode):
            _refuse(path, f"the {what} is {_sort_of_file(status.st_mode)}, not a file")
        if status.st_size > limit:
            _refuse(path, f"the {what} has {status.st_size:,} bytes; at most {limit:,} are read")
        return _read_up_to(path, descriptor, what, limit)
    finally:
        os.close(descriptor)


def _read_up_to(path: str | os.PathLike[str], descriptor: int, what: str, limit: int) -> bytes:
    """Everything in the stream; files of /proc have no size of their own, so the limit counts here, too."""
    chunks: list[bytes] = []
    room = limit + 1
    try:
        while room > 0 and (chunk := os.read(descriptor, min(room, 1 << 24))):
            chunks.append(chunk)
            room -= len(chunk)
    except OSError as error:
        _refuse(path, f"the {what} cannot be read: {_reason(error)}")
    return _joined(path, chunks, what, limit)


def _read_pipe(path: str | os.PathLike[str], descriptor: int, what: str, limit: int) -> bytes:
    """Everything that comes through a pipe until its writers have closed it. An idle pipe is not waited for long."""
    import select

    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    chunks: list[bytes] = []
    room = limit + 1
    while room > 0:
        patience = SILENCE
        try:
            chunk = os.read(descriptor, min(room, 1 << 16))
            if chunk:
                chunks.append(chunk)
                room -= len(chunk)
                continue
            if chunks:
                break
            patience = WRITER_WAIT  # there is no writer: not yet, or not any more
        except BlockingIOError:
            pass
        events = poller.poll(patience * 1000)
        if not events:
            _refuse(path, f"the {what} is a pipe, and nothing came through it within {patience:g} s")
        if events[0][1] == select.POLLHUP and not chunks:
            break
    return _joined(path, chunks, what, limit)


def _joined(path: str | os.PathLike[str], chunks: list[bytes], what: str, limit: int) -> bytes:
    data = b"".join(chunks)
    if len(data) > limit:
        _refuse(path, f"the {what} has more than {limit:,} bytes, which is the most that is read")
    return data


def _reason(error: OSError | ValueError) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text[:1].lower() + text[1:]


def _sort_of_file(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "a directory"
    if stat.S_ISFIFO(mode):
        return "a pipe"
    return "a socket or device"


def _sort_of_binary(data: bytes) -> str:
    if data[:2] in {b"\xff\xfe", b"\xfe\xff"}:
        return "UTF-16 or UTF-32"
    return "binary"


def _refuse(
    source: str | os.PathLike[str],
    reason: str,
    *,
    line: int | None = None,
    column: int | None = None,
    hint: str | None = None,
) -> NoReturn:
    where = printable(source if isinstance(source, str) else Path(source), 400)
    if line is not None:
        where += f":{line}" if column is None else f":{line}:{column}"
    raise DocumentError(reason, where=where, line=line, hint=hint) from None
