"""Reading documents: strict, quick, and with a sentence that names the file and the line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from madengine.core import documents
from madengine.core.errors import ConfigurationError

# Reads one document in a process of its own and reports the error, the seconds and the peak memory of it.
CHILD = """
import sys, time
from madengine.core.documents import load_json
from madengine.core.errors import ConfigurationError
start = time.perf_counter()
try:
    load_json(sys.argv[1], what="manifest")
    print("accepted")
except ConfigurationError as error:
    print(error)
seconds = time.perf_counter() - start
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(seconds, int(peak) / 1024, file=sys.stderr)
"""

BOMBS: dict[str, Callable[[], str | bytes]] = {
    "lists 100,000 deep": lambda: "[" * 100_000 + "]" * 100_000,
    "objects 100,000 deep": lambda: '{"a":' * 100_000 + "1" + "}" * 100_000,
    "lists without an end": lambda: "[" * 500_000,
    "an object with a million keys": lambda: "{" + ",".join(f'"key{n}":{n}' for n in range(1_000_000)) + "}",
    "as many keys as are read, and one of them twice": lambda: (
        "{" + ",".join(f'"key{n}":{n}' for n in range(documents.MAX_VALUES - 3)) + ',"key0":1}'
    ),
    "a string of backslashes": lambda: '["' + "\\" * 10_000_001 + '"]',
    "a string without an end": lambda: '["' + "x" * 16_000_000,
    "blanks": lambda: " " * 16_000_000,
    "quotes": lambda: '"' * 16_000_000,
    "an integer of a million digits": lambda: '{"a": ' + "9" * 1_000_000 + "}",
    "a number of a million digits": lambda: '{"a": ' + "9" * 1_000_000 + ".5}",
    "deep behind a large document": lambda: "[" + "{}," * 300_000 + "[" * 200_000 + "]" * 200_001,
    "many characters of four bytes": lambda: '["' + "\N{GRINNING FACE}" * 4_000_000 + '"',
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_ends_in_one_line_within_a_second_and_200_mib(name: str, tmp_path: Path) -> None:
    content = BOMBS[name]()
    path = tmp_path / "bomb.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    child = subprocess.run([sys.executable, "-c", CHILD, str(path)], capture_output=True, text=True, check=True)
    seconds, peak = (float(word) for word in child.stderr.split())
    assert child.stdout.startswith(str(path))
    assert child.stdout.count("\n") == 1
    assert len(child.stdout) < 600
    assert seconds < 1.5  # a second on a machine that does nothing else
    assert peak < 200


def test_a_file_of_200_mb_is_refused_by_its_size(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    with path.open("wb") as stream:
        stream.truncate(200 * 1024 * 1024)
    started = time.perf_counter()
    with pytest.raises(ConfigurationError, match="209,715,200 bytes; at most"):
        documents.load_json(path, what="manifest")
    assert time.perf_counter() - started < 0.1


BROKEN = {
    "empty": (b"", "the manifest is empty"),
    "blank": (b" \r\n\t\n", "the manifest is empty"),
    "only a byte-order mark": (b"\xef\xbb\xbf", "the manifest is empty"),
    "truncated": (b'{\n "a": {\n  "b": 1', ":3:9: the manifest is not complete JSON: it ends inside an object"),
    "truncated in a string": (b'{\n "a": "b', ":2:7: the manifest is not complete JSON: it ends inside a string"),
    "trailing text": (b'{"a": 1}\n\nabc', ":3:1: the manifest goes on after the end of the JSON document with 'abc'"),
    "a missing comma": (b'{"a": 1\n"b": 2}', ":2:1: the manifest is not valid JSON: expected ',' delimiter"),
    "a comment": (b'{\n// hello\n"a": 1}', ":2:1: the manifest is not valid JSON"),
    "single quotes": (b"{'a': 1}", ":1:2: the manifest is not valid JSON: expected property name"),
    "a line end in a string": (b'{"a": "b\nc"}', ":1:9: the manifest is not valid JSON: invalid control character"),
    "a key twice": (b'{"a": {\n"x": 1,\n"x": 2}}', ':3: the key "x" stands twice in one object, first on line 2'),
    "a key twice, once escaped": (b'{"ab": 1, "a\\u0062": 2}', 'the key "ab" stands twice'),
    "NaN": (b'{"a": "NaN",\n"b": NaN}', ":2: NaN is not a JSON number"),
    "Infinity": (b"[\n\n-Infinity]", ":3: -Infinity is not a JSON number"),
    "a number that overflows": (b"[1,\n1e999]", ":2: 1e999 is a number beyond"),
    "a huge integer": (b"[1,\n" + b"9" * 5000 + b"]", ":2: 9999999999999999999999999999999999999... is an integer"),
    "half a surrogate pair": (b'{"a": 1,\n"b": "\\ud800"}', ":2: a string holds a NUL character or half"),
    "half a surrogate pair in a key": (b'{"\\uDC00": 1}', ":1: a string holds a NUL character or half"),
    "a NUL character": (b'{"a":\n\n"b\\u0000"}', ":3: a string holds a NUL character or half"),
    "UTF-16": ('{"a": 1}'.encode("utf-16"), "the manifest is UTF-16 or UTF-32, not UTF-8 text"),
    "UTF-16 without a mark": ('{"a": 1}'.encode("utf-16-le"), "the manifest is binary, not UTF-8 text"),
    "binary": (b"\x7fELF\0\0\1\2", "the manifest is binary, not UTF-8 text"),
    "latin-1": ('{"a": 1,\n"b": "\xe9"}'.encode("latin-1"), ":2: the manifest is not UTF-8 text: byte 0xe9"),
    "a surrogate in UTF-8": (b'"\xed\xa0\x80"', ":1: the manifest is not UTF-8 text"),
    "101 levels": (b"[" * 101 + b"]" * 101, "nested deeper than 100 levels"),
    "101 mixed levels": (b'[{"a":' * 60 + b"1" + b"}]" * 60, "nested deeper than 100 levels"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_document_is_refused_with_its_path_and_line(name: str, tmp_path: Path) -> None:
    content, message = BROKEN[name]
    path = tmp_path / "manifest.json"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError) as caught:
        documents.load_json(path, what="manifest")
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


FINE = {
    "a byte-order mark": (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
    "CRLF": (b'{\r\n"a": 1\r\n}\r\n', {"a": 1}),
    "a surrogate pair": (b'"\\ud83d\\ude00"', "\N{GRINNING FACE}"),
    "an escaped backslash before u0000": (b'"\\\\u0000"', "\\u0000"),
    "an escaped backslash before ud800": (b'"\\\\ud800"', "\\ud800"),
    "100 levels": (b"[" * 100 + b"]" * 100, None),
    "brackets in strings": (b'["' + b"[" * 5000 + b'", "{", "\\"[[[", "]\\\\"]', ["[" * 5000, "{", '"[[[', "]\\"]),
    "the largest 64-bit integers": (b"[9223372036854775807, -9223372036854775808]", [2**63 - 1, -(2**63)]),
    "the same key in two objects": (b'[{"a": 1}, {"a": 1}]', [{"a": 1}, {"a": 1}]),
    "a scalar": (b"1.5", 1.5),
}


@pytest.mark.parametrize("name", FINE)
def test_an_unusual_but_valid_document_is_read(name: str, tmp_path: Path) -> None:
    content, expected = FINE[name]
    path = tmp_path / "document.json"
    path.write_bytes(content)
    document = documents.load_json(path, what="manifest")
    assert document == expected or expected is None


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere\.json: there is no such file \(manifest\)"):
        documents.load_json(tmp_path / "nowhere.json", what="manifest")


def test_a_directory_is_named_as_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="the manifest is a directory, not a file"):
        documents.load_json(tmp_path, what="manifest")


@pytest.mark.parametrize("path", ["/dev/fd/{}", "/proc/self/fd/{}"])
def test_what_comes_through_a_pipe_that_a_person_named_is_read_until_its_end(path: str) -> None:
    reader, writer = os.pipe()
    with subprocess.Popen(["sh", "-c", "printf '[1,'; sleep 0.1; printf 2]"], stdout=writer):
        os.close(writer)
        assert documents.load_json(path.format(reader), what="manifest", pipes=True) == [1, 2]
    os.close(reader)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("sleep 5", "the manifest is a pipe, and nothing came through it within 0.1 s"),
        ("exec >&-; sleep 5", "the manifest is empty|is a pipe, and nothing came through it within 0.2 s"),
        ("printf '[1,'; sleep 5", "the manifest is a pipe, and nothing came through it within 0.1 s"),
        ("printf '[1,'", "is not complete JSON"),
        ("head -c 17000000 /dev/zero", "has more than 16,777,216 bytes"),
    ],
)
def test_a_pipe_that_gives_no_document_is_given_up(script: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "SILENCE", 0.1)
    monkeypatch.setattr(documents, "WRITER_WAIT", 0.2)
    reader, writer = os.pipe()
    child = subprocess.Popen(["sh", "-c", script], stdout=writer)
    os.close(writer)
    with pytest.raises(ConfigurationError, match=message):
        documents.load_json(f"/dev/fd/{reader}", what="manifest", pipes=True)
    child.kill()
    child.wait()
    os.close(reader)


def test_a_named_pipe_may_get_its_writer_later(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["sh", "-c", "sleep 0.1; echo [3] > pipe"], cwd=tmp_path):
        assert documents.load_json(tmp_path / "pipe", what="manifest", pipes=True) == [3]


def test_a_named_pipe_whose_writer_says_nothing_is_empty(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with (
        subprocess.Popen(["sh", "-c", "sleep 0.1; : > pipe"], cwd=tmp_path),
        pytest.raises(ConfigurationError, match="the manifest is empty"),
    ):
        documents.load_json(tmp_path / "pipe", what="manifest", pipes=True)


def test_a_named_pipe_without_a_writer_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "WRITER_WAIT", 0.1)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigurationError, match=r"is a pipe, and nothing came through it within 0\.1 s"):
        documents.load_json(tmp_path / "pipe", what="manifest", pipes=True)


def test_a_pipe_without_a_writer_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigurationError, match="the manifest is a pipe, not a file"):
        documents.load_json(tmp_path / "pipe", what="manifest")


@pytest.mark.parametrize("device", ["/dev/null", "/dev/zero"])
def test_a_device_is_refused(device: str) -> None:
    with pytest.raises(ConfigurationError, match="a socket or device"):
        documents.load_json(device, what="manifest")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_named(tmp_path: Path) -> None:
    path = tmp_path / "secret.json"
    path.write_text("{}")
    path.chmod(0)
    with pytest.raises(ConfigurationError, match="cannot be read: permission denied"):
        documents.load_json(path, what="manifest")


@pytest.mark.parametrize("path", ["a\0b", "x" * 5000, "file\nwith a line end", "\udcff"])
def test_an_impossible_path_is_an_error_of_one_printable_line(path: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        documents.read_text(path, what="manifest")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 600


def test_a_file_that_grows_beyond_the_limit_while_it_is_read_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="more than 10 bytes"):
        documents.read_text("/proc/self/status", what="manifest", limit=10)


def test_text_given_on_the_command_line_is_held_to_the_same_rules() -> None:
    with pytest.raises(ConfigurationError, match=r'^--additional-context:1: the key "a" stands twice'):
        documents.parse_json('{"a": 1, "a": 2}', source="--additional-context", what="context")


def test_text_with_a_lone_surrogate_from_the_command_line_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="the context is not text"):
        documents.parse_json('{"a": "\udcff"}', source="--additional-context", what="context")


def test_the_line_ends_of_a_text_are_kept(tmp_path: Path) -> None:
    (tmp_path / "mad.env").write_bytes(b"\xef\xbb\xbfA=1\r\nB=2\n")
    assert documents.read_text(tmp_path / "mad.env", what="env file") == "A=1\r\nB=2\n"


TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(JSON_VALUES, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_every_json_document_comes_back_as_it_was(value: object, indent: int | str | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert documents.parse_json(text, source="x", what="document") == value


@given(st.text(alphabet='{}[]":,\\ \n0123456789eEnulltruefalsNaNIfity\\uD800-.') | st.text())
def test_any_text_is_read_or_refused_in_one_line(text: str) -> None:
    try:
        documents.parse_json(text, source="x", what="document")
    except ConfigurationError as error:
        assert str(error).startswith("x")
        assert "\n" not in str(error)
