"""core.redact: a secret gets out in no form, through no chunk boundary, and nothing else is lost."""

from __future__ import annotations

import base64
import html
import json
import random
import re
import shlex
import textwrap
import time
import urllib.parse

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hostile import HOSTILE

from madengine.core.redact import (
    Redactor,
    is_maskable,
    is_secret_name,
    mask_argv,
    mask_text,
    secret_values,
    secret_words,
)

CANARY = "hf_CaNaRy/0+wZ'q\"x\\n9&$<é>Tail"
PLAIN = "hf_abcdefGHIJKLmnop0123456789"
PEM = (
    "-----BEGIN PRIVATE KEY-----\n"
    + "\n".join(textwrap.wrap(base64.b64encode(random.Random(7).randbytes(400)).decode(), 64))
    + "\n-----END PRIVATE KEY-----\n"
)

FORMS = {
    "as it is": lambda s: s,
    "base64": lambda s: base64.b64encode(s.encode()).decode(),
    "base64 behind one byte": lambda s: base64.b64encode(b"u" + s.encode()).decode(),
    "base64 behind two bytes": lambda s: base64.b64encode(b"u:" + s.encode()).decode(),
    "base64 in the middle": lambda s: base64.b64encode(f"name:{s}@host".encode()).decode(),
    "base64 for URLs": lambda s: base64.urlsafe_b64encode(s.encode()).decode(),
    "base64 with a newline": lambda s: base64.b64encode(f"{s}\n".encode()).decode(),
    "base64 in lines": lambda s: base64.encodebytes(b"x" * 50 + s.encode()).decode(),
    "JSON": lambda s: json.dumps({"a": s}),
    "JSON in UTF-8": lambda s: json.dumps({"a": s}, ensure_ascii=False),
    "JSON in JSON": lambda s: json.dumps(json.dumps({"a": s})),
    "repr": repr,
    "repr of bytes": lambda s: repr(s.encode()),
    "URL": lambda s: "https://x/?t=" + urllib.parse.quote(s, safe=""),
    "URL path": urllib.parse.quote,
    "URL in lower case": lambda s: re.sub("%..", lambda code: code[0].lower(), urllib.parse.quote(s, safe="")),
    "URL in JavaScript": lambda s: urllib.parse.quote(s, safe="!*'()"),
    "form": urllib.parse.quote_plus,
    "HTML": html.escape,
    "shell": shlex.quote,
    "bash trace": lambda s: "'" + s.replace("'", "'\\''") + "'",
    "CSV": lambda s: '"' + s.replace('"', '""') + '"',
    "hex": lambda s: s.encode().hex(),
}  # fmt: skip


