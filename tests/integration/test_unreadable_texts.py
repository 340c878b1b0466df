"""Files that are no JSON - scripts, environments, CSV files, Dockerfiles - may be anything, too."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.integration.packages import Place, card, make_package, manifest, place, snapshot, write_json
from tests.integration.test_unreadable_files import DEFECTS, RUN, TAGS, refused, text

HEADER = "model,performance,metric\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    return place(tmp_path, monkeypatch, capsys)


# --- get_models_json.py

IMPORT = "from madengine.utils.discover_models import CustomModel\n"
GENERATORS = {
    "empty": "",
    "a syntax error": "def list_models(:\n",
    "no text": "\x01\x02\n\x03",
    "raises": IMPORT + "raise RuntimeError('one\\ntwo')\n",
    "raises when asked": IMPORT + "def list_models(): raise KeyError('x' * 5000)\n",
    "calls sys.exit": "import sys\nsys.exit(0)\n",
    "calls os._exit": "import os\nos._exit(0)\n",
    "is killed": "import os\nos.kill(os.getpid(), 9)\n",
    "prints garbage": "import os\nfor _ in range(2000): os.write(2, bytes(range(256)) * 64)\n",
    "closes everything": "import os\nos.closerange(0, 100)\n",
    "gives None": "def list_models(): return None\n",
    "gives dicts": "def list_models(): return [{'name': 'x'}]\n",
    "gives names that are no text": IMPORT + "def list_models(): return [CustomModel(name=7)]\n",
    "gives what JSON cannot hold": IMPORT + "def list_models(): return [CustomModel(name='n', tags={object()})]\n",
    "never stops giving": IMPORT + "import itertools\ndef list_models(): return (1 for _ in itertools.count())\n",
    "recurses": "def list_models(): return list_models()\n",
    "is no function": "list_models = 3\n",
    "hangs": "import time\ntime.sleep(60)\n",
    "starts a child that stays": "import subprocess, time\nsubprocess.Popen(['sleep', '60'])\ntime.sleep(60)\n",
    "waits for input": "import sys\nassert sys.stdin.read() == ''\n",
}


@pytest.mark.parametrize("generator", GENERATORS)
def test_a_script_that_gives_no_cards_is_named_and_the_others_still_list(
    here: Place, generator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAD_DISCOVERY_TIMEOUT", "0.5" if "time.sleep" in GENERATORS[generator] else "60")
    script = here.package / "scripts/x/get_models_json.py"
    script.parent.mkdir()
    script.write_text(GENERATORS[generator])
    sentence = refused(here, script, *RUN, "--tags", "x/all")
    assert len(sentence) < 1500
    listed = here.madengine("discover", "--json")
    assert [model["name"] for model in json.loads(listed.out)["models"]] == ["m"]
    assert listed.code == 4
    assert "Traceback" not in listed.err


@pytest.mark.parametrize(
    "defect", ["a directory", "a pipe", "a link to itself", "a link to nothing", "200 MB", "latin-1"]
)
def test_a_script_of_cards_that_is_no_script_is_refused(here: Place, defect: str) -> None:
    script = here.package / "scripts/x/get_models_json.py"
    script.parent.mkdir()
    DEFECTS[defect](script)
    refused(here, script, *RUN, "--tags", "x/all")


# --- an environment file

ENVIRONMENTS: dict[str, Callable[[Path], None]] = {
    **{name: DEFECTS[name] for name in ("a directory", "a pipe", "a link to itself", "a link to nothing", "a device")},
    **{name: DEFECTS[name] for name in ("no text", "a picture", "200 MB", "17 MB of text", "UTF-16", "deep lists")},
    "a template": text("export A=<FILL_ME>\n"),
    "a syntax error": text("export A='x\n"),
    "fails": text("export A=1\nfalse\n"),
    "exits": text("exit 0\n"),
    "is killed": text("kill -9 $$\n"),
    "Windows": text("export A=1\r\n"),
    "a byte-order mark": text("\ufeffexport A=1\n"),
    "JSON": text('{"A": 1}\n'),
}


@pytest.mark.parametrize("defect", ENVIRONMENTS)
def test_an_env_file_that_cannot_be_sourced_is_refused(here: Place, defect: str) -> None:
    write_json(here.work / "manifest.json", manifest(deployment_config={"env_file": "mad.env"}))
    ENVIRONMENTS[defect](here.work / "mad.env")
    refused(here, here.work / "mad.env", *RUN, "--manifest-file", "manifest.json")


def test_an_env_file_that_is_missing_is_refused(here: Place) -> None:
    write_json(here.work / "manifest.json", manifest(deployment_config={"env_file": "mad.env"}))
    refused(here, here.work / "mad.env", *RUN, "--manifest-file", "manifest.json")


# --- what a command writes

COLUMNS = "model,n_gpus,performance,status\n"
OUTPUTS: dict[str, tuple[str, ...]] = {
    "perf.csv": TAGS,
    "perf_super.json": TAGS,
    "perf_super.csv": TAGS,
    "perf_entry.csv": TAGS,
    "perf_entry.json": TAGS,
    "mine.csv": (*TAGS, "--output", "mine.csv"),
    "mine.json": (*TAGS, "-o", "mine.json"),
    "runs": TAGS,
}
NOT_OURS = ["a directory", "a pipe", "a link to itself", "a device", "no text", "a picture", "200 MB", "17 MB of text",
            "deep objects", "no JSON at all", "UTF-16", "two documents", "cut in a list"]  # fmt: skip


@pytest.mark.parametrize("defect", NOT_OURS)
@pytest.mark.parametrize("output", OUTPUTS)
def test_an_output_that_is_something_else_is_refused_and_left_alone(here: Place, output: str, defect: str) -> None:
    if (output, defect) == ("runs", "a directory"):
        pytest.skip("that is what it should be")
    DEFECTS[defect](here.work / output)
    refused(here, here.work / output, *OUTPUTS[output])


@pytest.mark.parametrize("words", [("--output", "a/b.csv"), ("--summary-output", "."), ("--output", "perf.csv"),
                                   ("--output", "../package/models.json"), ("--manifest-output", "/dev/null/x"),
                                   ("--summary-output", "/dev/null"), ("--output", "a" * 5000),
                                   ("--summary-output", "a" * 300), ("--manifest-output", "."), ("--output", ""),
                                   ("--summary-output", "../package/models.json"),
                                   ("--manifest-output", "../package/models.json")])  # fmt: skip
def test_an_output_that_cannot_be_written_is_refused_before_anything_starts(
    here: Place, words: tuple[str, str]
) -> None:
    before = snapshot(here.package, here.work)
    result = here.madengine(*TAGS, *words)
    assert (result.code, len(result.errors)) == (4, 1), result.err
    assert snapshot(here.package, here.work) == before


def test_a_summary_that_cannot_be_written_takes_nothing_from_the_run(here: Place) -> None:
    folder = here.work / "out"
    folder.mkdir()
    script = here.package / "scripts" / "m" / "run.sh"
    script.write_text(f"{script.read_text()}\nrmdir {folder}; touch {folder}\n")
    result = here.madengine(*TAGS, "--summary-output", "out/summary.json")
    assert (result.code, len(result.errors)) == (1, 1), result.err
    assert "defect" not in result.err
    assert [row["status"] for row in here.rows()] == ["SUCCESS"]


@pytest.mark.parametrize("content", ["", "\n", COLUMNS, "\ufeff" + COLUMNS, COLUMNS.replace("\n", "\r\n")])
def test_a_perf_csv_of_any_make_is_continued(here: Place, content: str) -> None:
    (here.work / "perf.csv").write_text(content, newline="")
    assert here.madengine(*TAGS).code == 0
    data = (here.work / "perf.csv").read_bytes().decode()
    assert data.startswith(content.rstrip())
    assert data.count("\r\n") in (0, data.count("\n"))
    assert "SUCCESS" in data


# --- results of a script


def test_a_results_file_may_be_anything(here: Place) -> None:
    defects: dict[str, Callable[[Path], None]] = {
        **{name: make for name, make in DEFECTS.items() if name != "without permission"},
        "missing": lambda path: None,
        "no performance column": text("model,metric\na,x\n"),
        "no rows": text(HEADER),
        "no numbers": text(HEADER + "a,nan,x\nb,inf,x\nc,,x\nd,1e999,x\ne,12 apples,x\n"),
        "an open quote": text(HEADER + '"a,1,x\nb,2,x\n'),
        "NUL bytes": text(HEADER + "a\0,1,x\n"),
        "one line of 20 MB": text(HEADER + "a" * (20 << 20) + ",1,x\n"),
        "a hundred thousand columns": text("model," * 100_000 + "\n" + "1," * 100_000),
        "latin-1 rows": text(HEADER.encode() + "ä,1,x\n".encode("latin-1")),
        "another folder's": lambda path: path.symlink_to("/proc/self/environ"),
    }
    good = {
        "a byte-order mark": text("\ufeff" + HEADER + "a,1,x\n"),
        "Windows": text((HEADER + "a,1,x\n").replace("\n", "\r\n")),
        "old Mac": text((HEADER + "a,1,x\n").replace("\n", "\r")),
        "no last line end": text(HEADER + "a,1,x"),
    }
    results = here.work.parent / "results"
    results.mkdir()
    for index, make in enumerate([*defects.values(), *good.values()]):
        make(results / str(index))
    names = [*defects, *good]
    cards = [card(f"m{index}", args=str(results / str(index)), multiple_results="r.csv") for index in range(len(names))]
    make_package(here.package, cards, '[ ! -e "$1" ] && [ ! -h "$1" ] || cp -a "$1" ../r.csv\n')
    result = here.madengine(*TAGS, "--json")
    assert result.code == 5, result.err
    assert "Traceback" not in result.err
    runs = dict(zip(names, json.loads(result.out)["runs"], strict=True))
    outcomes = {name: run["outcome"] for name, run in runs.items()}
    assert outcomes == {**dict.fromkeys(defects, "NO_METRIC"), **dict.fromkeys(good, "SUCCESS")}
    assert {len(row) for row in here.rows()} == {len(here.rows()[0])}


# --- Dockerfiles


@pytest.mark.docker
def test_a_dockerfile_may_be_anything(here: Place, docker_engine: Mapping[str, str]) -> None:
    kinds = ["a directory", "a pipe", "a link to itself", "a link to nothing", "a device", "no text", "a picture",
             "200 MB", "UTF-16", "latin-1", "a NUL", "empty", "deep lists"]  # fmt: skip
    make_package(here.package, [card(f"m{index}", dockerfile=f"docker/d{index}") for index in range(len(kinds))])
    for index, kind in enumerate(kinds):
        DEFECTS[kind](here.package / f"docker/d{index}.Dockerfile")
    result = here.madengine("build", "--engine", "docker", "--tags", "t")
    assert result.code == 2, result.err
    assert "Traceback" not in result.err
    assert len(result.errors) >= len(kinds)
    for index, kind in enumerate(kinds):
        assert f"docker/d{index}" in result.err, kind
    assert json.loads((here.work / "build_manifest.json").read_text())["built_images"] == {}
