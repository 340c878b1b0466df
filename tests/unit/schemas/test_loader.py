"""The schema files: what they hold, that they agree, and the columns of perf.csv."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import madengine
from madengine import schemas
from madengine.core.errors import ConfigurationError
from madengine.core.json_positions import parts_of
from madengine.schemas.loader import SCHEMA_NAMES

COLUMNS = [
    "model", "n_gpus", "nnodes", "gpus_per_node", "training_precision", "pipeline", "args", "tags", "docker_file",
    "base_docker", "docker_sha", "docker_image", "git_commit", "machine_name", "deployment_type", "launcher",
    "gpu_architecture", "performance", "metric", "relative_change", "status", "build_duration", "test_duration",
    "dataname", "data_provider_type", "data_size", "data_download_duration", "build_number",
    "additional_docker_run_options",
]  # fmt: skip


def test_the_columns_of_perf_csv_are_the_29_in_their_order() -> None:
    assert schemas.perf_csv_columns() == tuple(COLUMNS)
    assert schemas.perf_csv_header().split(",") == COLUMNS


def test_the_header_stands_in_no_source_file() -> None:
    start = ",".join(COLUMNS[:4])
    package = Path(madengine.__file__).parent
    assert not [path for path in package.rglob("*") if path.is_file() and start in path.read_text(errors="replace")]


def test_unknown_columns_of_a_row_are_named_in_their_order() -> None:
    assert schemas.unknown_perf_columns({"z": 1, "model": 2, "a": 3, "status": 4}) == ["z", "a"]


def test_every_column_has_a_type_and_a_description() -> None:
    for name, column in schemas.load_schema("perf_csv.schema.json")["properties"].items():
        assert column["type"], name
        assert column["description"].endswith("."), name


def test_every_manifest_source_leads_to_a_property_definition() -> None:
    manifest = schemas.load_schema()
    sources = [c["x-manifest-source"] for c in schemas.load_schema("perf_csv")["properties"].values()
        if "x-manifest-source" in c]  # fmt: skip
    assert len(sources) == 17
    for pointer in sources:
        place: Any = manifest
        for part in parts_of(pointer):
            place = place[part]
        assert "type" in place or "$ref" in place
        assert "description" in place


@pytest.mark.parametrize("name", SCHEMA_NAMES)
def test_every_schema_is_valid_and_says_which_draft_it_follows(name: str) -> None:
    import jsonschema_rs

    schema = schemas.load_schema(name)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema_rs.meta.validate(schema)
    assert schema == schemas.load_schema(f"{name}.schema.json")


def _properties(place: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(place, dict):
        for name, inside in place.get("properties", {}).items() if isinstance(place.get("properties"), dict) else ():
            yield f"{path}/{name}", inside
        for key, inside in place.items():
            yield from _properties(inside, f"{path}/{key}")


@pytest.mark.parametrize("name", SCHEMA_NAMES)
def test_every_field_is_described_so_that_editors_can_explain_it(name: str) -> None:
    fields = dict(_properties(schemas.load_schema(name)))
    assert len(fields) > 20
    assert not [path for path, field in fields.items() if not field.get("description", "").endswith(".")]


def test_what_two_schemas_describe_is_described_alike() -> None:
    manifest, card, context = (schemas.load_schema(n) for n in ("build_manifest", "model_card", "additional_context"))
    assert manifest["$defs"]["model"]["properties"] == card["properties"]
    for other in (card, context):
        for name, definition in other["$defs"].items():
            assert manifest["$defs"][name] == definition, name
    for name, field in manifest["$defs"]["context"]["properties"].items():
        assert context["properties"][name] == field, name
    for name, field in manifest["$defs"]["deploymentConfig"]["properties"].items():
        assert context["properties"][name] == field, name


def test_a_loaded_schema_belongs_to_the_caller() -> None:
    schemas.load_schema()["properties"].clear()
    assert schemas.load_schema()["properties"]
    assert schemas.validate_build_manifest({"built_images": {}, "built_models": {}, "context": {}}) == []


@pytest.mark.parametrize("name", ["manifest", "../build_manifest", "", "build_manifest.json", "x" * 5000])
def test_a_schema_that_does_not_exist_is_an_error_with_the_known_names(name: str) -> None:
    with pytest.raises(ConfigurationError, match="known are build_manifest, model_card"):
        schemas.load_schema(name)


def test_importing_the_package_does_not_load_the_validator() -> None:
    program = "import sys, madengine.schemas; print('jsonschema_rs' in sys.modules, 'subprocess' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
