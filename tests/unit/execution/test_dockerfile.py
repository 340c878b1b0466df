"""Which Dockerfile a card means, and which fit the context."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from madengine.core.errors import BuildError, ConfigurationError
from madengine.execution.dockerfile import (
    Dockerfile,
    Header,
    candidate_names,
    find_dockerfiles,
    inside_package,
    parse_header,
    select_dockerfiles,
)

AMD = "# CONTEXT {'gpu_vendor': 'AMD', 'guest_os': 'UBUNTU'}\n"

FOLDER = [
    "dummy.Dockerfile",
    "gpt2.ubuntu.amd.Dockerfile",
    "gpt2.ubuntu.nvidia.Dockerfile",
    "gpt2.Dockerfile.orig",
    "vllm.Dockerfile",
    "vllm.glmv5.1.ubuntu.amd.Dockerfile",
    "vllm.kimik3.Dockerfile",
    "only.one.two.three.Dockerfile",
    "notes.txt",
    "Dockerfile",
    "a.b c.amd.Dockerfile",
]


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("dummy", ("dummy.Dockerfile",)),
        ("gpt2", ("gpt2.ubuntu.amd.Dockerfile", "gpt2.ubuntu.nvidia.Dockerfile")),
        ("gpt2.ubuntu.amd", ("gpt2.ubuntu.amd.Dockerfile",)),
        ("gpt2.ubuntu.amd.Dockerfile", ("gpt2.ubuntu.amd.Dockerfile",)),
        ("Dockerfile", ("Dockerfile",)),
        # A prefix with dots belongs to another card, so the short one must not sweep it up.
        ("vllm", ("vllm.Dockerfile",)),
        ("vllm.glmv5.1", ("vllm.glmv5.1.ubuntu.amd.Dockerfile",)),
        ("vllm.kimik3", ("vllm.kimik3.Dockerfile",)),
        ("vllm.glmv5", ("vllm.glmv5.1.ubuntu.amd.Dockerfile",)),
        # Only when there is nothing else, everything that begins so.
        ("only", ("only.one.two.three.Dockerfile",)),
        ("a", ("a.b c.amd.Dockerfile",)),
        ("missing", ()),
        ("*", ()),
        ("dum", ()),
        ("notes", ()),
    ],
)
def test_a_prefix_means_these_files(prefix: str, expected: tuple[str, ...]) -> None:
    assert candidate_names(prefix, FOLDER) == expected


@pytest.mark.parametrize(
    ("text", "values", "line"),
    [
        (AMD, {"gpu_vendor": "AMD", "guest_os": "UBUNTU"}, 1),
        ("# syntax=docker/dockerfile:1\n" + AMD, {"gpu_vendor": "AMD", "guest_os": "UBUNTU"}, 2),
        ("\n\n\n\n#CONTEXT {'gpu_vendor': 'CPU'}", {"gpu_vendor": "CPU"}, 5),
        ('# CONTEXT {"gpu_vendor": "NVIDIA",}\r\nFROM x', {"gpu_vendor": "NVIDIA"}, 1),
        ("\n" * 5 + AMD, {}, 0),
        ("FROM x\n# a CONTEXT {'a': 'b'}\n", {}, 0),
        ("# CONTEXTUAL notes\nFROM x\n", {}, 0),
        ("", {}, 0),
    ],
)
def test_the_header_stands_in_the_first_five_lines(text: str, values: dict[str, str], line: int) -> None:
    assert parse_header(text) == Header(values=values, line=line)


@pytest.mark.parametrize(
    ("literal", "problem"),
    [
        ("{'gpu_vendor': 'AMD'", "not a dict literal"),
        ("gpu_vendor=AMD", "not a dict literal"),
        ("__import__('os').system('true')", "not a dict literal"),
        ("['AMD']", "a list instead of a dict"),
        ("{'a': ['b']}", "'a' is not a name with a plain value"),
        ("{1: 'b'}", "1 is not a name with a plain value"),
        ("(" * 3000, "not a dict literal"),
        ("{" + "'a':'b'," * 3000 + "}", "longer than 4096 characters"),
        ("", "not a dict literal"),
    ],
)
def test_a_broken_header_is_a_problem_and_no_crash(literal: str, problem: str) -> None:
    assert parse_header(f"# CONTEXT {literal}\nFROM x\n") == Header(line=1, problem=problem)


@given(st.text())
def test_no_header_text_raises_or_warns(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parse_header("# CONTEXT " + text)


def _file(name: str, **header: str) -> Dockerfile:
    return Dockerfile(Path(name), f"docker/{name}", "", Header(header, 1))


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ({"gpu_vendor": "AMD", "guest_os": "UBUNTU"}, ["amd", "bare"]),
        ({"gpu_vendor": "NVIDIA", "guest_os": "UBUNTU"}, ["nvidia", "bare"]),
        ({"gpu_vendor": "CPU"}, ["bare"]),
        ({}, ["amd", "nvidia", "bare"]),
    ],
)
def test_a_key_that_both_sides_have_must_be_equal(context: dict[str, str], expected: list[str]) -> None:
    files = [_file("amd", gpu_vendor="AMD", guest_os="UBUNTU"), _file("nvidia", gpu_vendor="NVIDIA"), _file("bare")]
    assert [item.path.name for item in select_dockerfiles(files, context).chosen] == expected


def test_when_nothing_fits_the_error_says_what_was_looked_at() -> None:
    with pytest.raises(BuildError) as error:
        select_dockerfiles(
            [_file("x.Dockerfile", gpu_vendor="NVIDIA"), _file("y.Dockerfile", guest_os="CENTOS")],
            {"gpu_vendor": "AMD", "guest_os": "UBUNTU", "other": "x"},
        )
    text = str(error.value)
    assert "gpu_vendor=AMD, guest_os=UBUNTU" in text
    assert "docker/x.Dockerfile is for gpu_vendor=NVIDIA" in text
    assert "docker/y.Dockerfile is for guest_os=CENTOS" in text


def test_a_broken_header_names_file_and_line_and_leaves_the_others() -> None:
    broken = Dockerfile(Path("x"), "docker/x.Dockerfile", "", Header(line=2, problem="not a dict literal"))
    selection = select_dockerfiles([broken, _file("amd", gpu_vendor="AMD")], {"gpu_vendor": "AMD"})
    assert [item.path.name for item in selection.chosen] == ["amd"]
    assert "docker/x.Dockerfile:2" in str(selection.broken[0])


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "docker").mkdir()
    (tmp_path / "docker" / "pyt_vllm.ubuntu.amd.Dockerfile").write_text(AMD + "FROM scratch\n")
    (tmp_path / "docker" / "folder.Dockerfile").mkdir()
    return tmp_path


def test_a_card_finds_its_dockerfile_with_a_name_below_the_package(package: Path) -> None:
    (found,) = find_dockerfiles(package, "./docker/../docker/pyt_vllm")
    assert found.name == "docker/pyt_vllm.ubuntu.amd.Dockerfile"
    assert found.stem == "pyt_vllm.ubuntu.amd"
    assert found.header.values["gpu_vendor"] == "AMD"


@pytest.mark.parametrize(
    ("prefix", "words"),
    [
        ("docker/pyt_vlm", "docker has pyt_vllm.ubuntu.amd"),
        ("docker/quite_different_thing", "no similar Dockerfile"),
        ("docker/folder", "no similar Dockerfile"),
        ("dokcer/x", "there is no folder dokcer"),
        ("", "names no dockerfile"),
        ("../docker/pyt_vllm", "leads out of the package"),
        ("docker/../../x", "leads out of the package"),
        ("/etc/passwd", "leads out of the package"),
        ("docker/\0", "leads out of the package"),
    ],
)
def test_a_missing_dockerfile_names_what_lies_near(package: Path, prefix: str, words: str) -> None:
    with pytest.raises(BuildError, match=words):
        find_dockerfiles(package, prefix)


def test_a_binary_dockerfile_is_a_sentence_with_its_path(package: Path) -> None:
    (package / "docker" / "bin.Dockerfile").write_bytes(b"\xff\xfe\x00\x00FROM x")
    with pytest.raises(ConfigurationError, match=r"bin\.Dockerfile"):
        find_dockerfiles(package, "docker/bin")


@given(st.text(alphabet=st.sampled_from("./a\0 \\$'")))
def test_no_prefix_escapes_the_package(prefix: str) -> None:
    try:
        path = inside_package(prefix)
    except BuildError:
        return
    assert ".." not in path.parts
    assert not path.is_absolute()


def test_when_nothing_fits_both_ways_on_are_told() -> None:
    amd = Dockerfile(Path("m"), "docker/m.ubuntu.amd.Dockerfile", AMD, parse_header(AMD))
    with pytest.raises(BuildError) as refusal:
        select_dockerfiles([amd], {"gpu_vendor": "CPU", "guest_os": "UBUNTU"})
    assert "--engine host" in str(refusal.value)
    assert """--additional-context '{"gpu_vendor": "AMD"}'""" in str(refusal.value)
