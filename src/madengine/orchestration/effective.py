"""The manifest that a run really uses: what was read or built, with the user's additional context on top."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from madengine.config.manifest import BuildManifest
from madengine.config.manifest_context import DEPLOYMENT_KEYS, without_secrets
from madengine.config.merge import merged
from madengine.config.settings import Settings
from madengine.core.redact import is_secret_name, mask_command
from madengine.core.shell import is_reference


def effective_manifest(manifest: BuildManifest, settings: Settings) -> BuildManifest:
    """``manifest`` with the settings' context merged into its ``context`` and ``deployment_config``.

    The result may hold values that a user typed as secrets: it is run from, never written. See :func:`for_record`.
    """
    given = dict(settings.context)
    nested = given.pop("deployment_config", None) or {}
    deployment = {key: given.pop(key) for key in DEPLOYMENT_KEYS if key in given}
    return replace(
        manifest,
        context=merged(manifest.context or {}, given),
        deployment_config=merged(merged(manifest.deployment_config or {}, nested), deployment),
    )


def for_record(manifest: BuildManifest, key: str, secrets: Mapping[str, str]) -> dict[str, Any]:
    """The part of an effective manifest that one run used, fit to be written beside it: no value of a secret.

    ``secrets`` are those of the run; what has the name of a secret is none of its business and goes, too (build
    arguments, for example). Of the other models' summary nothing is kept.
    """
    one = replace(manifest, images={key: manifest.images[key]}, models={key: manifest.models[key]}, summary={})
    document: dict[str, Any] = _without_named(without_secrets(one.to_dict(), secrets))
    return document


def _without_named(value: Any) -> Any:
    """A copy in which each value with the name of a secret is a reference to the variable of that name.

    Passwords in addresses (a card's ``url``) and what options are given (its ``args``) are masked.
    """
    if isinstance(value, Mapping):
        return {
            name: _reference(name) if _is_secret(name, item) else _without_named(item) for name, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_without_named(item) for item in value]
    return mask_command(value) if isinstance(value, str) else value


def _is_secret(name: str, value: Any) -> bool:
    return (
        is_secret_name(name) and isinstance(value, (str, int, float)) and bool(value) and not is_reference(str(value))
    )


def _reference(name: str) -> str:
    return f"${{{name}}}"
