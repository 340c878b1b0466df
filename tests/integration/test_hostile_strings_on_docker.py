"""Hostile strings on their way through a real container engine: one run with all of them, and their Dockerfiles."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from shlex import quote

import pytest
from tests.hostile import HOSTILE, canaries
from tests.integration.packages import Place, card, make_package, manifest, place, write_json
from tests.integration.test_hostile_strings import DUMP, REFERENCE, dumped, expanded, file_names

pytestmark = [pytest.mark.docker, pytest.mark.usefixtures("docker_engine")]

IMAGE = "local/debian-py:1"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Place]:
    yield place(tmp_path / "around", monkeypatch, capsys)
    assert canaries(tmp_path) == []


def test_one_container_gets_them_all_as_they_are(here: Place) -> None:
    mounted = [name for name in file_names(240) if not REFERENCE.search(name)][::6]
    options = " ".join(f"-e O{i}={quote(s)}" for i, s in enumerate(HOSTILE))
    cards = [
        card(
            " ;$(touch madengine_canary)'\"<b>ä",
            scripts="scripts/m/dump.py",
            args=" ".join(map(quote, HOSTILE)),
            env_vars={f"C{i}": s for i, s in enumerate(HOSTILE)},
            additional_docker_run_options=options,
        )
    ]
    make_package(here.package, cards)
    (here.package / "scripts/m/dump.py").write_text(DUMP)
    mounts, variables = {}, {f"D{i}": s for i, s in enumerate(HOSTILE)}
    for number, name in enumerate(mounted):
        source = here.work / "data" / name
        source.mkdir(parents=True)
        (source / "file").write_text(f"MOUNT_{number}")
        mounts[f"/mnt/{number}/{name}"] = str(source)
        variables[f"MOUNT_{number}"] = f"/mnt/{number}/{name}"
    context = {"docker_env_vars": variables, "docker_mounts": mounts, "encapsulate_script": "env 'W=$(id) `id`'"}
    write_json(here.work / "manifest.json", manifest(cards, image=IMAGE, context=context))
    result = here.madengine(
        "run", "--engine", "docker", "--manifest-file", "manifest.json", "--keep-model-dir", "--timeout", "100"
    )
    assert result.code == 0, result.err[-2000:]
    seen = dumped(here)
    assert seen["argv"] == list(HOSTILE)
    for letter in "CDO":
        values = [seen["env"][f"{letter}{i}"] for i in range(len(HOSTILE))]
        assert values == [expanded(s) for s in HOSTILE]
    assert seen["env"]["W"] == "$(id) `id`"
    assert here.rows()[0]["model"] == cards[0]["name"]


def test_a_dockerfile_may_have_any_name(here: Place) -> None:
    """All are planned; a few are built. An image's name holds only what the engine takes."""
    names = [name for name in file_names(230) if name.isprintable() and name.strip()]
    cards = [card(f"model {i}", dockerfile=f"docker/{name}", tags=["t"]) for i, name in enumerate(names)]
    make_package(here.package, cards)
    for name in names:
        (here.package / f"docker/{name}.Dockerfile").write_text("FROM local/busybox:1\n")
    result = here.madengine("run", "--engine", "docker", "--tags", "t", "--dry-run", "--json")
    assert "Traceback" not in result.err
    runs = json.loads(result.out)["runs"]
    images = {run["model"]: run["image"] for run in runs if run["image"]}
    assert set(images) == {f"model {i}" for i in range(len(names))}
    assert all(re.fullmatch(r"ci-[a-z0-9._-]{1,200}", image) for image in images.values())
    assert len(set(images.values())) == len(images)


def test_a_few_of_them_are_built(here: Place, docker_engine: Mapping[str, str]) -> None:
    names = ["$(touch madengine_canary)", "'\"", "-rf", "a b", "--help", "日本語"]
    cards = [card(f"m{i}", dockerfile=f"docker/{name}", args=quote(name)) for i, name in enumerate(names)]
    make_package(here.package, cards)
    for name in names:
        (here.package / f"docker/{name}.Dockerfile").write_text("FROM local/busybox:1\n")
    result = here.madengine("build", "--engine", "docker", "--tags", "t", "--json")
    assert result.code == 0, result.err
    built = json.loads(result.out)["built_images"]
    assert [image["model"] for image in built.values()] == [f"m{i}" for i in range(len(names))]
    subprocess.run(["docker", "image", "rm", "--force", *built], check=True, capture_output=True)


@pytest.mark.parametrize("prefix", [s for s in HOSTILE if ".." in s or s.startswith("/")])
def test_a_dockerfile_never_lies_outside_its_package(here: Place, prefix: str) -> None:
    make_package(here.package, [card(dockerfile=prefix)])
    (here.package.parent / "x.Dockerfile").write_text("FROM local/busybox:1\n")
    result = here.madengine("run", "--engine", "docker", "--tags", "t", "--dry-run", "--json")
    assert result.code == 4 or not json.loads(result.out)["runs"][0]["image"]
    assert "Traceback" not in result.err


def test_an_image_of_any_name_is_a_failure_and_no_option(here: Place) -> None:
    names = [name for name in HOSTILE if name.startswith("-")] + [name for name in HOSTILE if name][::12]
    document = manifest([card(f"m{number}") for number in range(len(names))])
    for image, name in zip(document["built_images"].values(), names, strict=True):
        image["docker_image"] = name
    make_package(here.package)
    write_json(here.work / "manifest.json", document)
    result = here.madengine("run", "--engine", "docker", "--manifest-file", "manifest.json")
    assert result.code == 3, result.err[-2000:]
    assert "Traceback" not in result.err
    assert {row["status"] for row in here.rows()} == {"FAILURE"}
    assert len(here.rows()) == len(names)
