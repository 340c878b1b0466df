"""What ``madengine validate`` says about ``data.json``, ``tools.json``, ``credential.json`` and batch manifests.

They have no schema: what reads them for a build or run judges them here, too, and stops at the first error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from madengine.cli.validate_kinds import Kind
from madengine.core.errors import ConfigurationError
from madengine.core.json_positions import pointer_of
from madengine.schemas.misspelt import Shape, misspelt_keys
from madengine.schemas.problems import Problem
from madengine.schemas.unfilled import each_unfilled_value, is_comment

_CREDENTIAL = Shape(frozenset(("username", "password", "ssh_key_file", "repository")))
_PROVIDER = Shape(frozenset(("path", "home", "mirrorlocal")))
_HOOKS = Shape(frozenset(), items=Shape(frozenset(("path", "args"))))
_TOOL = Shape(
    frozenset(("cmd", "env_vars", "pre_scripts", "post_scripts")),
    (("pre_scripts", _HOOKS), ("post_scripts", _HOOKS)),
)


def _named(entry: Shape) -> Shape:
    """An object whose keys are names of a person's own."""
    return Shape(frozenset(), others=entry)


def _data(document: Any, file: str, _: Mapping[str, str]) -> list[Problem]:
    from madengine.config.data import PROVIDERS, load_data_config

    if refused := _refusal(lambda: load_data_config(Path(file)), file):
        return refused
    path = ("data_sources",) if "data_sources" in document else ()
    sources = document["data_sources"] if path else document
    shape = _named(Shape(frozenset(PROVIDERS), tuple((provider, _PROVIDER) for provider in PROVIDERS)))
    return [*_providers(sources, path), *misspelt_keys(shape, sources, path), *_unfilled(document)]


def _providers(sources: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[Problem]:
    for name, providers in sources.items():
        place = pointer_of((*path, name))
        if is_comment(name) or providers is None:
            continue
        if not isinstance(providers, dict):
            yield Problem("error", "type", place, None, "the providers of a data source must be an object")
        elif isinstance(local := providers.get("local"), dict) and not local.get("path"):
            yield Problem("error", "required", f"{place}/local", None, 'local data needs a "path"')


def _tools(document: Any, file: str, _: Mapping[str, str]) -> list[Problem]:
    from madengine.config.tools import load_tools

    shape = Shape(frozenset(), (("tools", _named(_TOOL)),))
    return [*_refusal(lambda: load_tools([Path(file)]), file), *misspelt_keys(shape, document), *_unfilled(document)]


def _batch_manifest(document: Any, file: str, _: Mapping[str, str]) -> list[Problem]:
    from madengine.config.batch_manifest import load_batch_manifest

    return [*_refusal(lambda: load_batch_manifest(Path(file)), file), *_unfilled(document)]


def _credentials(document: Any, file: str, _: Mapping[str, str]) -> list[Problem]:
    """What is wrong with credentials. No text of a value is shown, not even of one that looks like a template."""
    from madengine.config.credentials import credentials_of

    templates = [
        Problem("error", "unfilled-template", pointer, None, "a template value is not filled in")
        for pointer, _ in each_unfilled_value(document)
    ]
    refused = _refusal(lambda: credentials_of(document, str(Path(file))), file)
    return [*refused, *misspelt_keys(_named(_CREDENTIAL), document), *templates]


def _refusal(read: Callable[[], object], file: str) -> list[Problem]:
    """The error with which a file's own reader refuses it."""
    try:
        read()
    except ConfigurationError as error:
        pointer = (error.where or "").removeprefix(f"{Path(file)}").removeprefix("#")
        return [Problem("error", "content", pointer if pointer[:1] == "/" else "", None, error.message, error.hint)]
    return []


def _unfilled(document: Any) -> Iterator[Problem]:
    for pointer, value in each_unfilled_value(document):
        message = f"the template value {value} is not filled in"
        yield Problem("error", "unfilled-template", pointer, None, message, "fill it in")


PACKAGE_CHECKS: Mapping[Kind, Callable[[Any, str, Mapping[str, str]], list[Problem]]] = {
    "data": _data,
    "tools": _tools,
    "batch_manifest": _batch_manifest,
    "credentials": _credentials,
}
"""Kind -> the problems of a document of that kind."""
