"""Generated cards: runs a package's ``get_models_json.py`` in a child process with a time limit.

The child (``dynamic_child.py``) sees what madengine itself could import, plus the script's own folder; it runs in that
folder, with standard input closed and no bytecode written into the package. Its answer comes through a temporary
file; what it prints is dropped, except that the last line is quoted when the script breaks.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from madengine.catalog.rules import shown
from madengine.core.errors import ConfigurationError, DiscoveryError

if TYPE_CHECKING:
    import threading

LIMIT_VARIABLE = "MAD_DISCOVERY_TIMEOUT"
DEFAULT_LIMIT = 60.0  # seconds that a script may take
_TAIL = 4096  # bytes of a script's chatter that are kept


@dataclass(frozen=True)
class Generated:
    """What a script gave: the documents of its models, and the names of those that want to be updated on selection."""

    documents: list[Any]
    updatable: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ScriptRunner:
    """Runs the scripts of one package. ``environment`` is what they inherit, ``limit`` is in seconds."""

    package: Path
    environment: Mapping[str, str]
    limit: float = DEFAULT_LIMIT

    @classmethod
    def from_environment(cls, package: Path, environment: Mapping[str, str]) -> ScriptRunner:
        """A runner with the time limit that ``MAD_DISCOVERY_TIMEOUT`` gives in seconds."""
        text = environment.get(LIMIT_VARIABLE, "")
        try:
            limit = float(text) if text else DEFAULT_LIMIT
        except ValueError:
            limit = -1.0
        if not 0 < limit < 1e6:
            raise ConfigurationError(
                f"{LIMIT_VARIABLE} is {shown(text)}, allowed is a number of seconds above 0",
                hint=f"unset it for the default of {DEFAULT_LIMIT:g} seconds",
            )
        return cls(package, environment, limit)

    def list_models(self, script: Path, *, cancel: threading.Event | None = None) -> Generated:
        """All models of a script. Raises DiscoveryError saying why it gives none; ``cancel`` ends it early."""
        return self._run(script, None, cancel)

    def update_models(self, script: Path, names: Sequence[str]) -> Generated:
        """The models of these short names after their ``update_model()``. Raises DiscoveryError."""
        return self._run(script, list(names), None)

    def _run(self, script: Path, update: list[str] | None, cancel: threading.Event | None) -> Generated:
        import tempfile

        from madengine.core import process

        if not script.is_file():  # a pipe would be waited for
            raise DiscoveryError("the script is no regular file")
        with tempfile.TemporaryDirectory(prefix="madengine-discover-") as folder:
            answer = Path(folder) / "answer.json"
            chatter = _Tail()
            result = process.stream(
                _command(script, update, answer),
                output=chatter,
                env={**self.environment, "MODEL_DIR": str(self.package)},
                cwd=script.parent,
                timeout=self.limit,
                cancel=cancel,
                grace=1.0,
                end_group=True,
            )
            if result.timed_out:
                raise DiscoveryError(
                    f"the script did not answer within {self.limit:g} seconds",
                    hint=f"set {LIMIT_VARIABLE} to a number of seconds to give it more time",
                )
            if not answer.exists():
                said = _quoted(chatter.last_line())
                raise DiscoveryError(f"the script ended with exit code {result.exit_code} and no list of models{said}")
            return _understood(answer, script, chatter.last_line())


class _Tail:
    """Keeps the end of what a script prints."""

    def __init__(self) -> None:
        self._kept = b""

    def __call__(self, chunk: bytes) -> None:
        self._kept = (self._kept + chunk)[-_TAIL:]

    def last_line(self) -> str:
        lines = self._kept.decode("utf-8", "replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _command(script: Path, update: list[str] | None, answer: Path) -> list[str]:
    import json

    request = {
        "script": str(script),
        "scope": script.parent.name,
        "update": update,
        "answer": str(answer),
        "path": [str(Path(entry).absolute()) for entry in sys.path if entry],
    }
    child = Path(__file__).with_name("dynamic_child.py")
    # -I: neither the current folder nor PYTHON* variables decide what is imported; -B: nothing written into the package
    return [sys.executable, "-I", "-B", str(child), json.dumps(request)]


def _understood(answer: Path, script: Path, last_line: str) -> Generated:
    """The child's answer, read as strictly as any file of the package."""
    from madengine.core.documents import parse_json, read_text

    what = "list of models it generates"
    try:
        document = parse_json(read_text(answer, what=what), source=os.fspath(script), what=what)
    except ConfigurationError as error:
        raise DiscoveryError(error.message) from None
    if "error" in document:
        raise DiscoveryError(f"the script is broken: {document['error']}{_quoted(last_line)}")
    return Generated(document["models"], frozenset(document["updatable"]))


def _quoted(last_line: str) -> str:
    return f"; the last line it printed: {shown(last_line, 200)}" if last_line else ""
