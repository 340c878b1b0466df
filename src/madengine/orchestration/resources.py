"""What a model needs besides its script: mounts, data, options of its container, rules for reading its log."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from madengine.catalog.card import ModelCard
from madengine.config.credentials import Credentials, variables
from madengine.config.data import DataSource, resolve_data
from madengine.config.tools import Hook
from madengine.core.errors import ConfigurationError
from madengine.core.redact import is_maskable, is_secret_name
from madengine.core.shell import expand, split_words
from madengine.execution.engine import Mount
from madengine.execution.spec import LogScanRules
from madengine.profiling import SCRIPTS

OPTIONS = "additional_docker_run_options"
_ENV_WORDS = ("-e", "--env")


@dataclass(frozen=True)
class EngineOptions:
    """Words for the engine's run command.

    ``secrets`` are variables that the options gave a secret value: they are not among the words, since a command line
    shows in the process list. ``unset`` are names that the options refer to and that are not set.
    """

    words: tuple[str, ...] = ()
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    unset: tuple[str, ...] = ()


def engine_options(card: ModelCard, environ: Mapping[str, str], secrets: Mapping[str, str]) -> EngineOptions:
    """The card's ``additional_docker_run_options``: split as a shell would, then references expanded in each word.

    ``secrets`` are those of the run. Raises ``ConfigurationError`` for an option that would show one.
    """
    known = [value for value in secrets.values() if is_maskable(value)]
    words: list[str] = []
    moved: dict[str, str] = {}
    unset: dict[str, None] = {}
    for option in _options(split_words(card.text(OPTIONS))):
        expanded, missing = _expanded(option, environ)
        unset.update(dict.fromkeys(missing))
        name, value = _variable(expanded)
        if not (_refers_to_secret(option) or is_secret_name(name) or any(secret in expanded[-1] for secret in known)):
            words += expanded
        elif name:
            moved[name] = value
        elif expanded[-1]:
            raise ConfigurationError(
                f"{OPTIONS} has an option that would show a secret in the process list: {option[0].partition('=')[0]}",
                hint="give it to the script as a variable, in docker_env_vars",
            )
    return EngineOptions(tuple(words), moved, tuple(unset))


def _options(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The words one by one, ``-e NAME=VALUE`` together."""
    rest = iter(words)
    for word in rest:
        value = next(rest, None) if word in _ENV_WORDS else None
        yield (word,) if value is None else (word, value)


def _expanded(option: tuple[str, ...], environ: Mapping[str, str]) -> tuple[list[str], list[str]]:
    pairs = [expand(word, environ) for word in option]
    return [text for text, _ in pairs], [name for _, missing in pairs for name in missing]


def _variable(option: Sequence[str]) -> tuple[str, str]:
    """Name and value of the variable that an option sets; empty for another option, and for ``-e NAME``."""
    text = option[-1] if len(option) == 2 else ""
    for prefix in ("--env=", "-e"):
        if not text and option[0].startswith(prefix):
            text = option[0][len(prefix) :]
    name, equals, value = text.partition("=")
    return (name, value) if equals else ("", "")


def _refers_to_secret(option: Sequence[str]) -> bool:
    return any(is_secret_name(name) for word in option for name in expand(word, {})[1])


def bind_mounts(mounts: Mapping[str, str], environ: Mapping[str, str]) -> tuple[Mount, ...]:
    """``docker_mounts`` (container path -> host path). Raises ``ConfigurationError`` for a host path that is not there.

    A reference to a name that is not set is an error, too: what is left of the path would be another folder.
    """
    found = []
    for target, source in mounts.items():
        text, missing = expand(source, environ)
        if missing:
            raise ConfigurationError(
                f"docker_mounts gives {target} the host path {source}, and {', '.join(missing)} is not set here",
                hint="set it in the environment or in the env_file",
            )
        path = os.path.expanduser(text)  # noqa: PTH111 - Path.expanduser raises for a user who is not there
        if not os.path.exists(path):  # noqa: PTH110 - Path.exists raises for a path that is too long
            raise ConfigurationError(
                f"docker_mounts gives {target} the host path {text}, which does not exist here",
                hint="docker_mounts maps container paths to host paths",
            )
        found.append(Mount(Path(path).resolve(), target))
    return tuple(found)


