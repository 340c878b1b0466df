"""Secrets reach the script and nothing else: no output, no file, no manifest, no traceback, no process list."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.integration.packages import MADENGINE, card, make_package, manifest, write_json

# Each looks at the command lines of all processes, and some put a canary there on purpose: no two test processes share
# their canaries.
OURS = f"{os.getpid():x}q"

SECRETS = {
    "inherited": 'hf_Inh"erited\\x/7 1é' + OURS,
    "env_file": "key-Env+File/2&2%20q" + OURS,
    "reference": "ref-Erence-3'3x" + OURS,
    "credential": "pass-Word$4 4y" + OURS,
    "context": "con-Text;5<5>z" + OURS,
    "url": "Url-Passw0rd-66" + OURS,
}
VARIABLES = {
    "MAD_SECRETS_HFTOKEN": "inherited",
    "MAD_SECRETS_FILE": "env_file",
    "WANDB_API_KEY": "reference",
    "c_PASSWORD": "credential",
    "MY_SERVICE_TOKEN": "context",
}
TELL = """\
import base64, csv, hashlib, json, os, sys, urllib.parse
names = sys.argv[2:]
values = [os.environ[name] for name in names] + [os.environ["DATABASE_URL"].split(":")[2].split("@")[0]]
for value in values:
    print("hash", hashlib.sha256(value.encode()).hexdigest())
forms = []
for value in values:
    raw = value.encode()
    forms += [value, json.dumps(value), json.dumps({"a": json.dumps(value)}), repr(value)]
    forms += [raw.hex(), urllib.parse.quote(value)]
    forms += [base64.b64encode(b"x" * n + raw + b"yy").decode() for n in range(3)]
    forms += ["\\n".join(value[i:i + 5] for i in range(0, len(value), 5))]
    encoded = base64.b64encode(raw).decode()
    forms += ["\\n".join(encoded[i:i + 7] for i in range(0, len(encoded), 7)), "Authorization: Bearer " + value]
print(os.environ["DATABASE_URL"], os.environ["INNOCENT"])
for form in forms:
    print("says", form, flush=True)
    print("says", form, file=sys.stderr, flush=True)
