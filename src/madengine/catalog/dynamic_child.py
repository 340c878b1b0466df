"""The child process that runs a package's ``get_models_json.py`` on madengine's behalf.

Started as a file, with one argument, a JSON object: ``script``, ``scope``, ``path`` (the parent's ``sys.path``),
``answer`` (the file to write) and ``update`` (null to list; else the names whose ``update_model()`` is to be called).
The answer is ``{"models": [card, ...], "updatable": [name, ...]}`` or ``{"error": sentence}``. It travels through a
file of its own, so that the script may print what it likes.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from itertools import islice
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

MAX_MODELS = 100_000  # more come from an endless generator, not from a catalog


class RefusalError(Exception):
    """The script works, but what it gives is not a list of models."""


def run(request: dict[str, Any]) -> dict[str, Any]:
    """The answer to ``request``; whatever the script raises becomes its ``error``."""
    try:
        return answer(load(Path(request["script"])), request)
    except RefusalError as refusal:
        return {"error": str(refusal)}
    except BaseException as error:  # SystemExit and KeyboardInterrupt, too
        return {"error": describe(error, request["script"])}


def load(script: Path) -> ModuleType:
    """Import the script as a module of its own."""
    spec = importlib.util.spec_from_file_location("get_models_json", script)
    if spec is None or spec.loader is None:
        raise RefusalError("it is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and pickle look their module up there
    spec.loader.exec_module(module)
    return module


def answer(module: ModuleType, request: dict[str, Any]) -> dict[str, Any]:
    """List the models of ``module``, or update those that ``request`` names."""
    from madengine.utils.discover_models import CustomModel

    models = listed(module, CustomModel)
    wanted = request["update"]
    if wanted is not None:
        models = updated(models, wanted, request["scope"])
    return {
        "models": [document(model, index) for index, model in enumerate(models)],
        "updatable": [model.name for model in models if type(model).update_model is not CustomModel.update_model],
    }


def listed(module: ModuleType, kind: type) -> list[Any]:
    """What ``list_models()`` gives, checked to be models."""
    function = getattr(module, "list_models", None)
    if not callable(function):
        raise RefusalError("it defines no function list_models()")
    result = function()
    if not hasattr(result, "__iter__"):
        raise RefusalError(f"list_models() gave {type(result).__name__}, allowed is a list of CustomModel")
    models = list(islice(result, MAX_MODELS + 1))
    if len(models) > MAX_MODELS:
        raise RefusalError(f"list_models() gave more than {MAX_MODELS:,} models")
    for index, model in enumerate(models):
        if not isinstance(model, kind):
            raise RefusalError(f"list_models()[{index}] is of type {type(model).__name__}, allowed is CustomModel")
    return models


def updated(models: list[Any], wanted: list[str], scope: str) -> list[Any]:
    """The models of these names after ``update_model()``, under the names they were listed with."""
    by_name = {model.name: model for model in reversed(models)}
    chosen = []
    for name in wanted:
        if name not in by_name:
            raise RefusalError(f"list_models() no longer gives the model {name!r}")
        model = by_name[name]
        model.name = f"{scope}/{name}"
        model.update_model()
        model.name = name
        chosen.append(model)
    return chosen


def document(model: Any, index: int) -> dict[str, Any]:
    """A model as a JSON document; attributes of a subclass that JSON cannot hold stay behind."""
    from dataclasses import fields

    declared = {field.name for field in fields(model)}
    kept = {}
    for key, value in model.to_dict().items():
        try:
            json.dumps(value)
        except (TypeError, ValueError, RecursionError):
            if key in declared:
                raise RefusalError(f"list_models()[{index}].{key} is of type {type(value).__name__}") from None
        else:
            kept[key] = value
    return kept


def describe(error: BaseException, script: str) -> str:
    """An exception in one line, with the last line of the script that led to it."""
    text = " ".join(str(error).split())[:500].encode("utf-8", "backslashreplace").decode()
    place = line_in(error.__traceback__, script)
    if isinstance(error, SyntaxError) and error.filename == script:
        place = error.lineno
    where = f"line {place}: " if place else ""
    return f"{where}{type(error).__name__}: {text}" if text else f"{where}{type(error).__name__}"


def line_in(trace: TracebackType | None, script: str) -> int | None:
    """The last line of ``script`` in a traceback."""
    line = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == script:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def main(argument: str) -> None:
    """Answer one request and leave without waiting for threads that the script may have started."""
    request = json.loads(argument)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.path[:] = [str(Path(request["script"]).parent), *request["path"]]
    reply = json.dumps(run(request))
    with open(request["answer"], "w", encoding="ascii") as file:  # noqa: PTH123
        file.write(reply)
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
