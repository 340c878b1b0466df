"""Finding a package and reading all its cards."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.unit.catalog.packages import card, write_cards, write_script

from madengine.catalog.discovery import Catalog, discover, package_root
from madengine.catalog.problems import ProblemKind
from madengine.core.errors import DiscoveryError


def names(catalog: Catalog) -> list[str]:
    return [item.name for item in catalog.cards]


@pytest.mark.parametrize(
    ("argument", "environment", "expected"),
    [
        ("given", {"MODEL_DIR": "other"}, "given"),
        (None, {"MODEL_DIR": "other"}, "other"),
        (None, {"MODEL_DIR": ""}, ""),
    ],
)
def test_the_package_is_the_argument_else_model_dir_else_the_current_folder(
    argument: str | None,
    environment: dict[str, str],
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("given", "other"):
        (tmp_path / folder).mkdir()
    assert package_root(argument, environment) == tmp_path / expected


@pytest.mark.parametrize("name", ["missing", "file", "x" * 5000])
def test_a_package_that_is_no_folder_is_named_with_the_variable(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DiscoveryError, match=r"no folder.*MODEL_DIR is set to it"):
        package_root(None, {"MODEL_DIR": str(tmp_path / name)})


def test_a_folder_without_cards_says_what_was_looked_for(tmp_path: Path) -> None:
    (tmp_path / "scripts" / "common").mkdir(parents=True)
    with pytest.raises(DiscoveryError) as caught:
        discover(tmp_path)
    text = str(caught.value)
    assert all(word in text for word in ("models.json", "scripts/*/models.json", "get_models_json.py", "MODEL_DIR"))


def test_a_package_whose_files_are_empty_lists_is_named_with_them(tmp_path: Path) -> None:
    write_cards(tmp_path, [])
    write_script(tmp_path, "def list_models(): return []")
    with pytest.raises(DiscoveryError, match=r"has no models: models.json, scripts/gen/get_models_json.py are empty"):
        discover(tmp_path)


def test_cards_of_root_and_folders_are_listed_with_paths_relative_to_the_package(tmp_path: Path) -> None:
    write_cards(tmp_path, [card("root")])
    write_cards(tmp_path, [card("x", dockerfile="../../docker/y.glm5", scripts="run.sh", note={"a": 1})], "vllm")
    catalog = discover(tmp_path)
    assert names(catalog) == ["root", "vllm/x"]
    assert catalog.problems == ()
    inner = catalog.cards[1]
    assert (inner.text("dockerfile"), inner.text("scripts")) == ("docker/y.glm5", "scripts/vllm/run.sh")
    assert (inner.scope, inner.short_name, inner.raw["note"]) == ("vllm", "x", {"a": 1})


@pytest.mark.parametrize("root", ["[]", None])
def test_an_empty_or_absent_root_file_is_fine_when_folders_have_cards(root: str | None, tmp_path: Path) -> None:
    if root is not None:
        write_cards(tmp_path, root)
    write_cards(tmp_path, [card("x")], "a")
    catalog = discover(tmp_path)
    assert (names(catalog), catalog.problems) == (["a/x"], ())


def test_folders_deeper_than_one_level_hold_no_cards(tmp_path: Path) -> None:
    write_cards(tmp_path, [card("x")], "a")
    write_cards(tmp_path, [card("y")], "a/b")
    assert names(discover(tmp_path)) == ["a/x"]


@pytest.mark.parametrize(
    ("broken", "place", "words"),
    [
        ({"name": "b", "n_gpus": "many"}, "models.json[1].n_gpus", ["many"]),
        ({"n_gpus": "1"}, "models.json[1]", ["name"]),
        ({"name": 5}, "models.json[1].name", ["5"]),
        ("text", "models.json[1]", ["text"]),
        (None, "models.json[1]", ["null"]),
        ({"name": "b", "tags": [1]}, "models.json[1].tags[0]", ["1"]),
        ({"name": "b", "env_vars": {"A": None}}, "models.json[1].env_vars.A", ["null"]),
        ({"name": "b", "scripts": "../x.sh"}, "models.json[1].scripts", ["../x.sh", "leaves the package"]),
        ({"name": "b", "dockerfile": "/etc/x"}, "models.json[1].dockerfile", ["/etc/x", "absolute"]),
        ({"name": "../b"}, "models.json[1].name", ["../b"]),
        ({"name": "b\nc"}, "models.json[1].name", ["b\\nc", "control characters"]),
        ({"name": " "}, "models.json[1].name", ["empty"]),
    ],
)
def test_a_broken_card_names_file_index_field_and_fault_and_the_others_are_listed(
    broken: Any, place: str, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_cards(tmp_path, [card("a"), broken, card("c")])
    catalog = discover(tmp_path)
    assert names(catalog) == ["a", "c"]
    assert len(catalog.problems) == 1
    text = str(catalog.problems[0])
    assert text.startswith(f"{place} (line ")
    assert all(word in text for word in words)
    assert catalog.problems[0].kind is ProblemKind.CARD


def test_the_line_of_a_broken_card_is_the_one_in_the_file(tmp_path: Path) -> None:
    write_cards(tmp_path, '[\n{"name": "a"},\n{"name": "b",\n "n_gpus": "many"}\n]')
    assert discover(tmp_path).problems[0].line == 4


def test_a_path_that_leaves_the_package_from_a_folder_is_a_problem_of_that_card(tmp_path: Path) -> None:
    write_cards(tmp_path, [card("x", scripts="../../../x.sh"), card("y", scripts=".")], "a")
    catalog = discover(tmp_path)
    assert names(catalog) == ["a/y"]
    assert catalog.cards[0].text("scripts") == "scripts/a"
    assert "../../../x.sh" in str(catalog.problems[0])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"{}", "found an object, allowed is a list"),
        (b'"x"', "found a string, allowed is a list"),
        (b"null", "found null, allowed is a list"),
        (b"true", "found true or false, allowed is a list"),
        (b'[{"name": "a"', "not complete JSON"),
        (b'[{"name": "a", "name": "b"}]', "stands twice"),
        (b"\x89PNG\r\n\x00\x01", "binary"),
        ('[{"name": "a"}]'.encode("utf-16"), "UTF-16"),
        (b'[{"name": "\xff"}]', "not UTF-8"),
        (b"[" * 100_000, "nested"),
        (b'[{"name": "a", "timeout": NaN}]', "NaN"),
    ],
)
def test_an_unreadable_file_is_named_and_the_other_files_are_listed(content: bytes, words: str, tmp_path: Path) -> None:
    write_cards(tmp_path, [card("x")], "good")
    write_cards(tmp_path, "", "bad").write_bytes(content)
    catalog = discover(tmp_path)
    assert names(catalog) == ["good/x"]
    (problem,) = catalog.problems
    assert problem.kind is ProblemKind.FILE
    assert "bad/models.json" in problem.where
    assert words in problem.message
    assert "\n" not in str(problem)


def test_a_models_json_that_is_a_folder_or_a_dangling_link_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "models.json").mkdir()
    (tmp_path / "scripts" / "a").mkdir(parents=True)
    (tmp_path / "scripts" / "a" / "models.json").symlink_to("nowhere")
    assert [problem.kind for problem in discover(tmp_path).problems] == [ProblemKind.FILE] * 2


def test_the_place_of_a_syntax_error_is_line_and_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_cards(tmp_path, '[\n{"name": "a",}]')
    assert discover(tmp_path).problems[0].where.startswith("models.json:2:")


def test_a_byte_order_mark_and_crlf_are_fine(tmp_path: Path) -> None:
    write_cards(tmp_path, "").write_bytes(b'\xef\xbb\xbf[\r\n{"name": "a"}\r\n]\r\n')
    catalog = discover(tmp_path)
    assert (names(catalog), catalog.problems) == (["a"], ())


def test_the_first_of_two_cards_with_one_name_counts_and_both_places_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_cards(tmp_path, [card("a", args="first"), card("b"), card("a", args="second"), card("v/x")])
    write_cards(tmp_path, [card("x")], "v")
    catalog = discover(tmp_path)
    assert names(catalog) == ["a", "b", "v/x"]
    assert catalog.cards[0].text("args") == "first"
    assert [problem.kind for problem in catalog.problems] == [ProblemKind.DUPLICATE] * 2
    assert "models.json[0]" in catalog.problems[0].message
    assert catalog.problems[0].where == "models.json[2].name"
    assert catalog.problems[1].where == "scripts/v/models.json[0].name"


def test_one_short_name_in_two_folders_is_no_duplicate(tmp_path: Path) -> None:
    write_cards(tmp_path, [card("x")])
    write_cards(tmp_path, [card("x")], "a")
    write_cards(tmp_path, [card("x")], "b")
    assert discover(tmp_path).problems == ()


def test_both_kinds_of_file_in_one_folder_are_a_problem_of_the_folder(tmp_path: Path) -> None:
    write_cards(tmp_path, [card("x")])
    write_cards(tmp_path, [card("y")], "both")
    write_script(tmp_path, "raise SystemExit(1)", "both")
    catalog = discover(tmp_path)
    assert names(catalog) == ["x"]
    (problem,) = catalog.problems
    assert problem.file == tmp_path / "scripts" / "both"
    assert "get_models_json.py" in problem.message


def test_a_folder_whose_name_holds_a_line_break_is_a_problem(tmp_path: Path) -> None:
    write_cards(tmp_path, [card("x")], "a\nb")
    catalog = discover(tmp_path)
    assert catalog.cards == ()
    assert "control characters" in catalog.problems[0].message


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every folder")
def test_a_scripts_folder_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    write_cards(tmp_path, [card("x")])
    (tmp_path / "scripts").mkdir(mode=0)
    assert "cannot be read" in discover(tmp_path).problems[0].message


def test_nothing_is_written_into_the_package(tmp_path: Path) -> None:
    write_cards(tmp_path, [card("x")])
    write_script(tmp_path, "import helper\ndef list_models(): return []")
    (tmp_path / "scripts" / "gen" / "helper.py").write_text("")
    before = sorted(tmp_path.rglob("*"))
    assert discover(tmp_path).problems == ()
    assert sorted(tmp_path.rglob("*")) == before


def test_the_real_root_cards_are_listed_without_a_remark(real_mad: Path, tmp_path: Path) -> None:
    (tmp_path / "models.json").symlink_to(real_mad / "models.json")
    catalog = discover(tmp_path)
    written = json.loads((real_mad / "models.json").read_text())
    assert [item.to_manifest() for item in catalog.cards] == written
    assert catalog.problems == ()


def test_the_real_cards_of_the_folders_are_listed_without_a_remark(real_mad: Path, tmp_path: Path) -> None:
    (tmp_path / "scripts").symlink_to(real_mad / "scripts")
    catalog = discover(tmp_path)
    count = sum(len(json.loads(file.read_text())) for file in (real_mad / "scripts").glob("*/models.json"))
    assert len(catalog.cards) == count > 100
    assert catalog.problems == ()
    nested = next(item for item in catalog.cards if item.scope == "vllm")
    assert nested.text("scripts").startswith("scripts/vllm/")
    assert nested.text("dockerfile").startswith("docker/")
