"""``madengine schema``: the JSON Schemas that files are checked against, for editors and other programs."""

from __future__ import annotations

import click


@click.command()
@click.argument("name", required=False)
def schema(name: str | None) -> None:
    """Print the JSON Schema NAME; without NAME list them.

    NAME is build_manifest, model_card, additional_context or perf_csv, with or without .schema.json.
    """
    from madengine.cli import views
    from madengine.schemas.loader import SCHEMA_NAMES, schema_text, shared_schema

    if name is None:
        views.table(["schema", "what it describes"], [[each, _about(shared_schema(each))] for each in SCHEMA_NAMES])
    else:
        click.echo(schema_text(name), nl=False)


def _about(document: dict[str, object]) -> str:
    return str(document["description"]).split(". ")[0].rstrip(".") + "."
