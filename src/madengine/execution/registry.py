"""Registries: logging in and pushing, with the password on standard input and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from madengine.config.credentials import DOCKERHUB_ENTRY, Credentials, require_repository
from madengine.core.errors import BuildError, ConfigurationError
from madengine.core.process import Completed, run
from madengine.execution.engine import ContainerEngine, Output
from madengine.execution.image_names import DOCKERHUB, is_dockerhub, is_reference, registry_image

LOGIN_TIMEOUT = 60.0  # seconds

Run = Callable[..., Completed]


def credential_of(registry: str, credentials: Credentials) -> Mapping[str, str]:
    """The credential of a registry, empty when there is none: it may need none, or docker may know it already."""
    return credentials.get(DOCKERHUB_ENTRY if is_dockerhub(registry) else registry.rstrip("/"), {})


def push_name(image: str, registry: str, credentials: Credentials) -> str:
    """What an image will be called in a registry. Raises ConfigurationError when that is no valid name."""
    hub = is_dockerhub(registry)
    repository = require_repository(credentials) if hub else credential_of(registry, credentials).get("repository", "")
    name = registry_image(image, registry, repository)
    if not is_reference(name):
        raise ConfigurationError(
            f"{name!r} is no name for an image, so nothing can be pushed to {registry!r}",
            hint="a registry is docker.io or host[:port], without https://",
        )
    return name


def login(engine: str, registry: str, credential: Mapping[str, str], run: Run = run) -> bool:
    """Log the engine in to a registry; False when the credential has no user and password to log in with.

    Raises BuildError with the engine's own words when the registry refuses.
    """
    user, password = credential.get("username", ""), credential.get("password", "")
    if not user or not password:
        return False
    host = DOCKERHUB if is_dockerhub(registry) else registry.rstrip("/").split("/", 1)[0]
    argv = [engine, "login", f"--username={user}", "--password-stdin", host]
    done = run(argv, input=password, timeout=LOGIN_TIMEOUT)
    if done.exit_code != 0:
        words = (done.stderr or done.stdout).replace(password, "***").strip().splitlines()
        raise BuildError(
            f"{engine} could not log in to {host}: {words[-1] if words else f'exit code {done.exit_code}'}",
            hint="check the entry in credential.json",
        )
    return True


def push(engine: ContainerEngine, image: str, name: str, *, output: Output) -> None:
    """Push a local image under its name in a registry. Raises BuildError with the engine's own words."""
    engine.tag(image, name)
    engine.push(name, output=output)
