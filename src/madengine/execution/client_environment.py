"""Which variables reach a container through the client's environment, and which must go another way.

``docker run -e NAME`` takes the value from the client's own environment, so that no value stands in a process list. A
variable that the client reads itself - where its engine is, its home, its proxy - would lead it astray there. Such a
variable travels under another name and gets its own back inside the container.

What a container was given is no secret before those who may talk to its engine: ``docker inspect`` shows it to them as
long as the container is there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from madengine.core.errors import ConfigurationError

CARRIER = "MADENGINE_CARRIED_"

_OWN_NAMES = re.compile(
    r"HOME|PATH|USER|LOGNAME|SHELL|PWD|TMPDIR|TMP|TEMP|TERM|COLUMNS|TZ|NO_COLOR|[A-Z]+_PROXY|GO[A-Z]+|GLIBC_TUNABLES"
    r"|REGISTRY_AUTH_FILE|SSL_CERT_(FILE|DIR)|NOTIFY_SOCKET|KUBECONFIG|RES_OPTIONS|LOCALDOMAIN|HOSTALIASES",
    re.IGNORECASE,
)
_OWN_PREFIXES = re.compile(
    r"(DOCKER|BUILDKIT|BUILDX|_?CONTAINERS?|PODMAN|STORAGE|MOBY|OTEL|LD|XDG|SSH|LISTEN|LC|DBUS|MALLOC)_|LANG"
)


@dataclass(frozen=True)
class Passing:
    """How variables are handed over: ``plain`` under their own names, ``carried`` as carrier name -> (name, value)."""

    plain: Mapping[str, str]
    carried: Mapping[str, tuple[str, str]]

    def client(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """The client's environment with all the values in it."""
        return {**inherited, **self.plain, **{carrier: value for carrier, (_, value) in self.carried.items()}}

    @property
    def names(self) -> tuple[str, ...]:
        """What stands after ``-e``."""
        return (*self.plain, *self.carried)

    @property
    def renames(self) -> tuple[str, ...]:
        """Name and carrier in turn, for the wrapper that gives each variable its own name back."""
        return tuple(word for carrier, (name, _) in self.carried.items() for word in (name, carrier))


def passing(variables: Mapping[str, str]) -> Passing:
    """Sort variables by the way they travel. Raises ``ConfigurationError`` for what can be no variable at all."""
    check_variables(variables)
    own = {name: value for name, value in variables.items() if is_the_clients(name)}
    plain = {name: value for name, value in variables.items() if name not in own}
    return Passing(plain, {CARRIER + name: (name, value) for name, value in own.items()})


def check_variables(variables: Mapping[str, str]) -> None:
    """Raise ``ConfigurationError`` for what no process can be given (and ``NAME*``, a pattern to podman)."""
    for name, value in variables.items():
        if not name or "=" in name or "\0" in name or "\0" in value or name.endswith("*"):
            raise ConfigurationError(f"{name!r} cannot be an environment variable with its value")


def is_the_clients(name: str) -> bool:
    """Whether docker, podman or the libraries that they are made of read a variable of this name."""
    return bool(_OWN_NAMES.fullmatch(name) or _OWN_PREFIXES.match(name))


def is_stated(name: str) -> bool:
    """Whether a build argument has to be stated with its value, since the client would take it for its own.

    Proxies are not: the client heeds them only for an engine across a network, and their values may hold a password.
    """
    return is_the_clients(name) and not name.upper().endswith("_PROXY")
