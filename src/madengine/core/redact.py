"""Secrets that do not get out: found in text, in byte streams and in command lines, and replaced by ``***``.

A :class:`Redactor` knows values. It finds each as it stands and as it usually travels: base64 (wherever in the encoded
text it lies), hexadecimal, escaped for JSON, Python, HTML, URLs, CSV or a shell, and wrapped over lines at any column,
indented or not. A secret of several lines (a key in PEM form) is also found line by line.

Values that would tear a log to pieces are not looked for: see :func:`is_maskable`. What is not covered: ciphers,
compression, and parts of a secret.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from madengine.core.secret_forms import MIN_LENGTH, forms

MASK = "***"

Data = bytes
"""Inside :class:`Redactor` the name ``bytes`` is a method."""

_SHORT = 8
_MIN_DIGITS = 8
_PLAIN_WORD = re.compile(
    "true|false|none|null|auto|default|enabled|disabled|unset|empty|test|local|localhost|root|admin|user|dummy"
)

_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")
_SECRET_NAME = re.compile(
    r"""
    ^MAD_SECRETS?_.+
    | (?:^|_)(?:\w*TOKEN|\w*PASSWORDS?|PASSWD|PASSPHRASE|\w*SECRETS?|CREDENTIALS?|AUTH_CONFIG|AUTHORIZATION)$
    | (?:^|_)(?:API|ACCESS|SECRET|PRIVATE|ACCOUNT|AUTH)_?KEYS?$
    | ._(?:KEY|PASS|PWD|PAT|AUTH)$
    """,
    re.VERBOSE,
)
_NO_SECRET_NAME = re.compile(r"(?:^|_)(?:PUBLIC_KEY|OLD_PWD|SORT_KEY|PRIMARY_KEY|MAX_TOKEN)$")

_ASSIGNMENT = re.compile(r"\A(-{0,2}[A-Za-z_][\w.-]*)=.", re.DOTALL)
_INNER_ASSIGNMENT = re.compile(r"""(?<![\w.-])((-{0,2}[A-Za-z_][\w.-]*)=)(?![\w.-]+=)("[^"]*"|'[^']*'|[^\s,;&'"]+)""")
_URL_PASSWORD = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://[^/\s:@'\"]*:)([^/\s'\"]+)(?=@)")
_URL_TOKEN = re.compile(r"(https?://)[^/\s:@'\"]+(?=@)")
_AUTHORIZATION = re.compile(r"(?i)(authorization\s*[:=]\s*(?:\w+\s+)?|\bbearer\s+)[^\s'\"]+")
_MEMBER = re.compile(r"""((['"])([\w.-]+)\2\s*:\s*)("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[\w.+-]+)""", re.DOTALL)


def is_secret_name(name: str) -> bool:
    """Whether the value of a variable, option or key of this name is to be kept out of logs and provenance.

    ``MAD_SECRETS_*``, and names whose last word says it: ``HF_TOKEN``, ``--db-password``, ``apiKey``,
    ``AWS_SECRET_ACCESS_KEY``. Not: ``MAX_TOKENS``, ``PWD``, ``KEY``, ``PUBLIC_KEY``, ``TOKENIZER``.
    """
    words = _WORDS.sub("_", name).strip("_").upper()
    return bool(_SECRET_NAME.search(words)) and not _NO_SECRET_NAME.search(words)


def secret_values(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The values in ``environment`` whose names say that they are secrets, and passwords in addresses, each once."""
    named = [value for name, value in environment.items() if value and is_secret_name(name)]
    return tuple(dict.fromkeys([*named, *(found for value in environment.values() for found in url_passwords(value))]))


def url_passwords(text: str) -> list[str]:
    """The passwords in the addresses (``scheme://user:password@host``) that ``text`` holds."""
    return [found[2] for found in _URL_PASSWORD.finditer(text)] if "://" in text else []


def is_maskable(value: str) -> bool:
    """Whether a secret is distinctive enough to be looked for in texts.

    Not: fewer than four characters (blanks do not count), fewer than eight when they are all digits (metrics would be
    torn apart), and plain words such as ``true`` or ``admin``. A caller that knows the secret's name should warn of
    one that is not.
    """
    solid = "".join(value.split())
    if len(solid) < MIN_LENGTH or _PLAIN_WORD.fullmatch(solid.lower()):
        return False
    return len(solid) >= _MIN_DIGITS or not solid.isdigit()


class Redactor:
    """Replaces secrets in whatever passes. Without secrets everything passes untouched, at no cost."""

    def __init__(self, secrets: Iterable[str]) -> None:
        found = {form for secret in secrets if is_maskable(secret) for form in forms(secret)}
        # Blanks in the middle of a short form are more likely two words than a wrapped secret.
        finders = (
            _Finder(b" \t\v\f\r\n", [form for form in found if len(form) >= _SHORT]),
            _Finder(b"\r\n", [form for form in found if len(form) < _SHORT]),
        )
        self._finders = tuple(finder for finder in finders if finder.patterns)
        self._patience = max((finder.patience for finder in self._finders), default=0)

    def text(self, text: str) -> str:
        """``text`` with every secret replaced by ``***``."""
        if not self._finders:
            return text
        data = text.encode("utf-8", "surrogatepass")
        masked = self.bytes(data)
        return text if masked is data else masked.decode("utf-8", "surrogatepass")

    def bytes(self, data: Data) -> Data:
        """``data`` with every secret replaced by ``***``."""
        return _masked(data, self._spans(data))

    def sink(self, output: Callable[[Data], None]) -> RedactingSink:
        """A callable for a byte stream in chunks that hands on to ``output`` what is safe, as soon as it is."""
        return RedactingSink(self, output)

    def split(self, data: Data) -> tuple[Data, Data]:
        """Masks the beginning of ``data`` and returns it with the rest, which could still become a secret."""
        if not self._finders:
            return data, b""
        spans = self._spans(data)
        hold = min(finder.open_start(data) for finder in self._finders)
        for start, end in spans:
            if start < hold < end:
                # One that is whole and may go on; without end (the same letter for ever) it is not waited for.
                hold = start if len(data) - start <= self._patience else end
        return _masked(data[:hold], [span for span in spans if span[1] <= hold]), data[hold:]

    def _spans(self, data: Data) -> list[tuple[int, int]]:
        """The places of all secrets, those that overlap taken as one."""
        merged: list[tuple[int, int]] = []
        for start, end in sorted(span for finder in self._finders for span in finder.spans(data)):
            if merged and start < merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        return merged


class RedactingSink:
    """Takes chunks of a stream, hands on what holds no secret. ``close()`` hands on the rest."""

    def __init__(self, redactor: Redactor, output: Callable[[bytes], None]) -> None:
        self._redactor = redactor
        self._output = output
        self._held = b""

    def __call__(self, data: bytes) -> None:
        safe, self._held = self._redactor.split(self._held + data)
        if safe:
            self._output(safe)

    def close(self) -> None:
        """Hands on what was held back: nothing more can make it a secret."""
        rest, self._held = self._redactor.bytes(self._held), b""
        if rest:
            self._output(rest)


def _masked(data: bytes, spans: Sequence[tuple[int, int]]) -> bytes:
    if not spans:
        return data
    pieces: list[bytes] = []
    position = 0
    for start, end in spans:
        pieces += [data[position:start], MASK.encode()]
        position = end
    return b"".join([*pieces, data[position:]])


class _Finder:
    """Looks for patterns in data from which the places where a line can be wrapped have been taken out.

    These are the given ``blanks``, and line ends that are escaped (backslash and ``n`` or ``r``) because a wrapped text
    was put into a string literal.
    """

    def __init__(self, blanks: bytes, patterns: Iterable[bytes]) -> None:
        self._blanks = blanks
        self._gap = re.compile(rb"(?:\\[nr]|[" + re.escape(blanks) + rb"])+")
        folded = {self._fold(pattern) for pattern in patterns}
        self.patterns = sorted(pattern for pattern in folded if len(pattern) >= MIN_LENGTH)
        # More gap than this between the first character of a secret and the end of the data is no wrapping any more.
        self.patience = 8 * max(map(len, self.patterns), default=0) + 4096

    def _fold(self, data: bytes) -> bytes:
        if b"\\" in data:
            data = data.replace(b"\\n", b"").replace(b"\\r", b"")
        return data.translate(None, self._blanks)

    def spans(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Where the patterns lie in ``data``: start and end."""
        folded = self._fold(data)
        places: Callable[[int], int] | None = None
        for pattern in self.patterns:
            at = folded.find(pattern)
            while at >= 0:
                places = places or self._places(data)
                yield places(at), places(at + len(pattern) - 1) + 1
                at = _next(folded, pattern, at)

    def _places(self, data: bytes) -> Callable[[int], int]:
        """A function from a place in the folded data to that in ``data``."""
        starts, offsets, removed = [0], [0], 0
        for gap in self._gap.finditer(data):
            starts.append(gap.start() - removed)
            removed += gap.end() - gap.start()
            offsets.append(removed)
        return lambda at: at + offsets[bisect_right(starts, at) - 1]

    def open_start(self, data: bytes) -> int:
        """The first place in ``data`` from which to its end a pattern may have begun; its length when there is none."""
        tail = data[-self.patience :]
        ends = [tail, tail[:-1]] if tail.endswith(b"\\") else [tail]
        return min(len(data) - len(tail) + self._open_start(end, len(tail)) for end in ends)

    def _open_start(self, tail: bytes, nowhere: int) -> int:
        folded = self._fold(tail)
        starts = [start for pattern in self.patterns if (start := _prefix_start(folded, pattern)) is not None]
        return self._places(tail)(min(starts)) if starts else nowhere


def _next(data: bytes, pattern: bytes, at: int) -> int:
    """The last occurrence that overlaps the one at ``at`` (no need to stop at those between), or else the next one."""
    overlapping = data.rfind(pattern, at + 1, at + 2 * len(pattern) - 1)
    return overlapping if overlapping >= 0 else data.find(pattern, at + len(pattern))


def _prefix_start(data: bytes, pattern: bytes) -> int | None:
    """Where ``data`` ends with a beginning of ``pattern``, the longest; None when it does not."""
    at = data.find(pattern[:1], max(0, len(data) - len(pattern) + 1))
    while at >= 0:
        if pattern.startswith(data[at:]):
            return at
        at = data.find(pattern[:1], at + 1)
    return None


def mask_argv(argv: Sequence[str], secrets: Iterable[str]) -> tuple[str, ...]:
    """A command line as it may be shown: values of ``secrets``, of options and variables with secret names, of members
    with secret names in JSON or Python literals, passwords in URLs and authorization headers are ``***``.
    """
    redactor = Redactor(secrets)
    masked: list[str] = []
    follows_secret = False
    for word in argv:
        # `docker build --secret id=NAME,env=NAME` names a secret and holds none.
        hidden = follows_secret and not word.startswith(("--", "id="))
        masked.append(MASK if hidden else redactor.text(_mask_word(word)))
        follows_secret = word.startswith("-") and "=" not in word and is_secret_name(word)
    return tuple(masked)


def secret_words(argv: Sequence[str]) -> list[str]:
    """The values that a command line gives to options and variables with secret names, and passwords in addresses.

    A reference to a variable (``$HF_TOKEN``) is none.
    """
    from madengine.core.shell import is_reference

    found = [password for word in argv for password in url_passwords(word)]
    for before, word in zip(["", *argv], argv, strict=False):
        if before.startswith("-") and "=" not in before and is_secret_name(before) and not word.startswith("--"):
            found.append(word)
        name, _, value = word.removeprefix("--env=").partition("=")
        if value and is_secret_name(name):
            found.append(value)
    return [value for value in found if not is_reference(value)]


def mask_command(text: str) -> str:
    """A command line in one text, as it stands in a card, without the secrets that it tells of itself."""
    from madengine.core.shell import rough_words

    return Redactor(secret_words(rough_words(text))).text(text)


def mask_text(text: str, secrets: Iterable[str]) -> str:
    """A text of unknown making, such as a traceback, as it may be shown.

    Besides ``secrets``, what stands in it under a secret's name or as the password of an address is masked wherever
    else it stands, too.
    """
    told = [member[4] for member in _MEMBER.finditer(text) if is_secret_name(member[3])]
    return Redactor([*secrets, *url_passwords(text), *map(_literal, told)]).text(_mask_word(text))


def _literal(text: str) -> str:
    """The text that a JSON or Python literal stands for."""
    import ast

    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
    return value if isinstance(value, str) else text


def _mask_word(word: str) -> str:
    assignment = _ASSIGNMENT.match(word)
    if assignment and is_secret_name(assignment[1]):
        return f"{assignment[1]}={MASK}"
    word = _MEMBER.sub(_mask_member, word)
    word = _URL_PASSWORD.sub(rf"\1{MASK}", word)
    word = _URL_TOKEN.sub(rf"\1{MASK}", word)
    word = _AUTHORIZATION.sub(rf"\1{MASK}", word)
    return _INNER_ASSIGNMENT.sub(lambda found: f"{found[1]}{MASK}" if is_secret_name(found[2]) else found[0], word)


def _mask_member(member: re.Match[str]) -> str:
    return f"{member[1]}{member[2]}{MASK}{member[2]}" if is_secret_name(member[3]) else member[0]
