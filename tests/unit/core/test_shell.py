"""core.shell: what is quoted comes back as it was, what is split is split as a shell would."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hostile import CANARY, HOSTILE, canaries

from madengine.core.errors import ConfigurationError
from madengine.core.shell import expand, is_reference, quote, rough_words, split_words

Shell = Callable[[str], bytes]


@pytest.fixture(params=["bash", "sh"])
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Shell:
    """Runs a script in a real shell, in a folder deep enough that a canary beside or above it is seen."""
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    if not shutil.which(request.param):
        pytest.skip(f"no {request.param} on this machine")

    def run(script: str) -> bytes:
        done = subprocess.run([request.param], input=script.encode(), cwd=folder, capture_output=True, check=True)
        assert done.stderr == b""
        assert canaries(folder) == []
        return done.stdout

    return run


def records(output: bytes) -> list[bytes]:
    return output.split(b"\0")[:-1]


def encoded(values: Sequence[str]) -> list[bytes]:
    return [value.encode() for value in values]


class TestTheCorpus:
    def test_has_at_least_300_different_strings_that_a_program_can_be_given(self) -> None:
        assert len(set(HOSTILE)) == len(HOSTILE) >= 300
        assert not any("\0" in value for value in HOSTILE)
        encoded(HOSTILE)

    def test_would_make_the_canary_when_nothing_is_quoted(self, tmp_path: Path) -> None:
        folder = tmp_path / "a" / "b"
        folder.mkdir(parents=True)
        attack = next(value for value in HOSTILE if value.startswith("$(touch"))
        subprocess.run(["bash", "-c", f"echo {attack}"], cwd=folder, check=True, capture_output=True)
        assert canaries(folder) == [folder / CANARY]


class TestQuote:
    def test_every_hostile_string_comes_back_byte_equal_as_a_word(self, shell: Shell) -> None:
        output = shell("printf '%s\\0' " + " ".join(map(quote, HOSTILE)))
        assert records(output) == encoded(HOSTILE)

    def test_in_an_assignment(self, shell: Shell) -> None:
        output = shell("".join(f"export X={quote(value)}\nprintf '%s\\0' \"$X\"\n" for value in HOSTILE))
        assert records(output) == encoded(HOSTILE)

    def test_inside_a_quoted_command(self, shell: Shell) -> None:
        command = "printf '%s\\0' " + " ".join(map(quote, HOSTILE))
        assert records(shell(f"eval {quote(command)}")) == encoded(HOSTILE)

    def test_in_a_here_document_script_of_a_child(self, shell: Shell) -> None:
        values = [value for value in HOSTILE if "EOF" not in value]
        command = "printf '%s\\0' " + " ".join(map(quote, values))
        assert records(shell(f"sh <<'EOF'\n{command}\nEOF\n")) == encoded(values)

    def test_the_corpus_in_one_bash_command_line(self, tmp_path: Path) -> None:
        script = "printf '%s\\0' " + " ".join(map(quote, HOSTILE))
        done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, check=True)
        assert records(done.stdout) == encoded(HOSTILE)
        assert canaries(tmp_path) == []

    @pytest.mark.parametrize(
        ("value", "word"),
        [
            ("", "''"),
            ("plain-1.2_x/y:z", "plain-1.2_x/y:z"),
            ("a b", "'a b'"),
            ("it's", "'it'\"'\"'s'"),
            ("~", "'~'"),
            ("$HOME", "'$HOME'"),
            ("a\nb", "'a\nb'"),
            ("ä", "'ä'"),
            (Path("/a b"), "'/a b'"),
            (8, "8"),
            (-1, "-1"),
        ],
    )
    def test_the_word(self, value: str | int | Path, word: str) -> None:
        assert quote(value) == word

    def test_a_number_is_written_as_a_number(self) -> None:
        assert quote(0) == "0"

    def test_a_nul_byte_is_refused_with_its_reason(self) -> None:
        with pytest.raises(ConfigurationError) as caught:
            quote("secret\0value")
        assert str(caught.value) == "a value with a NUL byte cannot be given to a shell (remove the NUL byte)"

    @pytest.mark.parametrize("value", ["\ud800", "a\udfffb", "\U0001f642\ud83d"])
    def test_an_unpaired_surrogate_is_refused_with_its_reason(self, value: str) -> None:
        with pytest.raises(ConfigurationError) as caught:
            quote(value)
        assert str(caught.value) == (
            "a value with an unpaired surrogate (half of a character) cannot be given to a shell "
            "(write the value as plain UTF-8 text)"
        )

    def test_a_file_name_that_is_not_utf8_goes_through(self) -> None:
        name = b"caf\xe9 x".decode("utf-8", "surrogateescape")
        assert quote(name).encode("utf-8", "surrogateescape") == b"'caf\xe9 x'"

    @pytest.mark.parametrize("value", [None, b"bytes", 1.5, ["a"]])
    def test_what_is_no_text_is_a_mistake_of_the_caller_or_bytes(self, value: object) -> None:
        with pytest.raises(TypeError):
            quote(value)  # type: ignore[arg-type]

    @given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
    def test_our_own_splitting_reads_it_back(self, value: str) -> None:
        assert split_words(quote(value)) == (value,)


class TestExpand:
    ENVIRONMENT = {"A": "1", "HOME_2": "/h ome", "_x": "u", "EMPTY": "", "NEST": "$A ${A} $(date)", "Ä": "no"}  # noqa: RUF012

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("", ""),
            ("$A", "1"),
            ("${A}", "1"),
            ("a${A}b", "a1b"),
            ("$A$A${A}", "111"),
            ("$HOME_2/x", "/h ome/x"),
            ("$_x-", "u-"),
            ("[$EMPTY]", "[]"),
            ("$NEST", "$A ${A} $(date)"),
            ("$A.b", "1.b"),
            ("$Aä", "1ä"),
            ("\\$A", "\\1"),
            ("'$A'", "'1'"),
            ("$$A", "$1"),
            ("{$A}", "{1}"),
        ],
    )
    def test_names(self, text: str, expected: str) -> None:
        assert expand(text, self.ENVIRONMENT) == (expected, ())

    @pytest.mark.parametrize(
        "text",
        [
            "$", "$$", "${", "${}", "$1", "${1}", "$(A)", "`$`", "${A:-x}", "${A", "$ A", "${ A}", "${A }", "$-A",
            "${!A}", "${#A}", "$[1]", "$((1))", "$Ä", "${Ä}", "${A.b}", "A", "%A%", "~", "*", "a'b\"c\\d\ne",
        ],
    )  # fmt: skip
    def test_everything_else_stays(self, text: str) -> None:
        assert expand(text, self.ENVIRONMENT) == (text, ())

    def test_unset_names_are_told_once_each_in_order_and_give_nothing(self) -> None:
        assert expand("$Z-${Y}-$Z-$A", self.ENVIRONMENT) == ("--" + "-1", ("Z", "Y"))

    def test_hostile_text_without_the_two_forms_comes_back_byte_equal(self) -> None:
        plain = [value for value in HOSTILE if not re.search(r"\$\{?[A-Za-z_]", value)]
        assert len(plain) > 300
        assert [expand(value, {})[0] for value in plain] == plain

    def test_hostile_values_are_put_in_as_they_are(self) -> None:
        assert [expand("<${X}>", {"X": value}) for value in HOSTILE] == [(f"<{value}>", ()) for value in HOSTILE]


class TestSplitWords:
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("", ()),
            (" \t\n ", ()),
            ("a", ("a",)),
            (" a  b\tc\nd ", ("a", "b", "c", "d")),
            ("-e 'A=b c' --x", ("-e", "A=b c", "--x")),
            ("''", ("",)),
            ('"" a', ("", "a")),
            ("a'b c'd", ("ab cd",)),
            ("a\"b c\"'d e'f", ("ab cd ef",)),
            ("'a\\b'", ("a\\b",)),
            (r"a\ b", ("a b",)),
            (r"\'a\"", ("'a\"",)),
            (r'"a\"b"', ('a"b',)),
            (r'"a\\b"', ("a\\b",)),
            (r'"a\$b\`c"', ("a$b`c",)),
            (r'"a\nb\x"', (r"a\nb\x",)),
            ('"it\'s"', ("it's",)),
            ("'say \"x\"'", ('say "x"',)),
            ("a\\\nb", ("ab",)),
            ("a \\\n b", ("a", "b")),
            ("\\\n", ()),
            ('"a\\\nb"', ("ab",)),
            ("'a\\\nb'", ("a\\\nb",)),
            ("'' ''", ("", "")),
            ("a;b | c # d & $(e) $X ~ *", ("a;b", "|", "c", "#", "d", "&", "$(e)", "$X", "~", "*")),
            ("a\u00a0b\rc", ("a\u00a0b\rc",)),
            ("'multi\nline'", ("multi\nline",)),
        ],
    )
    def test_words(self, text: str, words: tuple[str, ...]) -> None:
        assert split_words(text) == words

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("a 'b", "the text has a single quote that is never closed (character 3)"),
            ('"', "the text has a double quote that is never closed (character 1)"),
            ('ab"c\\"', "the text has a double quote that is never closed (character 3)"),
            ("'a' 'b", "the text has a single quote that is never closed (character 5)"),
            ("ab\\", "the text ends with a backslash that escapes nothing (character 3)"),
        ],
    )
    def test_what_is_not_closed_is_an_error_that_says_where_and_not_what(self, text: str, reason: str) -> None:
        with pytest.raises(ConfigurationError) as caught:
            split_words(text)
        assert caught.value.message == reason
        assert caught.value.hint == "close the quote, or put a backslash before it when it is meant literally"

    def test_quoted_hostile_words_come_back_byte_equal(self) -> None:
        assert split_words(" ".join(map(quote, HOSTILE))) == HOSTILE

    def test_splits_like_bash(self) -> None:
        """Random texts of quotes, backslashes and blanks against the real thing; operators and ``$`` are ours alone."""
        pick = random.Random(20260101)
        tokens = [
            "a",
            "b c",
            " ",
            "\t",
            "'",
            '"',
            "'x y'",
            '"z  w"',
            "\\\\",
            "\\'",
            '\\"',
            "\\ ",
            "\\\n",
            "\\a",
            "\\$",
            "=",
            "''",
        ]
        texts = ["".join(pick.choices(tokens, k=pick.randint(1, 9))) for _ in range(3000)]
        ours = {}
        for text in texts:
            try:
                ours[text] = split_words(text)
            except ConfigurationError:
                continue
        assert len(ours) > 500
        script = "p() { printf '%s\\001' $# \"$@\"; printf '\\0'; }\n" + "".join(f"p {text}\n" for text in ours)
        done = subprocess.run(["bash", "--norc"], input=script.encode(), capture_output=True, check=True)
        theirs = [tuple(record.decode().split("\1")[1:-1]) for record in records(done.stdout)]
        assert theirs == list(ours.values())

    @given(st.text("ab '\"\\\n$", max_size=30))
    def test_any_text_is_words_or_a_configuration_error(self, text: str) -> None:
        try:
            words = split_words(text)
        except ConfigurationError:
            return
        assert split_words(" ".join(map(quote, words))) == words


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("$A", True),
        ("${A_1}", True),
        ("", False),
        ("pa$$word", False),
        ("${A}x", False),
        ("$A$B", False),
        ("$1", False),
    ],
)
def test_a_reference_is_one_name_and_nothing_else(text: str, is_one: bool) -> None:
    assert is_reference(text) is is_one


@pytest.mark.parametrize(("text", "words"), [("a 'b c'", ("a", "b c")), ("a 'b c", ("a", "'b", "c")), ("", ())])
def test_words_of_what_may_be_no_command_line(text: str, words: tuple[str, ...]) -> None:
    assert rough_words(text) == words
