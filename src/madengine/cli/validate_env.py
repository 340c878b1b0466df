"""What is wrong with an env file, found without running any of it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from madengine.core.documents import BYTE_ORDER_MARK, printable
from madengine.schemas.problems import Problem
from madengine.schemas.unfilled import templates_in

SYNTAX_TIMEOUT = 10.0  # seconds for bash to read the file

_BASH_ERROR = re.compile(r"^[^\n]*?line (\d+): ([^\n]*)", re.MULTILINE)
_QUOTED_OR_COMMENT = re.compile(r"""'[^'\n]*'|"(?:[^"\\\n]|\\.)*"|\\.|(?P<comment>(?:^|(?<=[\s;&|]))\#[^\n]*)""", re.M)


def env_file_problems(text: str) -> list[Problem]:
    """Template values, line ends of another system, and what bash says about the syntax."""
    problems = list(_templates(text))
    if text.startswith(BYTE_ORDER_MARK):
        message = "the file begins with a byte-order mark: bash takes it for a part of the first command"
        problems.append(Problem("error", "byte-order-mark", "", 1, message, "save it as UTF-8 without a mark"))
    if "\r\n" in text:
        line = text.count("\n", 0, text.index("\r\n")) + 1
        message = "lines end with CR LF: bash takes the CR as part of each value"
        problems.append(Problem("error", "line-ends", "", line, message, "convert the file: sed -i 's/\\r$//' FILE"))
    if not problems:  # a template value reads as a redirection, so bash's opinion would be about something else
        problems += _syntax(text)
    return problems


def _templates(text: str) -> Iterator[Problem]:
    for number, line in enumerate(_without_comments(text).split("\n"), 1):
        for template in templates_in(line):
            message = f"the template value {template} is not filled in; bash would take it for a redirection"
            yield Problem("error", "unfilled-template", "", number, message, "fill it in, or remove the line")


def _without_comments(text: str) -> str:
    return _QUOTED_OR_COMMENT.sub(lambda found: "" if found.group("comment") else found.group(), text)


def _syntax(text: str) -> Iterator[Problem]:
    """bash reads the file without executing it; its own start-up files are left out."""
    from madengine.core.env_text import masked_message
    from madengine.core.process import run

    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    answer = run(["bash", "--norc", "--noprofile", "-n"], input=text, env=environment, timeout=SYNTAX_TIMEOUT)
    if answer.exit_code == 0:
        return
    said = masked_message(answer.stderr, text, os.environ)  # bash quotes the line, which may hold a token
    found = _BASH_ERROR.search(said)
    reason = found.group(2) if found else said.strip() or "bash could not read it"
    yield Problem("error", "syntax", "", int(found.group(1)) if found else None, printable(reason))
