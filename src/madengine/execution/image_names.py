"""What an image is called, here and in a registry.

``ci-<model>_<dockerfile>[_<architecture>]`` in lower case with ``/`` as ``_`` is what MAD's users know. Where that
would be no valid name for docker the offending characters are replaced and a short hash keeps different models apart.
"""

from __future__ import annotations

import re

MAX_LENGTH = 128  # characters of a docker tag, which the name becomes in a registry
HASH_LENGTH = 10

DOCKERHUB = "docker.io"
_DOCKERHUB_NAMES = ("docker.io", "dockerhub")

_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_VALID = re.compile(_COMPONENT)
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DOMAIN = r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*(?::\d{1,5})?"
_REFERENCE = re.compile(
    rf"(?:{_DOMAIN}/)?{_COMPONENT}(?:/{_COMPONENT})*(?::{_TAG})?(?:@sha256:[0-9a-f]{{64}})?|sha256:[0-9a-f]{{64}}"
)


def image_name(model: str, dockerfile_stem: str, architecture: str = "") -> str:
    """The local name of a model's image.

    ``dockerfile_stem`` is the Dockerfile's file name without ``.Dockerfile``. Ordinary names come out as described
    above, anything else as a valid name that ends in a hash of all three arguments.
    """
    words = [f"ci-{model.replace('/', '_')}", dockerfile_stem, *([architecture] if architecture else [])]
    plain = "_".join(words).lower()
    if len(plain) <= MAX_LENGTH and _VALID.fullmatch(plain):
        return plain
    return hashed_name(model, dockerfile_stem, architecture)


def hashed_name(model: str, dockerfile_stem: str, architecture: str = "") -> str:
    """A valid name that differs for every different model, Dockerfile and architecture."""
    import hashlib

    identity = "\0".join((model, dockerfile_stem, architecture)).encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(identity).hexdigest()[:HASH_LENGTH]
    readable = re.sub(r"[^a-z0-9]+", "-", "_".join((model, dockerfile_stem, architecture)).lower()).strip("-")
    room = MAX_LENGTH - HASH_LENGTH - len("ci--")
    return "-".join(part for part in ("ci", readable[:room].strip("-"), digest) if part)


def is_reference(text: str) -> bool:
    """Whether docker would accept the text as the name of an image."""
    return len(text) <= 512 and _REFERENCE.fullmatch(text) is not None


def is_dockerhub(registry: str) -> bool:
    """Whether a registry's name means Docker Hub."""
    return registry.lower().rstrip("/") in _DOCKERHUB_NAMES


def registry_image(image: str, registry: str, repository: str = "") -> str:
    """What a local image is called in a registry.

    Docker Hub: ``<repository>:<image>``. Others: ``<registry>/<repository>:<image>``, or ``<registry>/<image>`` when no
    repository is known.
    """
    if is_dockerhub(registry):
        return f"{repository}:{image}"
    host = registry.rstrip("/")
    return f"{host}/{repository.strip('/')}:{image}" if repository else f"{host}/{image}"
