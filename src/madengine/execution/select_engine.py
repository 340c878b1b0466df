"""Which engine runs the models: the one that was asked for, else the first that works."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from madengine.core.errors import ConfigurationError
from madengine.execution.engine import ENGINES, ContainerEngine

VARIABLE = "MAD_CONTAINER_ENGINE"
CONTAINERS = ("docker", "podman")
ORDER = (*CONTAINERS, "host")

Loader = Callable[[str], ContainerEngine]


def load_engine(name: str) -> ContainerEngine:
    """The engine of that name, imported now. Raises ``ConfigurationError`` for a name that nobody knows."""
    from importlib import import_module

    if name not in ENGINES:
        raise ConfigurationError(f"there is no container engine {name!r}", hint=f"one of: {', '.join(ENGINES)}")
    module, _, attribute = ENGINES[name].partition(":")
    engine: ContainerEngine = getattr(import_module(module), attribute)()
    return engine


def choose_engine(
    name: str | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    load: Loader = load_engine,
    order: Sequence[str] = ORDER,
) -> tuple[ContainerEngine, str]:
    """The engine, and the sentence about it that is said aloud.

    ``name`` (from the command line) beats the variable ``MAD_CONTAINER_ENGINE``. An engine that was asked for and does
    not work is a ``ConfigurationError``: it is not silently replaced. Without one the engines of ``order`` are tried.
    """
    wanted = name or environ.get(VARIABLE)
    if wanted:
        return _asked_for(wanted, "--engine" if name else VARIABLE, load)
    return _first_that_works(order, load)


def _asked_for(name: str, where: str, load: Loader) -> tuple[ContainerEngine, str]:
    engine = load(name)
    problem = engine.problem()
    if problem:
        raise ConfigurationError(f"the engine {name} cannot be used: {problem}", where=where)
    return engine, f"engine: {engine.describe()} (from {where})"


def _first_that_works(order: Sequence[str], load: Loader) -> tuple[ContainerEngine, str]:
    problems: list[str] = []
    for name in order:
        engine = load(name)
        problem = engine.problem()
        if problem is None:
            missing = f"no container engine works here ({'; '.join(problems)}); " if not engine.needs_image else ""
            return engine, f"{missing}engine: {engine.describe()}"
        problems.append(f"{name}: {problem}")
    raise ConfigurationError(f"no engine works here ({'; '.join(problems)})", hint="see `madengine doctor`")
