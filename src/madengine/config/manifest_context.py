"""The part of a person's context that goes into a manifest: split as the manifest wants it, and without secrets.

What is a secret stays out of the file in a way that a later run still works: a value that is known as one is written
as a reference to its variable (``${MAD_SECRETS_X}``), which a run expands from its own environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from madengine.config.context import SECRET_PREFIX
from madengine.config.settings import Settings

DEPLOYMENT_KEYS = (
    "target",
    "slurm",
    "k8s",
    "kubernetes",
    "distributed",
    "vllm",
    "env_vars",
    "env_file",
    "debug",
    "gpus_per_node",
)
"""Keys of a context that stand under ``deployment_config`` in a manifest; all others stand under ``context``."""

_ENVIRONMENT_MAPS = ("docker_env_vars", "env_vars")


@dataclass(frozen=True)
class ManifestContext:
    """The blocks of a manifest. ``notes`` say what was left out and what to do about it, ``secret_names`` which."""

    context: Mapping[str, Any]
    deployment_config: Mapping[str, Any]
    secret_names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass
class _Findings:
    notes: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)


def manifest_context(settings: Settings, gpu_vendor: str) -> ManifestContext:
    """Split the merged context and take the secrets out of it."""
    found = _Findings()
    document = {**settings.context, "gpu_vendor": gpu_vendor or None, "guest_os": settings.guest_os}
    nested = document.pop("deployment_config", None)
    for name in _ENVIRONMENT_MAPS:
        _hide_named(document, name, found)
    _drop_build_secrets(document, found)
    document = without_secrets(document, settings.secrets)
    deployment: dict[str, Any] = dict(nested) if isinstance(nested, Mapping) else {}
    deployment.update({key: document.pop(key) for key in DEPLOYMENT_KEYS if key in document})
    deployment["target"] = settings.target
    return ManifestContext(
        context={**_EMPTY_BLOCKS, **{k: v for k, v in document.items() if v is not None}},
        deployment_config=without_secrets(deployment, settings.secrets),
        secret_names=tuple(sorted(found.names)),
        notes=tuple(found.notes),
    )


_EMPTY_BLOCKS: Mapping[str, Any] = {"docker_env_vars": {}, "docker_mounts": {}, "docker_build_arg": {}}


def without_secrets(value: Any, secrets: Mapping[str, str]) -> Any:
    """A copy of a JSON value in which every occurrence of a secret is the reference to its variable.

    ``secrets`` maps variable names to values. A value such as ``true`` stands in too many innocent texts to be told.
    """
    from madengine.core.redact import is_maskable

    known = [(secret, f"${{{name}}}") for name, secret in secrets.items() if is_maskable(secret)]
    known.sort(key=lambda pair: -len(pair[0]))
    return _replaced(value, known) if known else value


def _replaced(value: Any, known: list[tuple[str, str]]) -> Any:
    if isinstance(value, str):
        for secret, reference in known:
            value = value.replace(secret, reference)
        return value
    if isinstance(value, Mapping):
        return {_replaced(key, known): _replaced(item, known) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_replaced(item, known) for item in value]
    return value


def _hide_named(document: dict[str, Any], block: str, found: _Findings) -> None:
    """Variables whose name says that they are secrets: MAD_SECRETS_* reach a run anyway, others become references."""
    values = dict(document.get(block) or {})
    for name, value in list(values.items()):
        if name.startswith(SECRET_PREFIX):
            del values[name]
        elif _holds_secret(name, str(value)):
            values[name] = f"${{{name}}}"
        else:
            continue
        found.names.add(name)
        found.notes.append(f"{block}.{name} is a secret and stays out of the manifest: export {name} for the run")
    if block in document:
        document[block] = values


def _holds_secret(name: str, value: str) -> bool:
    """Whether a value is a secret, or an address with a password, and does not just refer to one."""
    from madengine.core.redact import is_secret_name, url_passwords
    from madengine.core.shell import is_reference

    if is_secret_name(name):
        return bool(value) and not is_reference(value)
    return any(not is_reference(password) for password in url_passwords(value))


def _drop_build_secrets(document: dict[str, Any], found: _Findings) -> None:
    from madengine.core.redact import is_secret_name

    values = dict(document.get("docker_build_arg") or {})
    for name in [name for name in values if is_secret_name(name) or name.startswith(SECRET_PREFIX)]:
        del values[name]
        found.names.add(name)
        found.notes.append(f"docker_build_arg.{name} is a secret and stays out of the manifest")
    if "docker_build_arg" in document:
        document["docker_build_arg"] = values
