"""Additional context: where it comes from, what beats what, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from madengine.config.context import load_settings, parse_context
from madengine.core.errors import ConfigurationError


def test_json_and_python_literals_are_both_understood() -> None:
    assert parse_context('{"gpu_vendor": "AMD"}') == {"gpu_vendor": "AMD"}
    assert parse_context("{'gpu_vendor': 'AMD', 'docker_gpus': '0,1'}") == {"gpu_vendor": "AMD", "docker_gpus": "0,1"}


def test_the_command_line_beats_a_later_file_which_beats_an_earlier_one(tmp_path: Path) -> None:
    first, second = tmp_path / "1.json", tmp_path / "2.json"
    first.write_text(json.dumps({"docker_env_vars": {"A": "1", "B": "1", "C": "1"}, "docker_gpus": "0"}))
    second.write_text(json.dumps({"docker_env_vars": {"B": "2", "C": "2"}}))
    settings = load_settings(['{"docker_env_vars": {"C": "3"}}'], [first, second], {})
    assert settings.docker_env_vars == {"A": "1", "B": "2", "C": "3"}
    assert settings.context["docker_gpus"] == "0"


def test_booleans_and_numbers_in_environment_maps_become_text() -> None:
    settings = load_settings(['{"docker_env_vars": {"A": true, "B": 3, "C": 1.5}}'], [], {})
    assert settings.docker_env_vars == {"A": "true", "B": "3", "C": "1.5"}


def test_secrets_come_from_the_environment_and_do_not_show_in_the_repr() -> None:
    settings = load_settings([], [], {"MAD_SECRETS_HFTOKEN": "hf_canary", "PATH": "/bin"})
    assert settings.secrets == {"MAD_SECRETS_HFTOKEN": "hf_canary"}
    assert "hf_canary" not in repr(settings)


@pytest.mark.parametrize(
    ("context", "target"),
    [
        ({}, "local"),
        ({"target": "docker"}, "local"),
        ({"slurm": {"partition": "a"}}, "slurm"),
        ({"k8s": {}}, "k8s"),
        ({"kubernetes": {}}, "k8s"),
        ({"slurm": {"partition": "a"}, "target": "local"}, "local"),
    ],
)
def test_the_target_is_explicit_or_implied_by_a_block(context: dict[str, object], target: str) -> None:
    assert load_settings([json.dumps(context)], [], {}).target == target


def test_two_blocks_without_a_target_are_an_error() -> None:
    with pytest.raises(ConfigurationError, match="not clear"):
        load_settings(['{"slurm": {}, "k8s": {}}'], [], {})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "[1]",
        '"text"',
        "3",
        "null",
        "{",
        "{'a': }",
        "{1: 2}",
        "__import__('os')",
        "{'a': open('x')}",
        "[" * 9999,
    ],
)
def test_a_context_that_is_no_object_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_settings([text], [], {})
    assert "--additional-context" in str(caught.value)


def test_a_value_of_the_wrong_type_is_refused_with_its_pointer() -> None:
    with pytest.raises(ConfigurationError, match="/docker_env_vars/A"):
        load_settings(['{"docker_env_vars": {"A": null}}'], [], {})


def test_an_unfilled_template_value_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="not filled in"):
        load_settings(['{"docker_env_vars": {"A": "<FILL_ME now>"}}'], [], {})


def test_a_duplicate_key_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="twice"):
        load_settings(['{"gpu_vendor": "AMD", "gpu_vendor": "NVIDIA"}'], [], {})


@given(st.text(max_size=200))
def test_any_text_is_either_a_context_or_a_sentence(text: str) -> None:
    try:
        load_settings([text], [], {})
    except ConfigurationError as error:
        assert str(error)


def test_misspelt_keys_are_warnings_with_their_source(tmp_path: Path) -> None:
    file = tmp_path / "context.json"
    file.write_text(json.dumps({"deployment_config": {"slrum": {}}, "docker_env_vars": {"gpu_vendro": "1"}}))
    settings = load_settings(['{"gpu_vendro": "AMD"}'], [file], {})
    assert settings.warnings == (
        f'{file}#/deployment_config/slrum: unknown key "slrum" (did you mean "slurm"?)',
        '--additional-context#/gpu_vendro: unknown key "gpu_vendro" (did you mean "gpu_vendor"?)',
    )
    assert load_settings(['{"gpu_vendor": "AMD"}'], [], {}).warnings == ()
