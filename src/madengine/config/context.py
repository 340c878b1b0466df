"""Additional context: what a person adds to a package from the command line and from files.

Precedence, strongest first: ``--additional-context``, ``--additional-context-file`` (a later one beats an earlier one),
defaults. Later layers replace values and merge objects. The merged document is checked against
``additional_context.schema.json`` before anything is started.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from madengine.config.merge import merged
from madengine.config.settings import Settings
from madengine.core.errors import ConfigurationError, ValidationError

MAX_CONTEXT_LENGTH = 1 << 20  # characters of one --additional-context; a command line cannot hold more anyway

SECRET_PREFIX = "MAD_SECRETS_"


def load_settings(contexts: Sequence[str], files: Sequence[Path], environ: Mapping[str, str]) -> Settings:
    """Merge and check all sources.

    ``contexts`` are the values of ``--additional-context`` (JSON or a Python dict literal), ``files`` those of
    ``--additional-context-file``. Raises ``ConfigurationError`` naming the source and the pointer.
    """
    layers = [(load_context_file(path), str(path)) for path in files]
    layers += [(parse_context(text), "--additional-context") for text in contexts]
    document: dict[str, Any] = {}
    warnings: list[str] = []
    for layer, source in layers:
        warnings += _checked(layer, source)
        document = merged(document, layer)
    return replace(settings_of(document, environ), warnings=tuple(warnings))


def settings_of(document: Mapping[str, Any], environ: Mapping[str, str]) -> Settings:
    """Settings from a merged and checked context document."""
    return Settings(
        context=document,
        gpu_vendor=_upper(document.get("gpu_vendor")),
        guest_os=_upper(document.get("guest_os")) or "UBUNTU",
        target=_target(document),
        docker_env_vars=env_map(document.get("docker_env_vars")),
        docker_build_arg=env_map(document.get("docker_build_arg")),
        secrets={name: value for name, value in environ.items() if name.startswith(SECRET_PREFIX) and value},
    )


def load_context_file(path: Path) -> dict[str, Any]:
    """Read one ``--additional-context-file`` strictly; it must hold a JSON object."""
    from madengine.core.documents import load_json

    return _object(load_json(path, what="additional context", pipes=True), str(path))


def parse_context(text: str) -> dict[str, Any]:
    """Read one ``--additional-context``: JSON, else a Python dict literal as MAD's documentation writes it."""
    source = "--additional-context"
    if len(text) > MAX_CONTEXT_LENGTH:
        raise ConfigurationError(
            f"the context is {len(text)} characters long, at most {MAX_CONTEXT_LENGTH} are read",
            where=source,
            hint="put it into a file and pass --additional-context-file",
        )
    if not text.strip():
        raise ConfigurationError("the context is empty", where=source, hint='write at least "{}"')
    python = _python_literal(text)
    if isinstance(python, dict) and not _looks_like_json(text):
        return _object(python, source)
    from madengine.core.documents import parse_json

    return _object(parse_json(text, source=source, what="additional context"), source)


def _looks_like_json(text: str) -> bool:
    """JSON is tried first wherever the text could be it, so that its stricter rules (duplicate keys) hold."""
    import json

    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _python_literal(text: str) -> Any:
    import ast
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return None


def _object(value: Any, source: str) -> dict[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise ConfigurationError(
            f"the context must be an object of named values, found {_kind(value)}",
            where=source,
            hint="""for example '{"gpu_vendor": "AMD", "docker_env_vars": {"NAME": "value"}}'""",
        )
    return value


def _kind(value: Any) -> str:
    names = {list: "a list", str: "a string", dict: "an object with names that are no strings", type(None): "null"}
    return names.get(type(value), "a number" if isinstance(value, (int, float)) else f"a {type(value).__name__}")


def _checked(document: dict[str, Any], source: str) -> list[str]:
    """Refuse a document that breaks the schema or still has template values; returns warnings about it."""
    from madengine.schemas import unfilled_values, validate_additional_context

    problems = validate_additional_context(document, source)
    errors = [problem for problem in problems if problem.is_error]
    if errors:
        first = errors[0]
        more = f" (and {len(errors) - 1} more; `madengine validate` lists all)" if len(errors) > 1 else ""
        raise ValidationError(first.message + more, source=source, pointer=first.pointer, hint=first.hint or None)
    unfilled = unfilled_values(document)
    if unfilled:
        pointer, value = unfilled[0]
        raise ValidationError(f"the template value {value!r} is not filled in", source=source, pointer=pointer)
    return [problem.sentence(source) for problem in problems]


def _target(document: Mapping[str, Any]) -> str:
    """The target: explicit, else implied by a ``slurm`` or ``k8s``/``kubernetes`` block, else this machine."""
    explicit = document.get("target")
    if explicit:
        return {"docker": "local", "kubernetes": "k8s"}.get(str(explicit), str(explicit))
    slurm = "slurm" in document
    kubernetes = "k8s" in document or "kubernetes" in document
    if slurm and kubernetes:
        raise ConfigurationError(
            "the context has a slurm block and a k8s block, so the target is not clear",
            hint='add "target": "slurm" or "target": "k8s", or remove one block',
        )
    return "slurm" if slurm else "k8s" if kubernetes else "local"


def _upper(value: Any) -> str | None:
    return str(value).upper() if value else None


def env_map(block: Any) -> dict[str, str]:
    """A map of variables or mounts with its values as text, ``true``/``false`` for booleans; null is empty."""
    return {str(name): env_text(value) for name, value in (block or {}).items()}


def env_text(value: Any) -> str:
    """One environment value as the text a process is given."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
