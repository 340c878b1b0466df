"""Credentials of registries and repositories: ``credential.json`` of the package, and ``MAD_DOCKERHUB_*`` over it.

The file is ``{name: {username, password | ssh_key_file, repository, ...}}``. Values are kept out of every error.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from madengine.core.errors import ConfigurationError, ValidationError

FILE_NAME = "credential.json"
DOCKERHUB_ENTRY = "dockerhub"

_DOCKERHUB_VARIABLES = {
    "MAD_DOCKERHUB_USER": "username",
    "MAD_DOCKERHUB_PASSWORD": "password",
    "MAD_DOCKERHUB_REPO": "repository",
}

Credentials = Mapping[str, Mapping[str, str]]


def load_credentials(package: Path, environ: Mapping[str, str]) -> Credentials:
    """All credentials by name; none when the package has no file and the environment nothing.

    Raises ConfigurationError when there is a file that is no object of objects.
    """
    path = package / FILE_NAME
    found: dict[str, Mapping[str, str]] = {}
    if path.exists() or path.is_symlink():
        found.update(credentials_of(_document(path), str(path)))
    given = {field: environ[name] for name, field in _DOCKERHUB_VARIABLES.items() if environ.get(name)}
    if given:
        found[DOCKERHUB_ENTRY] = {**found.get(DOCKERHUB_ENTRY, {}), **given}
    return found


def _document(path: Path) -> Any:
    """The file's JSON. What is wrong with it is told by its place alone: a quotation could be a password."""
    from madengine.core.documents import DocumentError, parse_json, read_text

    text = read_text(path, what="credentials")
    try:
        return parse_json(text, source=str(path), what="credentials")
    except DocumentError as error:
        raise DocumentError(
            "the credentials are not usable JSON", where=error.where or str(path), line=error.line
        ) from None


def variables(name: str, credential: Mapping[str, str]) -> dict[str, str]:
    """A credential as the variables that scripts and Dockerfiles read: ``<name>_USERNAME``, ``<name>_PASSWORD``, ..."""
    return {f"{name}_{field.upper()}": value for field, value in credential.items()}


def credentials_of(document: Any, source: str) -> dict[str, Mapping[str, str]]:
    """The credentials of a document by name. Raises ValidationError, which quotes no value."""
    if not isinstance(document, dict):
        raise ValidationError(
            f"credentials must be an object of named entries, found {_kind(document)}",
            source=source,
            hint='{"dockerhub": {"username": "...", "password": "...", "repository": "..."}}',
        )
    return {name: _entry(name, entry, source) for name, entry in document.items() if not name.startswith("_")}


def _entry(name: str, entry: Any, source: str) -> Mapping[str, str]:
    from madengine.core.json_positions import pointer_of

    if not isinstance(entry, dict):
        raise ValidationError(
            f"an entry must be an object, found {_kind(entry)}", source=source, pointer=pointer_of((name,))
        )
    for field, value in entry.items():
        if not isinstance(value, (str, int, float, type(None))):
            raise ValidationError(
                f"a field must be text, found {_kind(value)}", source=source, pointer=pointer_of((name, field))
            )
    return {field: str(value) for field, value in entry.items() if value is not None}


def _kind(value: Any) -> str:
    names = {list: "a list", dict: "an object", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def require_repository(credentials: Credentials) -> str:
    """The Docker Hub repository that images are pushed to. Raises ConfigurationError when nobody named one."""
    repository = credentials.get(DOCKERHUB_ENTRY, {}).get("repository", "")
    if not repository:
        raise ConfigurationError(
            "pushing to Docker Hub needs a repository, and none is known",
            where=FILE_NAME,
            hint='add "repository" to the entry "dockerhub", or set MAD_DOCKERHUB_REPO, _USER and _PASSWORD',
        )
    return repository
