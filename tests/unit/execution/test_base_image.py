"""The base image of a Dockerfile."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from madengine.execution.base_image import bases, expand, instructions


@pytest.mark.parametrize(
    ("text", "args", "base"),
    [
        ("ARG BASE_DOCKER=rocm/pytorch:latest\nFROM $BASE_DOCKER\n", {}, "rocm/pytorch:latest"),
        ("ARG BASE_DOCKER=rocm/pytorch:latest\nFROM $BASE_DOCKER\n", {"BASE_DOCKER": "mine:1"}, "mine:1"),
        ("ARG BASE_DOCKER=rocm/a:1 # the newest\nFROM ${BASE_DOCKER} AS base\n", {}, "rocm/a:1"),
        ('ARG BASE_DOCKER="rocm/a:1"\nFROM ${BASE_DOCKER}\n', {}, "rocm/a:1"),
        ("ARG BASE_DOCKER='rocm/a:1'\nFROM ${BASE_DOCKER}\n", {}, "rocm/a:1"),
        ("# a licence\n" * 25 + "ARG OTHER=1\nARG BASE_DOCKER=a:1\nFROM $BASE_DOCKER\n", {}, "a:1"),
        ("ARG V=2\nARG BASE_DOCKER=a:${V}\nFROM $BASE_DOCKER\n", {}, "a:2"),
        ("ARG V=2\nARG BASE_DOCKER=a:${V}\nFROM $BASE_DOCKER\n", {"V": "3"}, "a:3"),
        ("ARG V\nARG BASE_DOCKER=a:${V:-7}\nFROM $BASE_DOCKER\n", {}, "a:7"),
        ("ARG BASE_DOCKER=a:1\nFROM $BASE_DOCKER AS one\nFROM one\nARG BASE_DOCKER=b:1\n", {}, "a:1"),
        ("ARG BASE_DOCKER=a:1\nFROM x AS one\nFROM $BASE_DOCKER\n", {}, "a:1"),
        ("FROM busybox AS one\nFROM one\n", {}, "busybox"),
        ("ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\n", {"BASE_IMAGE": "x:1"}, "x:1"),
        ("ARG A=1 BASE_DOCKER=x:1\nFROM ${BASE_DOCKER}\n", {}, "x:1"),
        ("arg BASE_DOCKER=x:1\nfrom ${BASE_DOCKER} as y\n", {}, "x:1"),
        ("FROM --platform=linux/amd64 x:1\n", {}, "x:1"),
        ("FROM scratch\n", {}, "scratch"),
        ("", {}, ""),
    ],
)
def test_the_base_that_results_name(text: str, args: dict[str, str], base: str) -> None:
    assert bases(text, args).base_docker == base


def test_all_stages_count_as_bases_but_their_names_do_not() -> None:
    text = "FROM a:1 AS One\nFROM b:1 AS two\nFROM one\nFROM scratch\nFROM a:1\n"
    assert bases(text, {}).images == ("a:1", "b:1")


@pytest.mark.parametrize("default", ["ARG BASE_IMAGE", "ARG BASE_IMAGE="])
def test_a_base_without_a_value_is_told_with_its_line(default: str) -> None:
    assert bases(f"{default}\nFROM ${{BASE_IMAGE}}\n", {}).unset == ((2, "${BASE_IMAGE}"),)


def test_a_tag_without_a_value_is_told_too() -> None:
    assert bases("ARG V\nFROM rocm/a:$V\n", {}).unset == ((2, "rocm/a:$V"),)


def test_predefined_arguments_have_values_that_only_the_builder_knows() -> None:
    found = bases("FROM x-${TARGETARCH}\n", {})
    assert (found.images, found.unset) == ((), ())


def test_arguments_are_listed_with_their_defaults() -> None:
    found = bases("ARG A\nARG B=2\nFROM x\nARG MAD_SYSTEM_GPU_ARCHITECTURE # needed\nARG A=1\n", {})
    assert found.arguments == {"A": "1", "B": "2", "MAD_SYSTEM_GPU_ARCHITECTURE": None}


def test_continuation_lines_comments_and_heredocs_are_no_instructions() -> None:
    text = (
        "# escape=\\\nRUN a && \\\n  # why\n\n  b\nRUN <<EOF\nFROM evil\nEOF\nCOPY <<'A' <<-B /\nFROM x\nA\nFROM y\nB\n"
        "RUN cat <<NEVER\nFROM real:1\n"
    )
    assert [(item.keyword, item.line) for item in instructions(text)] == [
        ("RUN", 2),
        ("RUN", 6),
        ("COPY", 9),
        ("RUN", 14),
        ("FROM", 15),
    ]


def test_a_backtick_may_be_the_escape_character() -> None:
    assert bases("# escape=`\nARG `\n  BASE_DOCKER=x:`\n1\nFROM $BASE_DOCKER\n", {}).base_docker == "x:1"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$A", "1"),
        ("${A}", "1"),
        ("${A:-2}", "1"),
        ("${E:-2}", "2"),
        ("${E-2}", ""),
        ("${N-2}", "2"),
        ("${A:+2}", "2"),
        ("${N+2}", ""),
        ("${N:-${A}}", "1"),
        ("$N", ""),
        ("$$", "$$"),
        ("${", "${"),
    ],
)
def test_variables_are_replaced_as_the_builder_does(text: str, expected: str) -> None:
    assert expand(text, {"A": "1", "E": ""}) == expected


def test_arguments_that_double_each_other_do_not_explode() -> None:
    lines = ["ARG A0=xxxxxxxxxx"] + [f"ARG A{n + 1}=$A{n}$A{n}" for n in range(200)]
    assert bases("\n".join([*lines, "FROM $A200"]), {}).images == ()


@given(st.text(alphabet=st.sampled_from("ARGFOM \n\\$#{}=:-'\"<EOF`")))
def test_no_text_breaks_the_reader(text: str) -> None:
    bases(text, {"A": "1"})
