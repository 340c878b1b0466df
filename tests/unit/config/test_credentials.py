"""Credentials of registries and repositories."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from madengine.config.credentials import load_credentials, require_repository, variables
from madengine.core.errors import ConfigurationError


def test_a_package_without_a_file_has_none(tmp_path: Path) -> None:
    assert load_credentials(tmp_path, {}) == {}


def test_the_environment_beats_the_file_field_by_field(tmp_path: Path) -> None:
    entry = {"username": "u", "password": "p", "repository": "r"}
    (tmp_path / "credential.json").write_text(json.dumps({"dockerhub": entry, "_comment": "x"}))
    found = load_credentials(tmp_path, {"MAD_DOCKERHUB_PASSWORD": "q", "MAD_DOCKERHUB_USER": ""})
    assert found == {"dockerhub": {"username": "u", "password": "q", "repository": "r"}}


def test_the_environment_alone_is_enough(tmp_path: Path) -> None:
    assert load_credentials(tmp_path, {"MAD_DOCKERHUB_REPO": "a/b"}) == {"dockerhub": {"repository": "a/b"}}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "credential.json"),
        (b"[]", "found a list"),
        (b'"x"', "found text"),
        (b'{"a": "canary-secret"}', "#/a: an entry must be an object"),
        (b'{"a/b": {"password": ["canary-secret"]}}', r"#/a~1b/password: a field must be text"),
        (b'{"a": {"password": "canary-secret"', "credential.json"),
        (b"\xff\xfe\x00", "credential.json"),
    ],
)
def test_a_malformed_file_is_a_sentence_without_its_values(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "credential.json").write_bytes(content)
    with pytest.raises(ConfigurationError, match=words) as error:
        load_credentials(tmp_path, {})
    assert "canary-secret" not in str(error.value)


def test_a_folder_in_its_place_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "credential.json").mkdir()
    with pytest.raises(ConfigurationError, match=r"credential\.json"):
        load_credentials(tmp_path, {})


def test_docker_hub_needs_a_repository() -> None:
    with pytest.raises(ConfigurationError, match="MAD_DOCKERHUB_REPO"):
        require_repository({"dockerhub": {"username": "u"}})
    assert require_repository({"dockerhub": {"repository": "a/b"}}) == "a/b"


def test_a_credential_becomes_the_variables_that_scripts_read() -> None:
    assert variables("x", {"username": "u", "password": "p"}) == {"x_USERNAME": "u", "x_PASSWORD": "p"}
