"""Defaults of clusters, and named profiles."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from madengine.config.presets import BUILT_IN, PROFILES, built_in, own_folder, profile
from madengine.core.errors import ConfigurationError

BUILT_IN_PROFILES = sorted(path.stem for path in (BUILT_IN / "slurm" / PROFILES).glob("*.json"))


def home(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(tmp_path)}


def write(tmp_path: Path, name: str, document: object) -> Path:
    path = own_folder("slurm", home(tmp_path)) / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


@pytest.mark.parametrize("name", ["default", "several_nodes", "AMD", "NVIDIA"])
def test_the_presets_that_are_applied_by_themselves_can_be_read_and_say_something(name: str) -> None:
    preset = built_in("slurm", name, "here")
    assert preset.origin == "here"
    assert preset.values or preset.environment


def test_a_preset_that_is_not_brought_is_empty() -> None:
    assert built_in("slurm", "CPU", "x").values == {}


@pytest.mark.parametrize("name", BUILT_IN_PROFILES)
def test_every_built_in_profile_can_be_read_and_says_what_it_is_for(name: str, tmp_path: Path) -> None:
    assert profile("slurm", name, home(tmp_path)).origin == f"profile {name}"
    document = json.loads((BUILT_IN / "slurm" / PROFILES / f"{name}.json").read_text())
    assert document["description"].endswith(".")


def test_a_persons_own_profile_beats_a_built_in_one_of_the_same_name(tmp_path: Path) -> None:
    path = write(tmp_path, BUILT_IN_PROFILES[0], {"slurm": {"partition": "mine"}, "env_vars": {"A": 1}})
    found = profile("slurm", BUILT_IN_PROFILES[0], home(tmp_path))
    assert (found.values, found.environment) == ({"partition": "mine"}, {"A": "1"})
    assert str(path) in found.origin


def test_the_folder_of_own_profiles_is_below_the_home_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert own_folder("slurm", {}) == Path("/home/me/.config/madengine/slurm")


@pytest.mark.parametrize("name", ["nope", "../default", "", "a/b", "x" * 300])
def test_a_profile_that_is_not_there_names_those_that_are(tmp_path: Path, name: str) -> None:
    write(tmp_path, "mine", {})
    with pytest.raises(ConfigurationError, match="no cluster profile") as error:
        profile("slurm", name, home(tmp_path))
    assert all(known in str(error.value) for known in ["mine", *BUILT_IN_PROFILES])


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ("{", "p.json"),
        ("[]", "object"),
        ({"slrum": {}}, "/slrum"),
        ({"slurm": {"nodes": "two"}}, "/slurm/nodes"),
        ({"env_vars": {"A": None}}, "/env_vars/A"),
    ],
)
def test_a_broken_profile_says_where(tmp_path: Path, document: object, said: str) -> None:
    write(tmp_path, "p", document)
    with pytest.raises(ConfigurationError) as error:
        profile("slurm", "p", home(tmp_path))
    assert said in str(error.value)
