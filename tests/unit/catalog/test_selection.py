"""Which cards the words after --tags mean."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.hostile import HOSTILE
from tests.unit.catalog.packages import card, write_cards, write_script

from madengine.catalog.card import ModelCard
from madengine.catalog.discovery import Catalog, discover
from madengine.catalog.selection import choose, select
from madengine.core.errors import ConfigurationError, DiscoveryError

CARDS = (
    ("gpt2", "", ["pyt", "small"]),
    ("llama", "", ["pyt", "llm"]),
    ("my model", "", ["odd"]),
    ("a:b", "", ["odd"]),
    ("vllm/llama", "vllm", ["pyt", "llm"]),
    ("vllm/qwen", "vllm", ["pyt", "qwen-tag"]),
    ("sglang/qwen", "sglang", ["sgl", "all-reduce"]),
    ("sglang/mixtral", "sglang", ["sgl", "pyt"]),
)


def catalog_of(*cards: ModelCard) -> Catalog:
    return Catalog(Path("package"), cards)


CATALOG = catalog_of(*(ModelCard({"name": name, "tags": tags}, scope=scope) for name, scope, tags in CARDS))


def picked(*tags: str, catalog: Catalog = CATALOG, **options: Any) -> list[tuple[str, str]]:
    return [(item.name, item.text("args")) for item in select(catalog, tags, **options)]


@pytest.mark.parametrize(
    ("tags", "names"),
    [
        (["all"], [name for name, _, _ in CARDS]),
        (["small"], ["gpt2"]),
        (["pyt"], ["gpt2", "llama", "vllm/llama", "vllm/qwen", "sglang/mixtral"]),
        (["gpt2"], ["gpt2"]),
        (["llama"], ["llama"]),
        (["vllm/llama"], ["vllm/llama"]),
        (["mixtral"], ["sglang/mixtral"]),
        (["vllm/all"], ["vllm/llama", "vllm/qwen"]),
        (["vllm/pyt"], ["vllm/llama", "vllm/qwen"]),
        (["sglang/pyt"], ["sglang/mixtral"]),
        (["sglang/qwen"], ["sglang/qwen"]),
        (["mixtral,gpt2"], ["sglang/mixtral", "gpt2"]),
        (["mixtral gpt2"], ["sglang/mixtral", "gpt2"]),
        ([" mixtral ,\t gpt2,, "], ["sglang/mixtral", "gpt2"]),
        (["mixtral", "gpt2"], ["sglang/mixtral", "gpt2"]),
        (["gpt2", "small", "gpt2"], ["gpt2"]),
        (["my model"], ["my model"]),
        (["a:b"], ["a:b"]),
        (["a:b,gpt2"], ["a:b", "gpt2"]),
    ],
)
def test_words_select_cards_in_their_order(tags: list[str], names: list[str]) -> None:
    assert [name for name, _ in picked(*tags)] == names


@pytest.mark.parametrize(
    ("tags", "picks"),
    [
        (["gpt2:batch=3:quick"], [("gpt2", "--batch 3 --quick")]),
        (["small:quick"], [("gpt2", "--quick")]),
        (["gpt2", "gpt2:x=1", "gpt2:x=1", "gpt2:x=2"], [("gpt2", ""), ("gpt2", "--x 1"), ("gpt2", "--x 2")]),
        (["gpt2:x=a=b"], [("gpt2", "--x a=b")]),
        (["gpt2:x="], [("gpt2", "--x ''")]),
        (["gpt2:x=$(id);y"], [("gpt2", "--x '$(id);y'")]),
        (["my model:x=two words"], [("my model", "--x 'two words'")]),
        (["a:b:x=1"], [("a:b", "--x 1")]),
        (["vllm/all:n=2"], [("vllm/llama", "--n 2"), ("vllm/qwen", "--n 2")]),
        (["all:n=2"], [(name, "--n 2") for name, _, _ in CARDS]),
    ],
)
def test_extra_arguments_are_appended_as_shell_words(tags: list[str], picks: list[tuple[str, str]]) -> None:
    assert picked(*tags) == picks


@pytest.mark.parametrize(
    ("argument", "picks"),
    [
        ("b c", [("s/one", "")]),
        ("a, b c", [("s/two", "")]),
        ("s/b c", [("s/one", "")]),
        ("b c:x=1", [("s/one", "--x 1")]),
        ("u:v", [("s/two", "")]),
        ("u:v:x=1", [("s/two", "--x 1")]),
        ("two words", [("s/two words", "")]),
        ("a b", [("s/one", ""), ("s/two", "")]),
        ("b, c", [("s/two", "")]),
    ],
)
def test_an_argument_that_is_a_tag_or_name_is_taken_whole(argument: str, picks: list[tuple[str, str]]) -> None:
    cards = {"s/one": "a, b c", "s/two": ["b", "c", "a, b c", "u:v"], "s/two words": []}
    catalog = catalog_of(*(ModelCard({"name": name, "tags": tags}, scope="s") for name, tags in cards.items()))
    assert picked(argument, catalog=catalog) == picks


def test_extra_arguments_follow_the_args_of_the_card() -> None:
    catalog = catalog_of(ModelCard({"name": "x", "args": "--a 'b c'"}))
    assert picked("x:k=v:f", catalog=catalog) == [("x", "--a 'b c' --k v --f")]


def test_hostile_values_and_flags_are_one_word_each_and_come_back_byte_equal() -> None:
    texts = [text for text in HOSTILE if text and ":" not in text]
    assert len(texts) > 400
    for text in texts:
        assert shlex.split(picked(f"my model:key={text}")[0][1]) == ["--key", text]
    for text in texts:
        if "=" not in text:
            assert shlex.split(picked(f"my model:{text}")[0][1]) == [f"--{text}"]


@pytest.mark.parametrize(
    ("tag", "words"),
    [
        ("gtp2", ['"gtp2"', "closest: gpt2"]),
        ("GPT2", ["closest: gpt2"]),
        ("vlm/all", ["closest: vllm/all"]),
        ("vllm/mixtral", ['"vllm/mixtral"']),
        ("zzzzzzzz", ["`madengine discover` lists"]),
        ("x" * 5000, ["..."]),
        ("a\x1bb", ["a\\x1bb"]),
        ("gtp2:x=1", ['"gtp2"']),
        ("qwen", ["short name of 2 models", '"vllm/qwen", "sglang/qwen"']),
        (":x=1", ["nothing before the colon"]),
        ("gpt2:", ["without a name"]),
        ("gpt2::x", ["without a name"]),
        ("gpt2:=1", ["without a name"]),
        ("/", ['"/"']),
        ("vllm/", ['"vllm/"']),
        ("/all", ['"/all"']),
    ],
)
def test_a_word_that_selects_nothing_is_named_with_what_may_be_meant(tag: str, words: list[str]) -> None:
    with pytest.raises(DiscoveryError) as caught:
        picked(tag)
    text = str(caught.value)
    assert all(word in text for word in words), text
    assert caught.value.exit_code == 4
    assert len(text) < 500


@pytest.mark.parametrize("tags", [[], [""], [" , ", ""]])
def test_no_word_at_all_teaches_what_to_type(tags: list[str]) -> None:
    with pytest.raises(DiscoveryError, match=r"--tags a tag, .*pyt \(5\)"):
        picked(*tags)


def test_one_good_word_does_not_make_up_for_a_wrong_one() -> None:
    with pytest.raises(DiscoveryError, match="nowhere"):
        picked("gpt2", "nowhere")


DEPRECATED = catalog_of(
    ModelCard({"name": "old", "tags": ["t"], "deprecated": True}), ModelCard({"name": "new", "tags": ["t"]})
)


def test_a_deprecated_card_is_left_out_and_this_is_said() -> None:
    said: list[str] = []
    assert picked("t", catalog=DEPRECATED, warn=said.append) == [("new", "")]
    assert len(said) == 1
    assert '"old"' in said[0]
    assert "--ignore-deprecated" in said[0]


def test_a_deprecated_card_can_be_selected_all_the_same() -> None:
    assert picked("t", catalog=DEPRECATED, ignore_deprecated=True) == [("old", ""), ("new", "")]


def test_asking_only_for_a_deprecated_card_is_an_error() -> None:
    with pytest.raises(DiscoveryError, match=r"nothing to run: .*deprecated: \"old\".*--ignore-deprecated"):
        picked("old", catalog=DEPRECATED)


@pytest.fixture
def broken(tmp_path: Path) -> Catalog:
    """A package with good and broken cards, a broken file and a broken script."""
    write_cards(tmp_path, [card("good", tags=["g"]), card("bad", tags=["b"], n_gpus="many"), {"n_gpus": 1}])
    write_cards(tmp_path, "{", "torn")
    write_cards(tmp_path, [card("fine", tags=["g"])], "torn2")
    return discover(tmp_path)


@pytest.mark.parametrize("tag", ["good", "g", "torn2/all", "fine"])
def test_broken_cards_that_nobody_asked_for_are_warned_about(tag: str, broken: Catalog) -> None:
    said: list[str] = []
    assert picked(tag, catalog=broken, warn=said.append)
    assert len(said) == 3
    assert "n_gpus" in said[0]


@pytest.mark.parametrize(
    ("tag", "words"),
    [
        ("bad", "many"),
        ("b", "many"),
        ("all", "and 2 more"),
        ("torn/all", "torn/models.json"),
        ("torn/anything", "torn/models.json"),
        ("good,bad", "many"),
    ],
)
def test_asking_for_a_broken_card_says_what_is_wrong_with_it(tag: str, words: str, broken: Catalog) -> None:
    with pytest.raises(DiscoveryError) as caught:
        picked(tag, catalog=broken)
    assert words in str(caught.value)


def test_a_wrong_word_in_a_package_with_unreadable_files_says_so(broken: Catalog) -> None:
    with pytest.raises(DiscoveryError, match="1 file of the package could not be read"):
        picked("nowhere", catalog=broken)


def test_many_problems_make_few_warnings(tmp_path: Path) -> None:
    write_cards(tmp_path, [card("good"), *(card(f"b{number}", tags=["b"], args=1) for number in range(40))])
    said: list[str] = []
    picked("good", catalog=discover(tmp_path), warn=said.append)
    assert len(said) == 11
    assert "30 more problems" in said[-1]


UPDATING = """
from madengine.utils.discover_models import CustomModel
class Lazy(CustomModel):
    def update_model(self):
        if "broken" in self.name:
            raise RuntimeError("no checkout")
        self.scripts, self.args, self.n_gpus = "../late/run.sh", "--updated", "many" if "bad" in self.name else "2"
