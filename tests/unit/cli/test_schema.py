"""``madengine schema`` prints the contracts."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from madengine.cli.schema import schema
from madengine.core.errors import ConfigurationError
from madengine.schemas import SCHEMA_NAMES, load_schema


@pytest.mark.parametrize("name", SCHEMA_NAMES)
@pytest.mark.parametrize("ending", ["", ".schema.json"])
def test_a_schema_is_printed_as_it_is(name: str, ending: str) -> None:
    result = CliRunner().invoke(schema, [name + ending])
    assert json.loads(result.stdout) == load_schema(name)


def test_without_a_name_they_are_listed() -> None:
    result = CliRunner().invoke(schema, [])
    assert result.exit_code == 0
    assert all(name in result.stdout for name in SCHEMA_NAMES)


def test_a_wrong_name_is_an_error_that_names_the_known_ones() -> None:
    result = CliRunner().invoke(schema, ["build_manifes"], standalone_mode=False)
    assert isinstance(result.exception, ConfigurationError)
    assert 'did you mean "build_manifest"? known are build_manifest, model_card' in str(result.exception)
