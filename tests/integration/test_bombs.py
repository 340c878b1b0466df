"""Files made to exhaust a machine: each ends in one line, within a second of work and 200 MiB of memory.

Measured in a process of its own: CPU time and not the clock, since a busy machine is no defect.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.integration.packages import card, make_package, manifest

SECONDS = 2.0  # of CPU, start of the interpreter included; a second is the aim
MEBIBYTES = 200
MILLION = 1_000_000

MEASURED = """\
import os, resource, sys
from madengine.cli.main import main
code = main(sys.argv[1:])
sys.stdout.flush()
used = resource.getrusage(resource.RUSAGE_SELF)
peak = open("/proc/self/status").read().split("VmHWM:")[1].split()[0]  # ru_maxrss would count the parent's, too
os.write(int(os.environ["MEASURED_FD"]), f"{used.ru_utime + used.ru_stime} {int(peak) / 1024}".encode())
os._exit(code)
"""


@dataclass(frozen=True)
class Measured:
    """What a command came to, and what it took."""

    code: int
    out: str
    err: str
    seconds: float
    mebibytes: float


def plain_environment() -> dict[str, str]:
    """Without what would change the command, and without what measures coverage: that takes time of its own."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("MAD_", "MODEL_DIR", "COVERAGE"))}


def measured(work: Path, *words: str, **more: str) -> Measured:
    """Run madengine in a process of its own that tells what it took."""
    reader, writer = os.pipe()
    environment = plain_environment()
    environment |= {"MODEL_DIR": str(work.parent / "package"), "MEASURED_FD": str(writer), **more}
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *words],
        check=False,
        cwd=work,
        env=environment,
        capture_output=True,
        pass_fds=(writer,),
        timeout=120,
    )
    os.close(writer)
    with os.fdopen(reader) as pipe:
        seconds, mebibytes = map(float, pipe.read().split() or ("inf", "inf"))
    return Measured(done.returncode, done.stdout.decode(), done.stderr.decode(), seconds, mebibytes)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    make_package(tmp_path / "package")
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


Content = Callable[[], str | bytes]


def write(path: Path, content: str | bytes) -> None:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def keys(count: int) -> str:
    return "{" + ",".join(f'"k{i}":1' for i in range(count)) + "}"


def cards(count: int) -> str:
    return json.dumps([card(f"m{i}", env_vars={f"A{j}": "x" for j in range(12)}) for i in range(count)])


JSON_BOMBS: dict[str, Content] = {
    "100,000 lists deep": lambda: "[" * 100_000 + "]" * 100_000,
    "100,000 objects deep": lambda: '{"a":' * 100_000 + "1" + "}" * 100_000,
    "15 MB of brackets": lambda: "[" * (15 << 20),
    "a million keys": lambda: keys(MILLION),
    "half a million keys": lambda: keys(500_000),
    "a million numbers": lambda: "[" + "1," * MILLION + "1]",
    "a million duplicates": lambda: "{" + '"a":1,' * MILLION + '"a":1}',
    "15 MB of one key": lambda: '{"' + "x" * (15 << 20) + '":1}',
    "15 MB of escapes": lambda: '{"a":"' + "\\u00e9" * (15 * MILLION // 6) + '"}',
    "15 MB of quotes": lambda: '"' * (15 << 20),
    "15 MB of backslashes": lambda: '{"a":"' + "\\" * (15 << 20),
    "15 MB of blanks": lambda: " " * (15 << 20),
    "200 MB": lambda: b"[" + b"1," * (100 << 20),
    "NaN": lambda: '{"a": NaN}',
    "a huge integer": lambda: '{"a": ' + "9" * (15 << 20) + "}",
    "a huge exponent": lambda: '{"a": 1e' + "9" * 1000 + "}",
    "lone surrogates": lambda: '{"a": "' + "\\ud800" * (2 * MILLION) + '"}',
    "UTF-16": lambda: ("{" + '"a":1,' * 100_000 + "}").encode("utf-16"),
    "NUL bytes": lambda: b"\0" * (15 << 20),
    "latin-1": lambda: b'{"a": "' + b"\xe4" * (15 << 20) + b'"}',
    "20,000 cards and more": lambda: cards(20_000),
}
READERS = {
    "manifest": ("work/f.json", ("run", "--engine", "host", "--manifest-file", "f.json")),
    "cards": ("package/models.json", ("run", "--engine", "host", "--tags", "nothing")),
    "context": ("work/f.json", ("run", "--engine", "host", "--tags", "t", "-f", "f.json")),
    "validate": ("work/f.json", ("validate", "f.json")),
}


def reader_of(index: int) -> str:
    """Each bomb goes to one reader after the other; they share the parser, so not all of them meet all."""
    return list(READERS)[index % len(READERS)]


@pytest.mark.parametrize(("bomb", "reader"), [(bomb, reader_of(i)) for i, bomb in enumerate(JSON_BOMBS)])
def test_a_json_bomb_is_one_line(work: Path, bomb: str, reader: str) -> None:
    name, words = READERS[reader]
    write(work.parent / name, JSON_BOMBS[bomb]())
    result = measured(work, *words)
    harmless(result)
    assert result.code == 4, result.err[:2000]
    assert len([line for line in result.err.splitlines() if "error:" in line]) <= 1
    assert not (work / "runs").exists()


def harmless(result: Measured) -> None:
    assert "Traceback" not in result.err
    assert len(result.err) < 5000
    assert result.mebibytes <= MEBIBYTES, result
    assert result.seconds <= SECONDS, result


LITERALS = [
    "(" * 100_000, "[" * 120_000, "{1:" * 40_000, "{'a':" * 20_000 + "1" + "}" * 20_000, "-" * 120_000,
    "9**9**9**9", "'x' * 10**10", "{'a': 'x' * 10**10}", "1" * 120_000, "{'a': " + "1" * 100_000 + "}",
    "{'a': 1e999}", "{'a': 1+2j}", "{'a': b'x'}", "{'a': {1, 2}}", "{'a': ...}", "{'a': (1,) * 10**9}", "{1: 2}",
    "{'a': 10**10**10}", "{'a': '\\ud800'}", "{'a': '\\x00'}", "{**{}}", "[x for x in ()]", "__import__('os')",
    "{'a': -" + "-" * 50_000 + "1}", "'" * 120_000, "\\" * 120_000, "f'{1}'", "{'a': 1_0}", "lambda: 0",
    "{" + "'a':1," * 15_000 + "}", "'a' 'b' " * 15_000, "{'a': " + "1+" * 50_000 + "1}", '{"a": NaN}',
    "#" * 120_000,
]  # fmt: skip

MEASURED_EACH = """\
import contextlib, io, json, resource, sys
from madengine.cli.main import main
def used():
    spent = resource.getrusage(resource.RUSAGE_SELF)
    return spent.ru_utime + spent.ru_stime
found = []
for text in json.load(sys.stdin):
    told, before = io.StringIO(), used()
    with contextlib.redirect_stderr(told), contextlib.redirect_stdout(told):
        code = main(["run", "--engine", "host", "--tags", "t", "--dry-run", "--additional-context=" + text])
    found.append((code, used() - before, told.getvalue()))
peak = int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) / 1024
json.dump([peak, found], sys.stdout)
"""


def test_a_literal_bomb_on_the_command_line_is_one_line(work: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEASURED_EACH],
        check=True,
        cwd=work,
        env={**plain_environment(), "MODEL_DIR": str(work.parent / "package")},
        input=json.dumps(LITERALS),
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
    )
    peak, found = json.loads(done.stdout)
    assert peak <= MEBIBYTES
    for text, (code, seconds, told) in zip(LITERALS, found, strict=True):
        harmless(Measured(code, "", told, seconds, peak))
        assert code in (0, 4), (text[:80], told)
        assert told.count("error:") == (code == 4), (text[:80], told)


