"""``madengine discover`` as a person types it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.hostile import CANARY, HOSTILE, canaries
from tests.unit.catalog.packages import card, write_cards, write_script

from madengine.catalog.discovery import discover as find
from madengine.catalog.selection import choose
from madengine.cli.main import main


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder of every test, some folders deep so that nothing can reach another test's."""
    folder = tmp_path / "deep" / "package"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("MODEL_DIR", raising=False)
    return folder


def usual(package: Path) -> None:
    write_cards(package, [card("gpt2", tags=["pyt", "small"], training_precision="fp16"), card("llama", n_gpus="8")])
    write_cards(package, [card("qwen", tags=["pyt"], n_gpus="0")], "vllm")


def test_the_table_shows_name_tags_gpus_and_precision(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    usual(package)
    assert main(["discover"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "NAME       TAGS       GPUS  PRECISION",
        "gpt2       pyt small  all   fp16",
        "llama      t          8",
        "vllm/qwen  pyt        0",
    ]
    assert err.strip() == f"3 models in {package}"


@pytest.mark.parametrize("arguments", [["--tags", "pyt,llama"], ["-t", "pyt", "-t", "llama"], ["--tags", "pyt llama"]])
def test_tags_limit_the_table(arguments: list[str], package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    usual(package)
    assert main(["discover", *arguments, "--json"]) == 0
    out, err = capsys.readouterr()
    assert [model["name"] for model in json.loads(out)["models"]] == ["gpt2", "vllm/qwen", "llama"]
    assert "3 models" in err


def test_json_gives_the_cards_as_they_stand_in_a_manifest(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_cards(package, [card("x", scripts=".", dockerfile="../../docker/y", note="ü")], "d")
    assert main(["discover", "--json", "--tags", "x:k=v"]) == 0
    out, _ = capsys.readouterr()
    (model,) = json.loads(out)["models"]
    assert model == card("d/x", scripts="scripts/d", dockerfile="docker/y", note="ü", args="--k v")


def test_the_package_is_the_option_or_model_dir(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    usual(package)
    monkeypatch.chdir(tmp_path)
    assert main(["discover", "--model-dir", "deep/package"]) == 0
    monkeypatch.setenv("MODEL_DIR", str(package))
    assert main(["discover"]) == 0
    assert capsys.readouterr().out.count("llama") == 2


def test_a_broken_card_is_named_the_others_are_listed_and_the_exit_code_is_4(
    package: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_cards(package, [card("a"), card("b", n_gpus="many"), card("c")])
    assert main(["discover"]) == 4
    out, err = capsys.readouterr()
    assert [line.split()[0] for line in out.splitlines()] == ["NAME", "a", "c"]
    assert "error: models.json[1].n_gpus" in err
    assert '"many"' in err


def test_a_package_with_broken_cards_only_prints_no_table(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_cards(package, [card("b", n_gpus="many")])
    assert main(["discover"]) == 4
    assert capsys.readouterr().out == ""
    assert main(["discover", "--json"]) == 4
    assert json.loads(capsys.readouterr().out) == {"models": []}


def test_many_problems_are_cut_off(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_cards(package, [card(f"b{number}", args=1) for number in range(1000)])
    assert main(["discover"]) == 4
    err = capsys.readouterr().err
    assert len(err.splitlines()) == 52
    assert "950 more problems" in err


def test_a_deprecated_card_is_marked(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_cards(package, [card("old", deprecated=True), card("new")])
    assert main(["discover"]) == 0
    old, new = capsys.readouterr().out.splitlines()[1:]
    assert old.endswith("deprecated")
    assert "deprecated" not in new


def test_a_failing_update_of_a_generated_card_is_named_and_the_others_are_listed(
    package: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    usual(package)
    code = """
    from madengine.utils.discover_models import CustomModel
    class Lazy(CustomModel):
        def update_model(self):
            raise RuntimeError("no checkout")
    def list_models():
        return [Lazy(name="lazy")]
    """
    write_script(package, code)
    assert main(["discover"]) == 0
    assert main(["discover", "--tags", "all"]) == 4
    out, err = capsys.readouterr()
    assert "gen/lazy" in out
    assert "no checkout" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--tags", "gtp2"], "closest: gpt2"),
        (["--tags", ""], "give --tags a tag"),
        (["--tags"], "requires an argument"),
        (["--model-dir", "nowhere"], "no folder"),
        (["extra"], "unexpected extra argument"),
    ],
)
def test_a_mistake_is_a_sentence_and_exit_code_4(
    arguments: list[str], words: str, package: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    usual(package)
    assert main(["discover", *arguments]) == 4
    out, err = capsys.readouterr()
    assert out == ""
    assert words in err
    assert "Traceback" not in err


def test_a_folder_that_is_no_package_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["discover"]) == 4
    assert "is no model package" in capsys.readouterr().err


def test_hostile_texts_go_through_every_field_byte_equal_and_run_nothing(
    package: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fields = ("owner", "url", "args", "data", "training_precision", "multiple_results", "unknown")
    cards = [
        card(f"m{number}", tags=[text], **dict.fromkeys(fields, text), env_vars={"A": text})
        for number, text in enumerate(HOSTILE)
    ]
    write_cards(package, cards)
    assert main(["discover", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["models"] == cards
    assert main(["discover"]) == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) == len(cards) + 1
    assert max(map(len, out.splitlines())) < 1000
    assert "\x1b" not in out
    assert canaries(package) == []


def test_hostile_names_are_listed_byte_equal_or_refused_in_one_line(
    package: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_cards(package, [card(name) for name in HOSTILE])
    assert main(["discover", "--json"]) == 4
    out, err = capsys.readouterr()
    listed = {model["name"] for model in json.loads(out)["models"]}
    assert listed < set(HOSTILE)
    assert len(listed) > 300
    catalog = find(package)
    for name in listed:
        assert [card.name for card, _ in choose(catalog, [name]).picks] == [name]
    assert "\x1b" not in err
    assert canaries(package) == []
    assert CANARY in out


def any_json() -> st.SearchStrategy[Any]:
    scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8))
    return st.recursive(
        scalars,
        lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=8), inner, max_size=4)),
        max_leaves=12,
    )


KEYS = ["name", "tags", "n_gpus", "scripts", "dockerfile", "timeout", "env_vars", "deprecated", "slurm", "args", "x"]
NEAR_CARDS = st.lists(st.dictionaries(st.sampled_from(KEYS), any_json(), max_size=6), max_size=4)


@given(st.one_of(any_json(), NEAR_CARDS), st.sampled_from([[], ["--tags", "all"], ["--json"]]))
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_json_document_gives_a_list_or_sentences_and_never_a_traceback(
    package: Path, capsys: pytest.CaptureFixture[str], document: Any, arguments: list[str]
) -> None:
    write_cards(package, document)
    assert main(["discover", *arguments]) in (0, 4)
    out, err = capsys.readouterr()
    assert "Traceback" not in err + out
    assert "defect" not in err


@given(st.binary(max_size=200))
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_bytes_give_a_list_or_a_sentence(package: Path, capsys: pytest.CaptureFixture[str], content: bytes) -> None:
    (package / "models.json").write_bytes(content)
    assert main(["discover"]) in (0, 4)
    assert "defect" not in capsys.readouterr().err


def test_the_real_package_is_listed_whole(real_mad: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["discover", "--tags", "all", "--model-dir", str(real_mad)]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) > 300
    assert err.count("\n") == 1


def test_a_misspelt_key_is_a_warning_and_no_error(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_cards(package, [card("a", n_gpu="1"), card("b")])
    assert main(["discover"]) == 0
    warning = 'warning: models.json[0].n_gpu (line 10): unknown key "n_gpu" (did you mean "n_gpus"?)'
    assert warning in capsys.readouterr().err.splitlines()
    assert main(["discover", "--tags", "a"]) == 0
    assert warning in capsys.readouterr().err.splitlines()
    assert main(["discover", "--tags", "b"]) == 0
    assert "n_gpu" not in capsys.readouterr().err