class TestForms:
    @pytest.mark.parametrize("form", FORMS)
    @pytest.mark.parametrize("secret", [PLAIN, "pass word-1234"])
    def test_every_form_is_masked(self, form: str, secret: str) -> None:
        shown = FORMS[form](secret)
        masked = Redactor([secret]).text(f"before {shown} after")
        assert masked.startswith("before ")
        assert masked.endswith(" after")
        assert "***" in masked
        assert shown not in masked
        assert secret not in masked

    @pytest.mark.parametrize("form", FORMS)
    def test_every_form_of_a_secret_full_of_special_characters_is_masked(self, form: str) -> None:
        masked = Redactor([CANARY]).text(f"<{FORMS[form](CANARY)}>")
        assert "***" in masked
        for piece in ("CaNaRy", "Tail", "wZ", base64.b64encode(CANARY.encode()).decode()[4:16], CANARY.encode().hex()):
            assert piece not in masked

    @pytest.mark.parametrize("form", ["as it is", "base64", "hex"])
    @pytest.mark.parametrize("end", ["\n", "\r\n", "\n    ", " \n\t", "\\n"])
    def test_a_hard_wrap_at_any_column_hides_nothing(self, form: str, end: str) -> None:
        redactor = Redactor([PLAIN])
        shown = FORMS[form](PLAIN)
        for width in range(1, len(shown) + 1):
            wrapped = end.join(shown[i : i + width] for i in range(0, len(shown), width))
            masked = redactor.text(f"<{wrapped}>")
            assert "***" in masked
            assert len(masked) < 18, (width, masked)

    def test_the_surroundings_stay_byte_for_byte(self) -> None:
        assert (
            Redactor([PLAIN]).bytes(b"\xff\x00a " + PLAIN.encode() + b"\r\n\x1b[0m\xfe")
            == b"\xff\x00a ***\r\n\x1b[0m\xfe"
        )

    def test_whole_output_of_a_plain_secret(self) -> None:
        assert Redactor([PLAIN]).text(f"token={PLAIN}, again {PLAIN}{PLAIN}!") == "token=***, again ******!"

    def test_lines_of_a_key_in_pem_form_are_masked_one_by_one(self) -> None:
        lines = PEM.splitlines()
        redactor = Redactor([PEM])
        assert redactor.text(f"x\n{PEM}y") == "x\n***\ny"
        assert redactor.text(f"x {lines[3]} y") == "x *** y"
        assert redactor.text("\n".join(reversed(lines))) == "\n".join(
            [lines[-1], *["***"] * (len(lines) - 2), lines[0]]
        )
        assert "***" in redactor.text(json.dumps(PEM))
        assert not any(line in redactor.text(json.dumps(PEM)) for line in lines[1:-1])

    def test_secrets_that_overlap_are_masked_together(self) -> None:
        redactor = Redactor(["abcdefgh", "efghijkl"])
        assert redactor.text("<abcdefghijkl>") == "<***>"

    def test_a_secret_that_begins_another_hides_both(self) -> None:
        assert Redactor(["abcd1234", "abcd1234efgh5678"]).text("abcd1234 abcd1234efgh5678.") == "*** ***."

    def test_blanks_around_a_secret_do_not_hide_it(self) -> None:
        assert Redactor([f"  {PLAIN}\n"]).text(PLAIN) == "***"

    def test_a_secret_that_is_not_utf8_is_found_in_bytes_and_in_text(self) -> None:
        secret = b"caf\xe9-secret".decode("utf-8", "surrogateescape")
        assert Redactor([secret]).bytes(b"<caf\xe9-secret>") == b"<***>"
        assert Redactor([secret]).text(f"<{secret}>") == "<***>"

    def test_a_secret_may_be_any_hostile_string(self) -> None:
        secrets = [value for value in HOSTILE if is_maskable(value)]
        assert len(secrets) > 250
        for secret in secrets:
            for shown in (secret, json.dumps(secret), repr(secret), secret.encode().hex()):
                masked = Redactor([secret]).text(f"({shown})")
                assert "***" in masked
                assert secret.strip() not in masked

    def test_half_characters_in_a_text_survive(self) -> None:
        assert Redactor([PLAIN]).text(f"\ud800{PLAIN}\udc80") == "\ud800***\udc80"

    def test_without_secrets_everything_is_passed_on_itself(self) -> None:
        text, data = "x" * 100, b"y" * 100
        assert Redactor([]).text(text) is text
        assert Redactor([]).bytes(data) is data
        assert Redactor([PLAIN]).text(text) is text


class TestWhatIsMaskable:
    @pytest.mark.parametrize(
        "value",
        [
            "",
            "1",
            "abc",
            "true",
            "None",
            "  true\n",
            "12345",
            "1234567",
            "admin",
            "localhost",
            " \n ",
            "a b c",
            "a\n\n\nb",
        ],
    )
    def test_trivial_values_do_not_tear_a_log_apart(self, value: str) -> None:
        assert not is_maskable(value)
        text = "true 1234567 abc 12345.1 admin None localhost"
        assert Redactor([value]).text(text) == text

    @pytest.mark.parametrize("value", ["s3cr", "pässe", "12345678", "hunter2", "changeit", "a b c d"])
    def test_the_rest_is_masked(self, value: str) -> None:
        assert is_maskable(value)
        assert Redactor([value]).text(f"<{value}>") == "<***>"

    def test_a_short_secret_is_not_seen_in_two_words_but_over_a_line_end(self) -> None:
        redactor = Redactor(["tome1"])
        assert redactor.text("to me1") == "to me1"
        assert redactor.text("to\nme1") == "***"


