"""What an image is called."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from madengine.execution.image_names import image_name, is_reference, registry_image


@pytest.mark.parametrize(
    ("model", "stem", "architecture", "expected"),
    [
        ("dummy", "dummy", "", "ci-dummy_dummy"),
        ("dummy", "dummy.ubuntu.amd", "gfx942", "ci-dummy_dummy.ubuntu.amd_gfx942"),
        ("pyt_vllm/llama-3.1-8b", "pyt_vllm.ubuntu.amd", "", "ci-pyt_vllm_llama-3.1-8b_pyt_vllm.ubuntu.amd"),
        ("jax-maxtext/maxtext_MI355X_8B", "jax", "", "ci-jax-maxtext_maxtext_mi355x_8b_jax"),
    ],
)
def test_ordinary_names_follow_the_contract(model: str, stem: str, architecture: str, expected: str) -> None:
    assert image_name(model, stem, architecture) == expected


HOSTILE = [
    "a b",
    "é",
    "a;b",
    "$(x)",
    "",
    "a'",
    'a"',
    "-",
    "../x",
    "a\nb",
    "x" * 300,
    "..",
    "a___b",
    "_",
    "\ud800",
    "💥",
]


@pytest.mark.parametrize("model", HOSTILE)
def test_hostile_names_become_valid_ones(model: str) -> None:
    name = image_name(model, "d.ubuntu.amd")
    assert is_reference(name)
    assert is_reference(f"repo/name:{name}")


@given(st.text(), st.text(max_size=20))
def test_every_name_is_valid_both_as_a_repository_and_as_a_tag(model: str, stem: str) -> None:
    name = image_name(model, stem)
    assert is_reference(name)
    assert is_reference(f"repo:{name}")


def test_hostile_names_stay_apart() -> None:
    names = {image_name(model, "d") for model in [*HOSTILE, "a  b", "x" * 301, "a;c"]}
    assert len(names) == len(HOSTILE) + 3


def test_all_real_cards_keep_the_name_of_the_contract(real_mad: Path) -> None:
    for card in json.loads((real_mad / "models.json").read_text()):
        stem = card["dockerfile"].rsplit("/", 1)[-1] + ".ubuntu.amd"
        assert image_name(card["name"], stem) == f"ci-{card['name']}_{stem}".lower()


@pytest.mark.parametrize(
    ("registry", "repository", "expected"),
    [
        ("docker.io", "rocm/mad-private", "rocm/mad-private:ci-x"),
        ("dockerhub", "rocm/mad-private", "rocm/mad-private:ci-x"),
        ("localhost:5000", "", "localhost:5000/ci-x"),
        ("registry.site/", "team/mad", "registry.site/team/mad:ci-x"),
    ],
)
def test_names_in_a_registry(registry: str, repository: str, expected: str) -> None:
    assert registry_image("ci-x", registry, repository) == expected


@pytest.mark.parametrize("text", ["busybox", "rocm/vllm:v1", "h:5000/a/b@sha256:" + "a" * 64, "Host.x/a", "a:B_c.d"])
def test_references_that_docker_accepts(text: str) -> None:
    assert is_reference(text)


@pytest.mark.parametrize("text", ["", "<supply-your-image>", "-v/:/x", "a b", "a/B", "a:", "a\n", "a;b", "x" * 600])
def test_references_that_docker_refuses(text: str) -> None:
    assert not is_reference(text)