with open("../r.csv", "w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["model", "performance", "metric", "more", forms[0].replace("\\n", "")])
    writer.writerows([["row " + form, "1" if sys.argv[1] == "good" else "", "x", form, form] for form in forms])
with open("../my_env.csv", "w") as file:
    file.writelines(f"{name},{value}\\n" for name, value in os.environ.items())
print("ValueError:", values[0])
import time; time.sleep(0.1)
sys.exit(0 if sys.argv[1] == "good" else "Traceback " + values[1])
"""


def forms(secret: str) -> Iterator[bytes]:
    """What would give the secret away."""
    raw = secret.encode()
    yield from (raw, json.dumps(secret)[1:-1].encode(), repr(secret)[1:-1].encode(), raw.hex().encode())
    yield from (base64.b64encode(raw)[:-4], base64.b64encode(b"x" + raw)[4:-4], base64.b64encode(b"xx" + raw)[4:-4])


def leaks(data: bytes, secrets: Iterable[str] = SECRETS) -> list[str]:
    """The names of the secrets that can be read in ``data``, also wrapped over lines."""
    joined = re.sub(rb"\s+", b"", data)
    return [
        name
        for name in secrets
        for form in forms(SECRETS[name])
        if form in data or re.sub(rb"\s+", b"", form) in joined
    ]


class ProcessList:
    """Reads the command lines of all processes but its own, over and over, until it is closed."""

    def __init__(self) -> None:
        self.seen: set[bytes] = set()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> ProcessList:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.is_set():
            for entry in os.scandir("/proc"):
                if entry.name.isdigit():
                    try:
                        self.seen.add(Path(entry.path, "cmdline").read_bytes())
                    except OSError:
                        continue
            time.sleep(0.005)


CARDS = [
    card(name, scripts="scripts/m/tell.py", cred="c", args=f"{name} {' '.join(VARIABLES)}", multiple_results="r.csv")
    for name in ("good", "bad")
]
CONTEXT: Mapping[str, Any] = {
    "docker_env_vars": {
        "WANDB_API_KEY": "${PLAIN_TOKEN}",
        "INNOCENT": "--token=${PLAIN_TOKEN}",
        "DATABASE_URL": f"postgres://user:{SECRETS['url']}@host/db",
    },
    "pre_scripts": ["scripts/m/pre.sh"],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    package, work = tmp_path / "package", tmp_path / "work"
    make_package(package, CARDS)
    work.mkdir()
    (package / "scripts/m/tell.py").write_text(TELL)
    (package / "scripts/m/pre.sh").write_text('echo "pre $MAD_SECRETS_HFTOKEN $MAD_SECRETS_FILE $c_PASSWORD"\n')
    write_json(package / "credential.json", {"c": {"username": "somebody", "password": SECRETS["credential"]}})
    quoted = {name: "'" + SECRETS[name].replace("'", "'\\''") + "'" for name in ("env_file", "reference")}
    (work / "mad.env").write_text(
        f"MAD_SECRETS_FILE={quoted['env_file']}\nPLAIN_TOKEN={quoted['reference']}\necho sourcing $PLAIN_TOKEN\n"
    )
    return tmp_path


def environment(**more: str) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("MAD_", "MODEL_DIR"))}
    return {**inherited, "MAD_SECRETS_HFTOKEN": SECRETS["inherited"], "PYTHONPATH": "", **more}


def command(
    folder: Path, *words: str, code: int, secret_words: bool = True, script_is_told: bool = False, **more: str
) -> bytes:
    """Run madengine as a process of its own; what it printed and wrote holds no secret.

    ``script_is_told``: the card's args hold one, so that the script's own command line does.
    """
    secret = json.dumps({"docker_env_vars": {"MY_SERVICE_TOKEN": SECRETS["context"]}}, ensure_ascii=False)
    line = [*MADENGINE, *words, *(["-c", secret] if secret_words else [])]
    with ProcessList() as processes:
        done = subprocess.run(
            line, cwd=folder / "work", env=environment(**more), check=False, capture_output=True, timeout=120
        )
    own = b"\0".join(word.encode() for word in line) + b"\0"
    assert done.returncode == code, done.stderr.decode()[-3000:]
    assert leaks(done.stdout) == []
    assert leaks(done.stderr) == []
    # A test worker that renames itself is seen half renamed when the command is just being started from it.
    told = [argv for argv in processes.seen if argv != own and not argv.startswith(b"[pytest-xdist") and leaks(argv)]
    assert [argv for argv in told if not (script_is_told and argv.startswith(b"bash\0run.sh\0"))] == []
    assert files_with_leaks(folder) == {}
    return done.stdout


def files_with_leaks(folder: Path) -> dict[str, list[str]]:
    """What madengine wrote and gives a secret away; what the script itself left in its workspace is its own affair."""
    given = {folder / "package", folder / "work/mad.env", folder / "work/manifest.json"}
    found = {}
    for place, _, names in os.walk(folder):
        path = Path(place)
        if any(path.is_relative_to(root) for root in given) or "workspace" in path.relative_to(folder).parts:
            continue
        for name in {*names} - {"mad.env"} - ({"manifest.json"} if path == folder / "work" else set()):
            if leaked := leaks((path / name).read_bytes()) + leaks(name.encode()):
                found[str((path / name).relative_to(folder))] = leaked
    return found


def reached(folder: Path) -> None:
    """Every secret has reached every script, as the hashes that they printed prove."""
    expected = [hashlib.sha256(SECRETS[name].encode()).hexdigest() for name in (*VARIABLES.values(), "url")]
    logs = sorted(folder.glob("work/runs/*/logs/run.log"))
    assert logs
    for log in logs:
        assert re.findall(r"^hash (\w+)$", log.read_text(errors="replace"), re.M) == expected


def manifest_of(image: str, **more: Any) -> dict[str, Any]:
    return manifest(CARDS, image=image, context=CONTEXT, deployment_config={"env_file": "mad.env"}, **more)


ARGUMENTS = [["--verbose", "--live-output"], ["--json", "--sys-env-details", "--keep-model-dir"]]


@pytest.mark.parametrize("words", ARGUMENTS)
def test_a_run_on_this_machine_keeps_its_secrets(folder: Path, words: list[str]) -> None:
    write_json(folder / "work/manifest.json", manifest_of(""))
    command(folder, "run", "--engine", "host", "--model-dir", "../package", "-m", "manifest.json", *words, code=3)
    reached(folder)


@pytest.mark.docker
def test_a_run_in_a_container_keeps_its_secrets(folder: Path, docker_engine: Mapping[str, str]) -> None:
    write_json(folder / "work/manifest.json", manifest_of("local/debian-py:1"))
    words = ["run", "--engine", "docker", "--model-dir", "../package", "-m", "manifest.json", "-v"]
    command(folder, *words, code=3)
    reached(folder)


def test_a_secret_among_the_args_or_options_stands_in_no_file(folder: Path) -> None:
    """The package's own files and the command line hold it; what madengine makes of them does not."""
    options = f"-e A_TOKEN='{SECRETS['context']}'"
    cards = [
        card(args=f"--api-key '{SECRETS['url']}'", additional_docker_run_options=options),
        card("none", scripts="x"),
    ]
    make_package(folder / "package", cards, "echo performance: 1 x; echo $*\n")
    line = ["run", "--engine", "host", "--model-dir", "../package", "--tags", "m,none", "-v"]
    command(folder, *line, code=2, secret_words=False, script_is_told=True)


@pytest.mark.parametrize("words", [["--json"], ["--verbose"]])
def test_a_dry_run_shows_names_only(folder: Path, words: list[str]) -> None:
    write_json(folder / "work/manifest.json", manifest_of(""))
    line = ["run", "--engine", "host", "--model-dir", "../package", "-m", "manifest.json", "--dry-run", *words]
    shown = command(folder, *line, code=0)
    for name in VARIABLES:
        assert name.encode() in shown


def test_a_manifest_of_a_run_that_builds_holds_no_secret(folder: Path) -> None:
    write_json(folder / "work/mad.json", {**CONTEXT, "env_file": "mad.env"})
    (folder / "work/mad.json").rename(folder / "package/context.json")
    line = ["run", "--engine", "host", "--model-dir", "../package", "--tags", "t", "-f", "../package/context.json"]
    command(folder, *line, "--manifest-output", "built.json", "--summary-output", "summary.json", code=3)
    reached(folder)
    assert "WANDB_API_KEY" in (folder / "work/built.json").read_text()


@pytest.mark.docker
def test_a_build_that_fails_keeps_its_secrets(folder: Path, docker_engine: Mapping[str, str]) -> None:
    (folder / "package/docker/m.Dockerfile").write_text(
        "FROM local/debian-py:1\nARG MAD_SECRETS_HFTOKEN\nARG REGISTRY_PASSWORD\n"
        'RUN echo "$MAD_SECRETS_HFTOKEN $REGISTRY_PASSWORD" | tee /dev/stderr | base64; exit 3\n'
    )
    write_json(folder / "package/context.json", {"docker_build_arg": {"REGISTRY_PASSWORD": SECRETS["reference"]}})
    line = ["build", "--engine", "docker", "--model-dir", "../package", "--tags", "t", "-f", "../package/context.json"]
    command(folder, *line, "--verbose", "--live-output", code=2)


BROKEN = """\
import madengine.{module} as module
def broken(*given, **named):
    raise RuntimeError("broken by " + repr((given, named)))
module.{function} = broken
from madengine.cli.main import main
import sys
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("module", "function"),
    [
        ("orchestration.plan", "_mounts"),
        ("orchestration.plan", "assemble"),
        ("orchestration.prepare", "plan_runs"),
        ("orchestration.recorder", "run_facts"),
        ("execution.runner", "_request"),
        ("execution.host", "stream"),
        ("cli.run_command", "load_settings"),
        ("cli.run_command", "effective_manifest"),
    ],
)
def test_a_defect_of_ours_shows_no_secret(folder: Path, module: str, function: str) -> None:
    write_json(folder / "work/manifest.json", manifest_of(""))
    crash = ["-c", BROKEN.format(module=module, function=function)]
    words = ["run", "--engine", "host", "--model-dir", "../package", "-m", "manifest.json", "-v"]
    for debug in ("1",) if function != "load_settings" else ("", "1"):
        secret = json.dumps({"docker_env_vars": {"MY_SERVICE_TOKEN": SECRETS["context"]}})
        done = subprocess.run(
            [MADENGINE[0], *crash, *words, "-c", secret],
            cwd=folder / "work",
            env=environment(MAD_DEBUG=debug),
            check=False,
            capture_output=True,
            timeout=60,
        )
        assert done.returncode in (1, 3), done.stderr
        assert leaks(done.stdout + done.stderr) == []
    assert files_with_leaks(folder) == {}


@pytest.mark.parametrize(
    "text",
    [
        '{"c": {"password": %s}}',
        '{"c": {"username": "a" "password": "%s"}}',
        '{"c": {"password": "%s',
        '%s',
        '{"c": "%s"}',
        '{"c": {"password": ["%s"]}}',
        '{"c": {"password": "%s", "password": "%s"}}',
        '{"a": "%s", "a": "%s"}',
    ],
)  # fmt: skip
def test_a_broken_credential_file_is_not_quoted(folder: Path, text: str) -> None:
    (folder / "package/credential.json").write_text(text.replace("%s", SECRETS["url"]))
    (folder / "work/manifest.json").write_text(json.dumps(manifest_of("") | {"context": {}}))
    command(folder, "run", "--engine", "host", "--model-dir", "../package", "-m", "manifest.json", code=4)


@pytest.mark.parametrize(
    "text", ['{"docker_env_vars": {"A_TOKEN": %s}}', '{"A_TOKEN": 7 "%s"}', "{} %s", "{'A_TOKEN': %s}"]
)
def test_a_broken_context_is_not_quoted(folder: Path, text: str) -> None:
    words = ["run", "--engine", "host", "--model-dir", "../package", "--tags", "t", "-c", text % SECRETS["url"]]
    command(folder, *words, code=4, secret_words=False)