def data_sources(card: ModelCard, sources: Mapping[str, Any] | None) -> tuple[DataSource, ...]:
    """A package without data.json (None) has nothing to say about data: scripts fetch it themselves."""
    return resolve_data(card.text("data"), sources) if sources is not None else ()


def data_mounts(sources: Sequence[DataSource]) -> tuple[Mount, ...]:
    """Local data at its place in the container."""
    return tuple(Mount(source.path, source.home) for source in sources if source.path)


def data_variables(sources: Sequence[DataSource]) -> dict[str, str]:
    """What scripts ask about their data; ``MAD_DATAHOME`` is where the first local source lies."""
    local = [source for source in sources if source.path]
    variables = {"MAD_DATANAME": ",".join(source.name for source in sources)} if sources else {}
    return {**variables, "MAD_DATAHOME": local[0].home} if local else variables


def data_facts(sources: Sequence[DataSource]) -> dict[str, str]:
    """What perf.csv says about the data."""
    return {
        "dataname": ",".join(source.name for source in sources),
        "data_provider_type": ",".join(source.provider for source in sources if source.provider),
    }


def credential_variables(card: ModelCard, credentials: Credentials) -> dict[str, str]:
    """``<cred>_USERNAME``, ``<cred>_PASSWORD`` and the like for the credential that the card names.

    Raises ``ConfigurationError`` when there is none of that name.
    """
    name = card.text("cred")
    entry = credentials.get(name) if name else None
    if name and entry is None:
        raise ConfigurationError(
            f"the card needs the credential {name!r}, and there is none",
            hint=f'add "{name}": {{"username": ..., "password": ...}} to credential.json',
        )
    return variables(name, entry or {})


def expected_results(card: ModelCard, context: Mapping[str, Any]) -> int | None:
    """How many measured rows the run should give, by the card or else by the context; None when neither says."""
    value = _chosen("expected_results", card, context)
    return None if value is None else int(value)


def log_rules(card: ModelCard, context: Mapping[str, Any]) -> LogScanRules:
    """How the log is searched: the card's word replaces the context's, benign patterns of both are added up."""
    patterns = _chosen("log_error_patterns", card, context)
    benign = "log_error_benign_patterns"
    return LogScanRules(
        enabled=_chosen("log_error_pattern_scan", card, context) is not False,
        benign=(*(context.get(benign) or ()), *(card.raw.get(benign) or ())),
        patterns=None if patterns is None else tuple(patterns),
    )


def _chosen(key: str, card: ModelCard, context: Mapping[str, Any]) -> Any:
    value = card.raw.get(key)
    return context.get(key) if value is None else value


def require_pre_scripts(scripts: Sequence[Hook], package: Path) -> None:
    """Raise ``ConfigurationError`` for a pre-script that neither the package nor madengine has.

    A path outside ``scripts/`` may be made by the run itself, and so may a post-script: those are found out then.
    """
    for script in scripts:
        path = PurePosixPath(script.path)
        own = SCRIPTS.joinpath(*path.parts[2:]) if path.parts[:2] == ("scripts", "common") else None
        # os.path, since Path.is_file raises for a path that is too long.
        there = any(os.path.isfile(place) for place in (package / path, own) if place)  # noqa: PTH113
        if path.parts[:1] == ("scripts",) and not there:
            raise ConfigurationError(
                f"the pre-script {script.path} is neither in the package nor madengine's own",
                hint="its path is relative to the package, such as scripts/common/pre_scripts/x.sh",
            )