# --- what a script leaves


def ran(work: Path, script: str, **fields: object) -> Measured:
    document = manifest([card(**fields)])
    (work.parent / "package/scripts/m/run.sh").write_text(script)
    (work / "manifest.json").write_text(json.dumps(document))
    return measured(work, "run", "--engine", "host", "--manifest-file", "manifest.json")


RESULTS = {
    "one line of 100 MB": "head -c 100000000 /dev/zero | tr '\\0' x >>../r.csv",
    "a million columns": "yes performance | head -n 1000000 | tr '\\n' , >>../r.csv",
    "a million empty rows": "{ echo performance,metric; yes ,x | head -n 1000000; } >>../r.csv",
    "100 MB in one cell": "{ echo performance; printf '\"'; yes xxxxxxxxxxxx | head -c 100000000; } >>../r.csv",
    "100 MB of quotes": "{ echo performance; head -c 100000000 /dev/zero | tr '\\0' '\"'; } >>../r.csv",
    "NUL bytes": "head -c 100000000 /dev/zero >>../r.csv",
}


@pytest.mark.parametrize("results", RESULTS)
def test_a_bomb_among_the_results_is_no_metric(work: Path, results: str) -> None:
    result = ran(work, RESULTS[results] + "\n", multiple_results="r.csv")
    assert result.code in (3, 5), result.err[:2000]
    assert "Traceback" not in result.err
    assert result.mebibytes <= MEBIBYTES, result
    assert result.seconds <= 10, result
    assert len(result.err) < 20_000


def test_a_log_of_300_mb_without_a_line_end_still_gives_its_metric(work: Path) -> None:
    script = "head -c 300000000 /dev/zero | tr '\\0' x\necho\necho performance: 3 x\n"
    result = ran(work, script)
    assert result.code == 0, result.err[:2000]
    assert result.mebibytes <= MEBIBYTES, result
    [row] = (work / "perf.csv").read_text().splitlines()[1:]
    assert ",3,x," in row


YAML_BOMBS = {
    "laughs": "a: &a [x,x,x,x,x,x,x,x,x]\n"
    + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(9)),
    "itself": "a: &a [*a]\n",
    "deep": "[" * 5000,
    "object": "!!python/object/apply:os.system ['touch madengine_canary']\n",
    "keys": "".join(f"k{i}: 1\n" for i in range(60_000)),
}


@pytest.mark.parametrize("bomb", YAML_BOMBS)
def test_a_yaml_bomb_takes_nothing_from_the_run(work: Path, bomb: str) -> None:
    (work.parent / "package/scripts/m/c.yaml").write_text(YAML_BOMBS[bomb])
    result = ran(work, "echo performance: 1 x\n", args="--config c.yaml")
    assert result.code == 0, result.err[:2000]
    assert result.mebibytes <= MEBIBYTES, result
    assert result.seconds <= 5, result
    assert (work / "perf_super.json").stat().st_size < 4 << 20
    assert not list(work.parent.rglob("madengine_canary"))


@contextmanager
def limit_of_files(count: int) -> Iterator[None]:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_no_run_leaves_a_file_open(work: Path) -> None:
    """Sixty models in one command with forty open files."""
    (work / "manifest.json").write_text(json.dumps(manifest([card(f"m{i}") for i in range(60)])))
    with limit_of_files(40):
        result = measured(work, "run", "--engine", "host", "--manifest-file", "manifest.json")
    assert result.code == 0, result.err[:2000]
