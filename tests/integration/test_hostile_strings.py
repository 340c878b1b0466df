"""Hostile strings go through every field and come back as they were; none runs anything or leaves its folder."""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

import pytest
from tests.hostile import CANARY, HOSTILE, canaries
from tests.integration.packages import Place, card, make_package, manifest, place, read_csv, write_json

RUN = ("run", "--engine", "host")
STRIPPED = " \t\r\n\f\v\"'\ufeff\u00a0"  # what people's CSV files have around their cells
REFERENCE = re.compile(r"\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})")

DUMP = """\
import json, os, sys
with open("../seen.json", "w") as file:
    json.dump({"argv": sys.argv[1:], "env": dict(os.environ)}, file)
for name, folder in os.environ.items():
    if name.startswith("MOUNT_"):
        assert open(folder.encode() + b"/file").read() == name, name
print("performance: 1 x")
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Place]:
    fresh = place(tmp_path / "around", monkeypatch, capsys)
    before = set((tmp_path / "around").iterdir())
    assert canaries(tmp_path) == []
    yield fresh
    assert canaries(tmp_path) == []
    assert not (Path.home() / CANARY).exists()
    assert set((tmp_path / "around").iterdir()) == before


def expanded(text: str) -> str:
    """The two forms of references that values may hold, as the contract says; everything else stays."""
    return REFERENCE.sub(lambda found: os.environ.get(found[1] or found[2], ""), text)


def file_names(longest: int = 255) -> list[str]:
    """Those of the strings that can name a file."""
    return [s for s in HOSTILE if "/" not in s and s not in ("", ".", "..") and len(s.encode()) <= longest]


def dumping(here: Place, cards: Sequence[dict[str, Any]] | None = None) -> None:
    make_package(here.package, cards)
    (here.package / "scripts/m/dump.py").write_text(DUMP)


def dumped(here: Place) -> dict[str, Any]:
    [folder] = here.run_dirs()
    seen: dict[str, Any] = json.loads((folder / "workspace/seen.json").read_text())
    return seen


def script_of(here: Place, number: int, name: str) -> str:
    """A script that is called like the string, in a folder of its own."""
    folder = here.package / "s" / str(number)
    folder.mkdir(parents=True)
    file = f"{name}.sh" if name in file_names(250) else "run.sh"
    (folder / file).write_text(
        'printf "%s\\0" "$@" "$V" "$MAD_MODEL_NAME" >../seen\n'
        'if [ -n "$MAD_OUTPUT_CSV" ]; then printf "performance\\n1\\n" >"$MAD_OUTPUT_CSV"; fi 2>/dev/null\ntrue\n'
    )
    return f"s/{number}/{file}"


def test_every_string_is_a_model_of_its_own(here: Place) -> None:
    names = [s for s in HOSTILE if s]
    cards = [
        card(
            name,
            scripts=script_of(here, number, name),
            args=quote(name),
            tags=[name],
            owner=name,
            training_precision=name,
            env_vars={"V": name},
            multiple_results=name,
        )
        for number, name in enumerate(names)
    ]
    document = manifest(cards)
    for part in ("built_images", "built_models"):
        document[part] = {item["name" if part == "built_models" else "model"]: item for item in document[part].values()}
    write_json(here.work / "manifest.json", document)
    result = here.madengine(*RUN, "--manifest-file", "manifest.json", "--keep-model-dir")
    assert result.code == 5, result.err[-3000:]
    assert "Traceback" not in result.err
    rows = here.rows()
    assert [row["model"] for row in rows] == names
    assert [row["training_precision"] for row in rows] == names
    assert [row["args"] for row in rows] == [quote(name) for name in names]
    assert [row["tags"] for row in rows] == [name.strip() for name in names]
    legal = {name for name in file_names() if "\\" not in name}
    assert {row["model"] for row in rows if row["status"] == "SUCCESS"} == legal
    folders = sorted(here.run_dirs(), key=lambda path: path.stat().st_ctime_ns)
    assert len(folders) == len(names) == len(list((here.work / "runs").iterdir()))
    seen = {tuple((path / "workspace/seen").read_bytes().decode().split("\0")) for path in folders}
    assert seen == {(name, expanded(name), name, "") for name in names}
    assert [row["model"] for row in json.loads((here.work / "perf_super.json").read_text())] == names
    assert [row["model"] for row in read_csv(here.work / "perf_entry.csv")] == names


def test_a_name_in_a_package_is_kept_or_refused_in_a_sentence(here: Place) -> None:
    make_package(here.package, [card(name, tags=[name, "t"]) for name in HOSTILE])
    listed = here.madengine("discover", "--json")
    kept = [model["name"] for model in json.loads(listed.out)["models"]]
    refused = set(HOSTILE) - set(kept)
    assert kept == [name for name in HOSTILE if name not in refused]
    assert all(not name.strip() or not name.isprintable() or "/" in name for name in refused - {".", "..", "..."})
    assert len(kept) > 350
    assert listed.code == 4
    shown = here.madengine("discover")
    assert len(shown.errors) <= len(refused) + 1
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", shown.out + shown.err)
    planned = here.madengine(*RUN, "--tags", "t", "--dry-run", "--json")
    assert planned.code == 4
    assert len(planned.errors) == 1


def test_words_and_values_reach_the_script_as_they_are(here: Place) -> None:
    words = " ".join(map(quote, HOSTILE))
    dumping(here, [card(scripts="scripts/m/dump.py", args=words, env_vars={f"C{i}": s for i, s in enumerate(HOSTILE)})])
    context = {
        "docker_env_vars": {f"D{i}": s for i, s in enumerate(HOSTILE)},
        "env_vars": {f"E{i}": s for i, s in enumerate(HOSTILE)},
    }
    for text in (json.dumps(context), repr(context)):
        result = here.madengine(*RUN, "--tags", "t", "--keep-model-dir", f"--additional-context={text}")
        assert result.code == 0, result.err
        seen = dumped(here)
        assert seen["argv"] == list(HOSTILE)
        for letter in "CDE":
            values = [seen["env"][f"{letter}{i}"] for i in range(len(HOSTILE))]
            assert values == [expanded(s) for s in HOSTILE]
        (here.work / "runs").rename(here.work / f"runs of {len(text)}")
    assert [row["args"] for row in here.rows()] == [words] * 2


def test_words_before_the_interpreter_stay_words(here: Place) -> None:
    dumping(here, [card(scripts="scripts/m/dump.py")])
    wrapper = f"import json, os, sys\nn = {len(HOSTILE)} + 1\n" + (
        "open('../' + os.path.basename(sys.argv[0]) + '.json', 'w').write(json.dumps(sys.argv[1:n]))\n"
        "os.execvp(sys.argv[n], sys.argv[n:])\n"
    )
    for name in ("wrap.py", "tool.py"):
        (here.package / "scripts/m" / name).write_text(wrapper)
    words = " ".join(map(quote, HOSTILE))
    write_json(here.package / "tools.json", {"tools": {"x": {"cmd": f"python3 tool.py {words}"}}})
    context = {"encapsulate_script": f"python3 wrap.py {words}", "tools": [{"name": "x"}]}
    write_json(here.work / "c.json", context)
    result = here.madengine(*RUN, "--tags", "t", "--keep-model-dir", "-f", "c.json")
    assert result.code == 0, result.err
    for name in ("wrap.py", "tool.py"):
        [folder] = here.run_dirs()
        assert json.loads((folder / "workspace" / f"{name}.json").read_text()) == list(HOSTILE)


def test_values_added_on_the_command_line_stay_one_word(here: Place) -> None:
    dumping(here, [card(scripts="scripts/m/dump.py")])
    values = [s for s in HOSTILE if not re.search(r"[\s,:]", s) and s]
    tag = ":".join(["m", *(f"k{i}={value}" for i, value in enumerate(values))])
    result = here.madengine(*RUN, f"--tags={tag}", "--keep-model-dir")
    assert result.code == 0, result.err
    assert dumped(here)["argv"] == [word for i, value in enumerate(values) for word in (f"--k{i}", value)]


def test_mounted_folders_may_have_any_name(here: Place) -> None:
    dumping(here, [card(scripts="scripts/m/dump.py")])
    names = [s for s in file_names(240) if not REFERENCE.search(s)]
    mounts, variables = {}, {}
    for number, name in enumerate(names):
        source = here.work / "data" / name
        source.mkdir(parents=True)
        (source / "file").write_text(f"MOUNT_{number}")
        mounts[f"/myworkspace/mnt/{number}/{name}"] = str(source)
        variables[f"MOUNT_{number}"] = f"../mnt/{number}/{name}"
    write_json(here.work / "c.json", {"docker_mounts": mounts, "docker_env_vars": variables})
    result = here.madengine(*RUN, "--tags", "t", "-f", "c.json", "-v")
    assert result.code == 0, result.err[-2000:]


def test_a_mount_never_leaves_the_workspace(here: Place) -> None:
    dumping(here, [card(scripts="scripts/m/dump.py")])
    mounts = {f"/myworkspace/{s}": "/etc" for s in HOSTILE if "../" in s} | {f"../../{CANARY}": "/etc", CANARY: "/etc"}
    write_json(here.work / "c.json", {"docker_mounts": mounts})
    result = here.madengine(*RUN, "--tags", "t", "-f", "c.json")
    assert "Traceback" not in result.err
    assert result.code in (0, 3)


def test_results_of_any_name_come_back(here: Place) -> None:
    def normal(text: str) -> str:
        return text.replace("\r\n", "\n").replace("\r", "\n").strip(STRIPPED)

    make_package(here.package, [card(multiple_results="r.csv")], "cp r.csv ..\n")
    with (here.package / "scripts/m/r.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["model", "performance", "metric", "more"])
        writer.writerows([s, "1.5", s, s] for s in HOSTILE)
    result = here.madengine(*RUN, "--tags", "t", "--json")
    assert result.code == 0, result.err
    rows = here.rows()
    assert [row["model"] for row in rows] == [f"m_{normal(s)}" if normal(s) else "m" for s in HOSTILE]
    assert [row["metric"] for row in rows] == [normal(s) for s in HOSTILE]
    assert [row["more"] for row in rows] == [normal(s) for s in HOSTILE]
    document = json.loads((here.work / "perf_super.json").read_text())
    assert [row["multi_results"]["more"] for row in document] == [row["more"] for row in rows]
    [run] = json.loads(result.out)["runs"]
    assert [row["model"] for row in run["rows"]] == [row["model"] for row in rows]


def test_columns_of_any_name_come_back(here: Place) -> None:
    names = list(dict.fromkeys(s for s in HOSTILE if s.strip(STRIPPED) == s and s and "\r" not in s))
    make_package(here.package, [card(multiple_results="r.csv")], "cp r.csv ..\n")
    with (here.package / "scripts/m/r.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["performance", *names], ["1", *(f"v{i}" for i in range(len(names)))]])
    assert here.madengine(*RUN, "--tags", "t").code == 0
    [row] = here.rows()
    assert {name: row[name] for name in names} == {name: f"v{i}" for i, name in enumerate(names)}


@pytest.mark.parametrize("part", range(3))
def test_an_output_may_have_any_name(here: Place, part: int) -> None:
    options: tuple[Callable[[str], str], ...] = (
        lambda name: f"--output={name}",
        lambda name: f"--output={name}.csv",
        lambda name: f"--summary-output={name}",
    )
    for name in [s for s in file_names(230) if not s.endswith(".csv")][part::9]:
        before = {path.name for path in here.work.iterdir()}
        result = here.madengine(*RUN, "--tags", "t", "--skip-model-run", options[part](name))
        assert result.code == 0, (name, result.err)
        expected = f"{name}.csv" if part == 1 else name
        assert expected in {path.name for path in here.work.iterdir()} - before, name
