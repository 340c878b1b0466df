"""Whatever a manifest, a context, a card or a definition of tools says: a plan or a sentence, never a traceback."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.hostile import HOSTILE
from tests.integration.packages import Place, card, manifest, place, snapshot, write_json

FULL_CARD = card(
    args="--a 1 --config c.yaml",
    env_vars={"A": "$HOME", "B": 1},
    multiple_results="r.csv",
    additional_docker_run_options="--shm-size 1g",
    timeout=5,
    data="d",
    cred="c",
    skip_gpu_arch="gfx90a",
    expected_results=2,
    distributed={"launcher": "torchrun", "nnodes": 1, "nproc_per_node": 1, "port": 29500},
    log_error_pattern_scan=True,
    log_error_benign_patterns=["x"],
    log_error_patterns=["y"],
)
TOOL = {"cmd": "env", "env_vars": {"T": "1"}, "pre_scripts": [{"path": "a.sh", "args": "1"}], "post_scripts": []}
CONTEXT = {
    "docker_env_vars": {"C": "d"},
    "docker_mounts": {"/data": "/tmp"},
    "docker_gpus": "0",
    "docker_cpus": "0-1",
    "gpu_vendor": "CPU",
    "guest_os": "UBUNTU",
    "tools": [{"name": "x", "cmd": "nice", "env_vars": {"E": "f"}}],
    "pre_scripts": [{"path": "scripts/a.sh", "args": "1"}],
    "post_scripts": ["scripts/b.sh"],
    "encapsulate_script": "nice -n 1",
    "timeout": 7,
    "log_error_patterns": ["z"],
    "expected_results": 1,
}
DEPLOYMENT = {
    "target": "local",
    "env_vars": {"G": "h"},
    "distributed": {"launcher": "deepspeed", "nproc_per_node": 2},
    "debug": False,
    "gpus_per_node": 1,
}
MANIFEST = manifest([FULL_CARD], context=CONTEXT, deployment_config=DEPLOYMENT, credentials_required=["c"], summary={})
DATA = {"d": {"local": {"path": "/tmp", "home": "/data"}}, "e": {"nas": {"path": "x"}}, "huggingface": {}}
CREDENTIALS = {"c": {"username": "u", "password": "p"}, "dockerhub": {"username": "u", "repository": "r"}}

ODD: list[Any] = [
    None, True, False, 0, -1, 1, 1.5, 2**63 - 1, -(2**63), 1e308, "", "x", "7", "nan", "-1", [], [1], ["x"], [None],
    [[]], [{}], {}, {"x": 1}, {"x": None}, {"": ""}, {"name": "x"}, {"path": 7}, {"x": {"y": [1]}}, "\t", "a=b", "é",
    "'", "../x",
    *HOSTILE[::7],
]  # fmt: skip


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    members = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in members:
        yield from places(value, (*path, key))


def changed(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """The document with another value at a place, or without the member for the value ``...``."""
    if not path:
        return value
    fresh = copy.deepcopy(document)
    inner = fresh
    for key in path[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return fresh


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    fresh = place(tmp_path, monkeypatch, capsys)
    write_json(fresh.package / "tools.json", {"tools": {"x": TOOL}})
    write_json(fresh.package / "data.json", DATA)
    write_json(fresh.package / "credential.json", CREDENTIALS)
    write_json(fresh.package / "models.json", [FULL_CARD])
    (fresh.package / "scripts" / "a.sh").touch()
    return fresh


def planned(here: Place, *words: object) -> int:
    result = here.madengine("run", "--engine", "host", "--dry-run", *words)
    assert result.code in (0, 2, 3, 4), result  # 2 and 3: the model would be refused, and the plan says why
    assert "Traceback" not in result.err
    assert result.errors or result.code != 4, result.err
    assert len(result.errors) <= (result.code != 0), result.err
    assert list(here.work.glob("runs")) == []
    return result.code


SOURCES = {
    "manifest": (MANIFEST, "work/manifest.json", ("--manifest-file", "manifest.json")),
    "context": ({**CONTEXT, **DEPLOYMENT}, "work/c.json", ("--tags", "t", "-f", "c.json")),
    "card": ([FULL_CARD], "package/models.json", ("--tags", "m")),
    "tools": (
        {"tools": {"x": TOOL}},
        "package/tools.json",
        ("--tags", "t", "-c", json.dumps({"tools": [{"name": "x"}]})),
    ),
    "data": (DATA, "package/data.json", ("--tags", "t")),
    "credentials": (CREDENTIALS, "package/credential.json", ("--tags", "t")),
}


@pytest.mark.parametrize("source", SOURCES)
def test_every_value_may_be_any_other(here: Place, source: str) -> None:
    document, name, words = SOURCES[source]
    write_json(here.work.parent / name, document)
    assert planned(here, *words) == 0
    chance = random.Random(source)
    codes = set()
    for path in list(places(document))[1:]:
        for value in (..., *chance.sample(ODD, 6)):
            write_json(here.work.parent / name, changed(document, path, value))
            codes.add(planned(here, *words))
    assert 0 in codes


scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=8))
anything = st.recursive(
    scalars | st.sampled_from(ODD),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.lists(st.tuples(st.sampled_from(list(places(MANIFEST))), anything | st.just(...)), max_size=3))
def test_no_manifest_makes_a_traceback(here: Place, changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    document = MANIFEST
    for path, value in sorted(changes, key=lambda change: -len(change[0])):
        with suppress(LookupError, TypeError):  # an earlier change took the place away
            document = changed(document, path, None if value is ... and not path else value)
    (here.work / "manifest.json").write_text(json.dumps(document), encoding="utf-8", errors="surrogatepass")
    planned(here, "--manifest-file", "manifest.json")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(max_size=60) | anything.map(repr) | anything.map(json.dumps))
def test_no_context_on_the_command_line_makes_a_traceback(here: Place, text: str) -> None:
    planned(here, "--tags", "t", f"--additional-context={text}")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=200), name=st.sampled_from(sorted(SOURCES)))
def test_no_bytes_make_a_traceback(here: Place, data: bytes, name: str) -> None:
    document, file, words = SOURCES[name]
    text = json.dumps(document).encode()
    at = len(data) * 7 % len(text)
    before = snapshot(here.package, here.work)
    (here.work.parent / file).write_bytes(text[:at] + data + text[at:])
    planned(here, *words)
    write_json(here.work.parent / file, document)
    if name not in ("manifest", "context"):
        assert snapshot(here.package).items() <= before.items()
