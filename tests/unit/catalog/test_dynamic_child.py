"""The child that runs a package's script, called in this process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.catalog.packages import write_script

from madengine.catalog import dynamic_child
from madengine.utils.discover_models import CustomModel

MODELS = """
from madengine.utils.discover_models import CustomModel
class Lazy(CustomModel):
    def update_model(self):
        self.args = self.name
def list_models():
    return [CustomModel("plain"), Lazy("lazy")]
"""


@pytest.fixture(autouse=True)
def module_is_forgotten() -> Iterator[None]:
    """The script's module name is free again after each test."""
    yield
    sys.modules.pop("get_models_json", None)


def ask(package: Path, code: str, update: list[str] | None = None) -> dict[str, Any]:
    script = write_script(package, code)
    return dynamic_child.run({"script": str(script), "scope": "gen", "update": update})


def test_listing_answers_with_cards_and_the_names_to_update(tmp_path: Path) -> None:
    answer = ask(tmp_path, MODELS)
    assert [model["name"] for model in answer["models"]] == ["plain", "lazy"]
    assert answer["updatable"] == ["lazy"]
    assert answer["models"][0] == CustomModel("plain").to_dict()


def test_updating_answers_with_the_named_cards_under_their_listed_names(tmp_path: Path) -> None:
    answer = ask(tmp_path, MODELS, ["lazy"])
    assert [(model["name"], model["args"]) for model in answer["models"]] == [("lazy", "gen/lazy")]


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("1 / 0", "line 1: ZeroDivisionError: division by zero"),
        ("\n\nx = (", "line 3: SyntaxError: '(' was never closed (get_models_json.py, line 3)"),
        ("raise SystemExit", "line 1: SystemExit"),
        ("x = 1", "it defines no function list_models()"),
        ("def list_models(): return 1", "list_models() gave int, allowed is a list of CustomModel"),
        ("def list_models(): return [1]", "list_models()[0] is of type int, allowed is CustomModel"),
        (MODELS + "list_models = lambda: [CustomModel(name=[print])]", "list_models()[0].name is of type list"),
        (MODELS + "import itertools\nlist_models = lambda: itertools.count()", "list_models() gave more than 5 models"),
    ],
)
def test_what_a_script_does_wrong_is_one_sentence(
    code: str, error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dynamic_child, "MAX_MODELS", 5)
    assert ask(tmp_path, code) == {"error": error}


def test_a_name_that_is_gone_at_the_update_is_named(tmp_path: Path) -> None:
    assert ask(tmp_path, MODELS, ["gone"]) == {"error": "list_models() no longer gives the model 'gone'"}


def test_a_missing_script_is_one_sentence(tmp_path: Path) -> None:
    answer = dynamic_child.run({"script": str(tmp_path / "get_models_json.py"), "scope": "gen", "update": None})
    assert answer["error"].startswith("FileNotFoundError")


def test_the_defaults_of_a_custom_model_are_those_of_a_card() -> None:
    model = CustomModel("x").to_dict()
    assert (model.pop("name"), model.pop("n_gpus"), model.pop("timeout"), model.pop("tags")) == ("x", "-1", 7200, [])
    assert set(model.values()) == {""}
