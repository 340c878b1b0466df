"""Strings that try to get out of wherever they are put: a shell, a path, an argv, a CSV file, an HTML page, a log.

``HOSTILE`` holds at least 300 different ones, the same in every run. Each is one that a program can be given (no NUL
byte, no unpaired surrogate) and that must come back byte-equal. Those that would run something make a file named
``CANARY`` in the current folder or near it: after a test there must be none, see :func:`canaries`.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

CANARY = "madengine_canary"

_TOUCH = f"touch {CANARY}"

_FRAMES = (
    "{}", "a{}", "{}b", "a {} b", "'{}'", '"{}"', "';{};'", '";{};"', "\n{}\n", "x\\{}", "--flag={}", "k={}",
)  # fmt: skip

_RUNS = (
    f"$({_TOUCH})", f"`{_TOUCH}`", f";{_TOUCH};", f"|{_TOUCH}", f"&{_TOUCH}&", f"&& {_TOUCH}", f"|| {_TOUCH}",
    f">{CANARY}", f"<({_TOUCH})", f"$'\\x60{_TOUCH}\\x60'", f"${{x:-$({_TOUCH})}}", f"$[$({_TOUCH})]",
)  # fmt: skip

_QUOTES = (
    "'", '"', "''", '""', "'\"'", "\"'\"", "'\"'\"'", "\\'", '\\"', "\\", "\\\\", "a'b", 'a"b', "it's",
    "'unclosed",
    '"unclosed', "$'a\\nb'", '$"a"', "`", "``", "'\\''", "“curly”", "‘curly’", "´", "''''", '"""', "'''",
)  # fmt: skip

_EXPANSIONS = (
    "$HOME", "${HOME}", "$", "$$", "$?", "$!", "$#", "$@", "$*", "$0", "$-", "$_", "${HOME:-x}", "${#HOME}",
    "${!HOME}",
    "$((1+1))", "$[1+1]", "~", "~root", "~/x", "~+", "*", "?", "[a-z]*", "**/*", "{a,b}", "{1..9}", "!", "!!",
    "!$", "!-1",
    "!x", "^a^b", "a!b", "@(a|b)", "%1", "%", "%%", "&", ";", ";;", "|", "||", "&&", "<", ">", ">>", "<<EOF",
    "<<<x", "2>&1",
    "(", ")", "()", "{", "}", "{}", "[", "]", "[[", "#", "#comment", "a #b", "=", "=ls", "a=b", "FOO=bar", ":",
    ",", "@", "^",
)  # fmt: skip

_BLANKS = (
    "", " ", "  ", " a", "a ", " a ", "a b", "a  b", "\t", "a\tb", "\n", "a\nb", "\na", "a\n", "\n\n", "a\n\nb",
    "\r", "a\rb",
    "\r\n", "a\r\nb", "\v", "\f", "a\\\nb", "\u00a0", "\u2003", "\u2028", "\u2029", "\u0085", "\u3000", "\ufeff",
    "\ufeffa",
)  # fmt: skip

_PATHS = (
    ".", "..", "../", "/", "//", "/etc/passwd", "../../etc/passwd", f"../{CANARY}", f"../../{CANARY}",
    f"/tmp/{CANARY}",
    f"a/../../{CANARY}", "./a", "a/./b", "a//b", "a/", ".hidden", "...", "....//", "..\\..\\x", "C:\\x",
    "\\\\host\\share",
    "file:///etc/passwd", "a/b/c", "~/../x", "con", "nul", "a.", "a..b", "-/..", "/dev/null", "/proc/self/environ",
    f"..%2f{CANARY}", "%2e%2e%2f", "a:b", "a|b", "a?b", "a*b",
)  # fmt: skip

_OPTIONS = (
    "-", "--", "-rf", "--help", "--version", "-e", "-n", "-c", "-v/:/host", "--privileged", "-o ProxyCommand=x",
    "-EX", "+x",
    "--flag", "-1", "-0", "-$HOME", "--=", "---",
)  # fmt: skip

_UNICODE = (
    "ä", "日本語", "🙂", "👩‍👩‍👧‍👦", "🇩🇪", "e\u0301", "\u0301", "Z͑ͫ̓̃", "\u202eevil", "a\u202eb", "\u200b",
    "a\u200bb", "\u200d", "\u2066x\u2069",
    "\u200fabc", "مرحبا", "שלום", "İ", "ı", "ß", "ﬀ", "Ａ", "\u00ad", "\ue000", "\U0010ffff", "\ufffd", "\ufffe",
    "𝒳", "ǅ", "\u0130x",
    "，", "；", "｜", "＄(x)", "‘; x", "\u037e",
)  # fmt: skip

_CONTROL = (
    "\x01", "\x07", "\x08", "\x0e", "\x1a", "\x1b", "\x1b[31mred\x1b[0m", "\x1b[2J", "\x1b]0;title\x07", "\x1b[1A",
    "\x7f", "\x80", "\x9b31m",
    "a\x08b", "\x04", "\x03", "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "\x1f", "\x1c",
)  # fmt: skip

_FORMATS = (
    "=1+1", "+1+1", "-1+1", "@SUM(1)", "=cmd|'/c calc'!A0", '=HYPERLINK("http://x")', "\t=1+1", "\r=1+1", "a,b",
    'a,"b', '"a","b"',
    "a;b", "a\tb,c", '"', 'x"",y', "<script>alert(1)</script>", "</script><script>x</script>",
    "<img src=x onerror=x>", "<b>", "&lt;", "&amp;",
    "&#60;", "'><x", '"><x', "<!--", "-->", "]]>", "<![CDATA[", "javascript:x", "{{7*7}}", "{%x%}", "${7*7}",
    "#{7*7}", "<%= 7*7 %>",
    "%s", "%n", "%d%d%d", "%(x)s", "%s" * 20, "{}", "{0}", "{0.__class__}", "{x!r}", "\\x41", "\\u0041", "\\n",
    "\\0", "\\033[0m", "\\c", "\\e",
    "%00", "%0a", "%0d%0a", "a\r\nX-Header: y", "null", "true", "False", "None", "nan", "inf", "-0", "1e999",
    "0x10", "1_000", "١٢", "00",
    "[]", "{}x", '{"a": 1}', '{"__proto__": 1}', "---\n- a", "!!python/object:x", "&a *a", "# CONTEXT {}",
    "performance: 1 x", "a'; DROP TABLE x; --",
    "node=0\nexit_code=0", "::error::x", "#SBATCH --nodes=9", "EOF", "\nEOF\n", "HEREDOC", "exit 0", "fi", "done",
    "esac", "then", "if true; then",
)  # fmt: skip

_LONG = (
    "a" * 255, "a" * 256, "a" * 4096, "a b" * 2000, "'" * 1000, "\\" * 1001, "$(" * 500, "\n" * 500, "🙂" * 300,
    "../" * 300, "a/" * 200,
)  # fmt: skip

HOSTILE: tuple[str, ...] = tuple(
    dict.fromkeys(
        [
            *(frame.replace("{}", attack) for frame, attack in product(_FRAMES, _RUNS)),
            *(_QUOTES + _EXPANSIONS + _BLANKS + _PATHS + _OPTIONS + _UNICODE + _CONTROL + _FORMATS + _LONG),
        ]
    )
)


def canaries(folder: Path) -> list[Path]:
    """The canary files in ``folder``, below it, in two folders above and where absolute paths aim: must be []."""
    above = [folder.parent / CANARY, folder.parent.parent / CANARY, Path("/tmp") / CANARY]
    return [path for path in [*folder.rglob(CANARY), *above] if path.exists()]
