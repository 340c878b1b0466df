"""The configuration that args name with --config."""

from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from madengine.reporting.perf_configs import LIMIT, Configs, config_name, load_configs


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "mad" / "scripts" / "vllm" / "configs").mkdir(parents=True)
    return tmp_path / "mad"


def load(package: Path, args: str, **options: Any) -> Configs:
    return load_configs(args, package / "scripts" / "vllm", package, **options)


def put(package: Path, name: str, contents: str | bytes) -> None:
    path = package / "scripts" / "vllm" / name
    path.write_bytes(contents.encode() if isinstance(contents, str) else contents)


@pytest.mark.parametrize(
    ("args", "name"),
    [
        ("", ""),
        ("--model_repo x", ""),
        ("--model_repo x --config configs/default.yaml", "configs/default.yaml"),
        ("--config=a.csv -n 2", "a.csv"),
        ("--config 'a b.csv'", "a b.csv"),
        ("--config a.csv --config b.csv", "b.csv"),
        ("--config", ""),
        ("--configuration a.csv", ""),
    ],
)
def test_the_name_is_what_args_say(args: str, name: str) -> None:
    assert config_name(args) == name


def test_no_config_is_no_note(package: Path) -> None:
    assert load(package, "--model_repo x") == Configs(None, "")


@pytest.mark.parametrize(
    ("name", "contents", "value"),
    [
        ("c.csv", "model,tp\n\na,8\n\nb,\n", [{"model": "a", "tp": "8"}, {"model": "b", "tp": ""}]),
        ("c.csv", "\ufeff model ,tp\r\na,8,9\r\n", [{"model": "a", "tp": "8", "unnamed": ["9"]}]),
        ("c.json", '{"a": [1, 2.5, null, true]}', {"a": [1, 2.5, None, True]}),
        ("c.yaml", "a: 1\nb: [x, .nan, 2024-01-02]\n3: ~\n", {"a": 1, "b": ["x", "nan", "2024-01-02"], "3": None}),
        ("c.YML", "base: &b {x: 1}\nother: {<<: *b, y: 2}\n", {"base": {"x": 1}, "other": {"x": 1, "y": 2}}),
        ("c.yaml", "", None),
    ],
)
def test_csv_json_and_yaml_become_plain_values(package: Path, name: str, contents: str, value: object) -> None:
    put(package, name, contents)
    found = load(package, f"--config {name}")
    assert found == Configs(value, "")
    json.dumps(found.value, allow_nan=False)


@pytest.mark.parametrize("place", ["scripts/vllm/x.json", "scripts/vllm/configs/x.json", "x.json"])
def test_it_is_looked_for_beside_the_script_in_configs_and_from_the_root(package: Path, place: str) -> None:
    (package / place).write_text('{"here": 1}')
    assert load(package, "--config x.json").value == {"here": 1}


@pytest.mark.parametrize(
    ("args", "name", "contents", "note"),
    [
        ("--config none.csv", "c.csv", "", "none.csv names no file"),
        ("--config c.txt", "c.txt", "a", "no CSV, JSON or YAML"),
        ("--config c.json", "c.json", "{", "c.json"),
        ("--config c.json", "c.json", b"\xff\xfe\0", "c.json"),
        ("--config c.json", "c.json", "[" * 100_000, "c.json"),
        ("--config c.yaml", "c.yaml", "a: [", "cannot be read as YAML"),
        ("--config c.yaml", "c.yaml", "a: !!python/object/apply:os.system [touch canary]", "cannot be read as YAML"),
        ("--config c.yaml", "c.yaml", "&a [*a]", "more than"),
        ("--config c.yaml", "c.yaml", "[" * 3000 + "]" * 3000, ""),
        ("--config c.csv", "c.csv", 'a,b\n"' + "x" * 200_000, "cannot be read as CSV"),
        ("--config c.csv", "c.csv", "a" * (LIMIT + 1), "c.csv"),
        ("--config 'c.csv", "c.csv", "a\n1\n", "not taken over"),
        ("--config 'c\\\nd.csv'", "c.csv", "a\n1\n", "names no file"),
        ("--config configs", "c.csv", "", "names no file"),
    ],
)
def test_what_cannot_be_read_is_a_note_on_one_line(
    package: Path, args: str, name: str, contents: str | bytes, note: str
) -> None:
    put(package, name, contents)
    found = load(package, args)
    assert found.value is None
    assert note in found.note
    assert found.note
    assert "\n" not in found.note


def test_a_few_lines_of_yaml_that_mean_a_billion_values_are_a_note(package: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    put(package, "c.yaml", "\n".join(lines))
    assert "more than" in load(package, "--config c.yaml").note


@pytest.mark.parametrize("name", ["../../../secret.json", "link.json"])
def test_nothing_outside_the_package_is_read(package: Path, name: str) -> None:
    (package.parent / "secret.json").write_text('{"secret": 1}')
    (package / "scripts" / "vllm" / "link.json").symlink_to(package.parent / "secret.json")
    found = load(package, f"--config {name}")
    assert found.value is None
    assert "names no file" in found.note


def test_secrets_are_masked_by_value_and_by_name(package: Path) -> None:
    put(package, "c.json", '{"HF_TOKEN": "canary1", "cmd": "--t canary2", "max_tokens": 5, "empty_token": ""}')
    found = load(package, "--config c.json", redact=lambda text: text.replace("canary2", "***"))
    assert found.value == {"HF_TOKEN": "***", "cmd": "--t ***", "max_tokens": 5, "empty_token": ""}


def test_without_pyyaml_the_note_says_how_to_get_it(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(package, "c.yaml", "a: 1")
    real_import = builtins.__import__

    def without_yaml(name: str, *args: Any) -> Any:
        if name == "yaml":
            raise ImportError(name)
        return real_import(name, *args)

    monkeypatch.setattr(builtins, "__import__", without_yaml)
    found = load(package, "--config c.yaml")
    assert found.value is None
    assert "pip install 'madengine[yaml]'" in found.note


@pytest.mark.parametrize("name", ["config", "default", "extended", "performance"])
def test_the_real_configurations_are_read_without_their_blank_lines(real_mad: Path, name: str) -> None:
    path = real_mad / "configs" / f"{name}.csv"
    expected = sum(1 for line in path.read_text().splitlines()[1:] if line.strip(" ,"))
    found = load_configs(f"--model_repo x --config configs/{name}.csv", real_mad, real_mad)
    assert found.note == ""
    assert len(found.value) == expected
    assert all("model" in row for row in found.value)


@given(st.sampled_from(["csv", "json", "yaml"]), st.binary(max_size=200))
def test_any_bytes_give_a_value_or_a_note(tmp_path_factory: pytest.TempPathFactory, kind: str, data: bytes) -> None:
    folder = tmp_path_factory.getbasetemp() / "any"
    folder.mkdir(exist_ok=True)
    (folder / f"c.{kind}").write_bytes(data)
    found = load_configs(f"--config c.{kind}", folder, folder)
    json.dumps(found.value, allow_nan=False)
    assert found.value is None or found.note == ""
