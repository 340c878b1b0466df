"""Which variables a script is given, and which of them are secrets."""

from __future__ import annotations

from typing import Any

import pytest
from tests.hostile import HOSTILE

from madengine.execution.spec import GpuGrant
from madengine.orchestration.environment import assemble, machine_facts, rocm_path

CANARY = "canary-7f3a9e"


def test_later_layers_win_and_configured_ones_win_over_facts() -> None:
    found = assemble(({"A": "1", "B": "1", "C": "1"}, {"B": "2", "C": "2"}), ({"C": "3"}, {"C": "4"}), {})
    assert found.plain == {"A": "1", "B": "2", "C": "4"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$HOME_DIR", "/h"),
        ("${HOME_DIR}/x", "/h/x"),
        ("a$HOME_DIR:$HOME_DIR", "a/h:/h"),
        ("$(id)", "$(id)"),
        ("`id`", "`id`"),
        ("${HOME_DIR:-x}", "${HOME_DIR:-x}"),
        ("$1", "$1"),
        ("'$HOME_DIR'", "'/h'"),
        ("$LITERAL", "$HOME_DIR"),
        ("line\nline", "line\nline"),
    ],
)
def test_exactly_two_forms_of_a_reference_are_expanded_once(text: str, expected: str) -> None:
    inherited = {"HOME_DIR": "/h", "LITERAL": "$HOME_DIR"}
    assert assemble((), ({"V": text},), inherited).plain == {"V": expected}


def test_a_reference_sees_the_inherited_environment_not_other_variables_of_the_run() -> None:
    found = assemble(({"FACT": "fact"},), ({"A": "new", "B": "$A", "C": "$FACT"},), {"A": "old"})
    assert found.plain == {"FACT": "fact", "A": "new", "B": "old", "C": ""}
    assert found.unset == (("C", "FACT"),)


def test_a_name_that_is_not_set_is_told_with_the_variable_that_refers_to_it_once() -> None:
    found = assemble((), ({"A": "$X ${X} $Y"},), {})
    assert (found.plain, found.unset) == ({"A": "  "}, (("A", "X"), ("A", "Y")))


def test_a_reference_in_a_layer_that_is_beaten_is_not_asked_for() -> None:
    assert assemble((), ({"A": "$X"}, {"A": "1"}), {}).unset == ()


@pytest.mark.parametrize("value", ["$HOME", "${HOME}", *HOSTILE[::20]])
def test_what_nobody_configured_is_never_expanded(value: str) -> None:
    found = assemble(({"MAD_MODEL_NAME": value},), (), {"BUILD_NUMBER": value, "HOME": "/h"})
    assert (found.plain["MAD_MODEL_NAME"], found.plain.get("BUILD_NUMBER", "")) == (value, value)


def test_inherited_variables_that_scripts_read_are_handed_on_when_they_are_set() -> None:
    found = assemble((), (), {"BUILD_NUMBER": "7", "pipeline": "", "OTHER": "x"})
    assert found.plain == {"BUILD_NUMBER": "7"}


@pytest.mark.parametrize(
    ("facts", "configured", "inherited", "secrets"),
    [
        ({}, {}, {"MAD_SECRETS_X": CANARY, "MAD_SECRETS_EMPTY": ""}, {"MAD_SECRETS_X": CANARY}),
        ({}, {"HF_TOKEN": "$HF_TOKEN"}, {"HF_TOKEN": CANARY}, {"HF_TOKEN": CANARY}),
        ({}, {"HF_TOKEN": CANARY}, {}, {"HF_TOKEN": CANARY}),
        ({}, {"URL": "https://u:$MAD_SECRETS_X@h"}, {"MAD_SECRETS_X": CANARY},
         {"MAD_SECRETS_X": CANARY, "URL": f"https://u:{CANARY}@h"}),
        ({"site_PASSWORD": CANARY, "site_USERNAME": "me"}, {}, {}, {"site_PASSWORD": CANARY}),
        ({"site_PASSWORD": CANARY}, {"COPY": CANARY}, {}, {"site_PASSWORD": CANARY, "COPY": CANARY}),
        ({}, {"MAD_SECRETS_X": "mine-1234"}, {"MAD_SECRETS_X": CANARY}, {"MAD_SECRETS_X": "mine-1234"}),
    ],
)  # fmt: skip
def test_secrets_are_set_apart_by_name_and_by_value(
    facts: dict[str, str], configured: dict[str, str], inherited: dict[str, str], secrets: dict[str, str]
) -> None:
    found = assemble((facts,), (configured,), inherited)
    assert found.secrets == secrets
    assert not found.plain.keys() & secrets.keys()
    assert CANARY not in repr(found)


def test_a_secret_that_is_an_ordinary_word_hides_no_other_variable() -> None:
    found = assemble((), ({"DEBUG": "true"},), {"MAD_SECRETS_X": "true"})
    assert (found.plain, found.secrets) == ({"DEBUG": "true"}, {"MAD_SECRETS_X": "true"})


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [
        (
            GpuGrant("AMD", (0, 1), 8, "gfx942", "MI300X", "6.3"),
            {
                "MAD_GPU_VENDOR": "AMD",
                "MAD_SYSTEM_NGPUS": "8",
                "MAD_RUNTIME_NGPUS": "2",
                "MAD_SYSTEM_GPU_ARCHITECTURE": "gfx942",
                "MAD_SYSTEM_GPU_PRODUCT_NAME": "MI300X",
                "MAD_SYSTEM_HIP_VERSION": "6.3",
            },
        ),
        (GpuGrant(), {"MAD_GPU_VENDOR": "CPU", "MAD_SYSTEM_NGPUS": "0", "MAD_RUNTIME_NGPUS": "0"}),
    ],
)
def test_a_fact_that_is_not_known_is_absent_not_empty(gpus: GpuGrant, expected: dict[str, Any]) -> None:
    assert machine_facts("m", gpus, "UBUNTU") == {"MAD_MODEL_NAME": "m", "MAD_GUEST_OS": "UBUNTU", **expected}


@pytest.mark.parametrize(
    ("context", "variables"),
    [({"MAD_ROCM_PATH": "/opt/rocm-7"}, {"ROCM_PATH": "/opt/rocm-7"}), ({"MAD_ROCM_PATH": ""}, {}), ({}, {})],
)
def test_the_contexts_rocm_path_is_told_to_the_script(context: dict[str, str], variables: dict[str, str]) -> None:
    assert rocm_path(context) == variables