def list_models():
    return [Lazy(name="lazy"), CustomModel(name="plain", args="--p"), Lazy(name="broken"), Lazy(name="bad")]
"""


def test_a_generated_card_is_updated_when_it_is_selected(tmp_path: Path) -> None:
    write_script(tmp_path, UPDATING)
    catalog = discover(tmp_path)
    first, second, third = select(catalog, ["lazy:x=1", "plain", "lazy"])
    assert (first.name, first.text("args"), first.n_gpus) == ("gen/lazy", "--updated --x 1", 2)
    assert first.text("scripts") == "scripts/late/run.sh"
    assert (second.text("args"), third.text("args")) == ("--p", "--updated")


@pytest.mark.parametrize(("tag", "words"), [("broken", "no checkout"), ("bad", "after update_model.*many")])
def test_an_update_that_fails_is_an_error_of_the_selection(tag: str, words: str, tmp_path: Path) -> None:
    write_script(tmp_path, UPDATING)
    catalog = discover(tmp_path)
    with pytest.raises(DiscoveryError, match=words):
        select(catalog, [tag])


@given(st.lists(st.text(max_size=30), max_size=4))
@settings(max_examples=200)
def test_any_words_give_cards_or_one_clear_sentence(tags: list[str]) -> None:
    try:
        assert select(CATALOG, tags)
    except ConfigurationError as error:
        assert "\n" not in str(error)
        assert len(str(error)) < 1000


WORDS = [word for name, scope, tags in CARDS for word in (name, f"{scope}/all", *tags)]
PIECES = st.sampled_from([*WORDS, "all", ":", ":x=1", ",", " ", "/", "=", "'"])


@given(st.lists(PIECES, max_size=6).map("".join))
@settings(max_examples=300)
def test_pieces_of_the_grammar_in_any_order_give_cards_or_one_clear_sentence(argument: str) -> None:
    try:
        cards = select(CATALOG, [argument])
    except ConfigurationError:
        return
    assert cards
    assert len({(item.name, item.text("args")) for item in cards}) == len(cards)
    assert all(shlex.split(item.text("args")) is not None for item in cards)


def test_the_real_package_can_be_asked_in_every_way(real_mad: Path) -> None:
    catalog = discover(real_mad)
    assert len(select(catalog, ["all"])) == len(catalog.cards) > 300
    short = "pyt_huggingface_gpt2"
    assert [item.name for item in select(catalog, [short])] == [short]
    assert [item.name for item in select(catalog, [f"huggingface_gpt2/{short}"])] == [f"huggingface_gpt2/{short}"]
    assert {item.scope for item in select(catalog, ["vllm/all"])} == {"vllm"}
    for item in catalog.cards:
        assert choose(catalog, [item.name]).picks[0][0] is item


def test_a_misspelt_key_is_a_warning_of_the_cards_that_are_selected(tmp_path: Path) -> None:
    write_cards(tmp_path, [card("a", n_gpu="1"), card("b", timeouts=1, slurm={"node": 1})])
    write_cards(tmp_path, [card("c", arg="x")], "vllm")
    catalog = discover(tmp_path)
    assert len(catalog.cards) == 3
    for tag, keys in {"a": ["n_gpu"], "b": ["timeouts", "node"], "c": ["arg"], "vllm/all": ["arg"]}.items():
        said: list[str] = []
        assert select(catalog, [tag], warn=said.append)
        assert [text.split('"')[1] for text in said] == keys
    said = []
    select(catalog, ["a"], warn=said.append)
    assert said[0].endswith('models.json[0].n_gpu (line 10): unknown key "n_gpu" (did you mean "n_gpus"?)')


def test_a_misspelt_key_of_a_generated_card_is_said_once(tmp_path: Path) -> None:
    write_script(
        tmp_path,
        """
        from madengine.utils.discover_models import CustomModel
        class Lazy(CustomModel):
            def update_model(self):
                self.args = "--late"
        def list_models():
            lazy = Lazy(name="lazy", scripts="run.sh")
            lazy.env_var = {"A": "1"}
            return [lazy]
        """,
    )
    said: list[str] = []
    (found,) = select(discover(tmp_path), ["lazy"], warn=said.append)
    assert found.text("args") == "--late"
    assert len(said) == 1
    assert 'did you mean "env_vars"?' in said[0]


def test_a_misspelt_key_does_not_hide_a_broken_card_that_is_asked_for(tmp_path: Path) -> None:
    write_cards(tmp_path, [card("y", n_gpu="1", tags=["x"])], "one")
    write_cards(tmp_path, [card("x", tags=5)], "two")
    with pytest.raises(DiscoveryError) as caught:
        select(discover(tmp_path), ["x"])
    assert "two/models.json[0].tags" in str(caught.value)