class TestSink:
    @staticmethod
    def pass_through(redactor: Redactor, chunks: list[bytes]) -> list[bytes]:
        out: list[bytes] = []
        sink = redactor.sink(out.append)
        for chunk in chunks:
            sink(chunk)
        sink.close()
        return out

    def test_any_chunk_boundary_hides_nothing(self) -> None:
        redactor = Redactor([PLAIN, CANARY])
        data = (
            f"a {PLAIN} b {CANARY} {base64.b64encode(PLAIN.encode()).decode()}\n{PLAIN[:9]}\n{PLAIN[9:]} end".encode()
        )
        whole = redactor.bytes(data)
        assert re.fullmatch(rb"a \*\*\* b \*\*\* \*\*\*\w?=*\n\*\*\* end", whole)
        for cut in range(len(data) + 1):
            assert b"".join(self.pass_through(redactor, [data[:cut], data[cut:]])) == whole
        assert b"".join(self.pass_through(redactor, [data[i : i + 1] for i in range(len(data))])) == whole

    def test_what_can_be_no_secret_is_handed_on_at_once(self) -> None:
        out: list[bytes] = []
        sink = Redactor([PLAIN]).sink(out.append)
        sink(b"step 1 of 3.\n")
        assert out == [b"step 1 of 3.\n"]
        sink(b"token hf_abc")
        assert out[1:] == [b"token "]
        sink(b"x\n")
        assert b"".join(out[2:]) == b"hf_abcx\n"

    def test_close_hands_on_the_rest_once(self) -> None:
        out: list[bytes] = []
        sink = Redactor([PLAIN]).sink(out.append)
        sink(b"hf_")
        sink.close()
        sink.close()
        assert out == [b"hf_"]

    def test_an_escaped_line_end_cut_in_two_hides_nothing(self) -> None:
        redactor = Redactor([PLAIN])
        chunks = [f"<{PLAIN[:7]}\\".encode(), f"n{PLAIN[7:]}>".encode()]
        assert b"".join(self.pass_through(redactor, chunks)) == b"<***>"

    def test_a_full_secret_that_may_be_the_beginning_of_a_longer_one_waits(self) -> None:
        redactor = Redactor(["abcd1234", "abcd1234efgh5678"])
        assert b"".join(self.pass_through(redactor, [b"<abcd1234", b"efgh", b"5678>"])) == b"<***>"
        assert b"".join(self.pass_through(redactor, [b"<abcd1234", b"efgh", b"x>"])) == b"<***efghx>"

    def test_a_secret_whose_end_begins_another_keeps_both_hidden(self) -> None:
        redactor = Redactor(["abcdefgh", "efghijkl"])
        assert b"".join(self.pass_through(redactor, [b"<abcdefgh", b"ijkl>"])) == b"<***>"

    @given(
        st.lists(st.sampled_from([PLAIN, PLAIN[:5], PLAIN[5:], "\n", "\\n", "x", "h", "\\", "aGZf", " "]), max_size=12),
        st.data(),
    )
    def test_chunked_is_the_same_as_whole(self, pieces: list[str], data: st.DataObject) -> None:
        redactor = Redactor([PLAIN])
        text = "".join(pieces).encode()
        cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=4)))
        chunks = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        assert b"".join(self.pass_through(redactor, chunks)) == redactor.bytes(text)

    @pytest.mark.parametrize("filler", [b"\n", b" ", b"x", b"a", b"h\n", b"\\n"])
    def test_memory_is_bounded_whatever_comes(self, filler: bytes) -> None:
        sink = Redactor(["aaaaaaaa", PLAIN]).sink(lambda _: None)
        chunk = filler * (65536 // len(filler))
        sink(b"hf_abc")
        for _ in range(4):
            sink(chunk)
            assert len(sink._held) < 8192

    def test_a_log_of_many_megabytes_passes_fast(self) -> None:
        line = b"iteration 1234 | loss 2.345E+00 | tokens/s 98765.4 | lr 1.0e-5 | grad norm 0.123\n"
        chunk = (line * 800)[:65536]
        sink = Redactor([PLAIN, CANARY]).sink(lambda _: None)
        began = time.perf_counter()
        for _ in range(160):
            sink(chunk)
        assert 10 / (time.perf_counter() - began) > 20, "MB/s, a tenth of what it should be"


class TestSecretNames:
    @pytest.mark.parametrize(
        "name",
        [
            "MAD_SECRETS_HFTOKEN", "MAD_SECRETS_x", "HF_TOKEN", "TOKEN", "HFTOKEN", "GITHUB_TOKEN", "DB_PASSWORD",
            "PASSWORD",
            "password", "--password", "PGPASSWORD", "CLIENT_SECRET", "secret", "API_KEY", "--api-key", "apiKey",
            "OPENAI_API_KEY",
            "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY", "SSH_PRIVATE_KEY", "APIKEY", "WANDB_KEY", "MYSQL_PWD",
            "SMTP_PASS", "GH_PAT",
            "DOCKER_AUTH_CONFIG", "AWS_CREDENTIALS", "accessToken", "PASSPHRASE", "mad.dockerhub.password",
            "Authorization",
        ],
    )  # fmt: skip
    def test_a_secret_by_its_name(self, name: str) -> None:
        assert is_secret_name(name)

    @pytest.mark.parametrize(
        "name",
        [
            "", "HOME", "PWD", "OLDPWD", "KEY", "PATH", "MAX_TOKENS", "TOKENIZER", "TOKENIZERS_PARALLELISM",
            "TOKEN_COUNT", "PUBLIC_KEY",
            "SSH_AUTH_SOCK", "KEYBOARD", "PASSENGERS", "SECRETARY", "SSH_KEY_FILE", "AWS_ACCESS_KEY_ID",
            "--password-stdin", "NCCL_IB_PKEY",
            "credentials_required", "runtime_secret_name", "MONKEY",
        ],
    )  # fmt: skip
    def test_no_secret_by_its_name(self, name: str) -> None:
        assert not is_secret_name(name)

    def test_the_values_of_an_environment_that_are_secret(self) -> None:
        environment = {"A_TOKEN": "one", "HOME": "/h", "B_PASSWORD": "two", "C_TOKEN": "one", "D_SECRET": ""}
        assert secret_values(environment) == ("one", "two")

    def test_the_password_of_an_address_is_a_secret_under_any_name(self) -> None:
        environment = {"DATABASE": "postgres://me:pass@word@host/db", "PAGE": "https://host:80/a@b", "TIME": "12:30@x"}
        assert secret_values(environment) == ("pass@word",)

    @pytest.mark.parametrize(
        ("argv", "found"),
        [
            (["--hf-token", "one", "--size", "2"], ["one"]),
            (["-e", "HF_TOKEN=one", "--env=API_KEY=two", "--password=three"], ["one", "two", "three"]),
            (["-e", "HF_TOKEN", "--token", "$HF_TOKEN", "--api-key=${KEY}", "--token", "--next"], []),
            (["https://me:four@host/x", "--max-tokens", "7", "-"], ["four"]),
        ],
    )
    def test_a_command_line_tells_its_secrets(self, argv: list[str], found: list[str]) -> None:
        assert secret_words(argv) == found

    def test_a_traceback_gives_nothing_away_that_it_names_itself(self) -> None:
        text = """broken by {'API_KEY': 'one"two', 'B': 'x one"two'} with amqp://u:three4@h and three4"""
        assert mask_text(text, ["four5"]) == "broken by {'API_KEY': '***', 'B': 'x ***'} with amqp://u:***@h and ***"


class TestMaskArgv:
    @pytest.mark.parametrize(
        ("argv", "expected"),
        [
            (["run", "--tags", "x"], ["run", "--tags", "x"]),
            (["-e", "HF_TOKEN=abc def", "-e", "A=1"], ["-e", "HF_TOKEN=***", "-e", "A=1"]),
            (["-eHF_TOKEN=abc"], ["-eHF_TOKEN=***"]),
            (["--build-arg=HF_TOKEN=abc"], ["--build-arg=HF_TOKEN=***"]),
            (["--export=ALL,HF_TOKEN=abc,X=1"], ["--export=ALL,HF_TOKEN=***,X=1"]),
            (["--password", "abc", "next"], ["--password", "***", "next"]),
            (["--api-key=abc"], ["--api-key=***"]),
            (["--api-key="], ["--api-key="]),
            (["--password", "--verbose"], ["--password", "--verbose"]),
            (["--password", "-x"], ["--password", "***"]),
            (["--password-stdin", "host"], ["--password-stdin", "host"]),
            (["--secret", "id=A_TOKEN,env=A_TOKEN"], ["--secret", "id=A_TOKEN,env=A_TOKEN"]),
            (["password", "x"], ["password", "x"]),
            (["mongodb://u:p@ss@h:1/db"], ["mongodb://u:***@h:1/db"]),
            (["redis://:pw@h"], ["redis://:***@h"]),
            (["https://ghp_abc@github.com/x.git"], ["https://***@github.com/x.git"]),
            (["ssh://git@github.com/x.git"], ["ssh://git@github.com/x.git"]),
            (["https://h/?token=abc&x=1"], ["https://h/?token=***&x=1"]),
            (["Authorization: Bearer abc"], ["Authorization: Bearer ***"]),
            (
                ['{"docker_env_vars": {"A_TOKEN": "a\\"b", "B": "c"}}'],
                ['{"docker_env_vars": {"A_TOKEN": "***", "B": "c"}}'],
            ),
            (["{'env': {'A_PASSWORD': 'x', 'n': 1}}"], ["{'env': {'A_PASSWORD': '***', 'n': 1}}"]),
            (['{"api_key": 123, "n": 1}'], ['{"api_key": "***", "n": 1}']),
            (["bash", "-c", "x; HF_TOKEN='a b' run"], ["bash", "-c", "x; HF_TOKEN=*** run"]),
            (["x" + PLAIN + "y"], ["x***y"]),
        ],
    )
    def test_what_may_be_shown(self, argv: list[str], expected: list[str]) -> None:
        assert mask_argv(argv, [PLAIN]) == tuple(expected)
