"""Docker and podman, by one adapter over their command lines.

Everything goes through argv lists; no value of a variable stands in one. A container is known by the id that the engine
gave it, never by its name, so that somebody else's container of the same name is not touched.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from madengine.core.errors import BuildError, ExecutionError, MADEngineError
from madengine.core.process import Completed, StreamResult, run, stream
from madengine.execution import docker_words
from madengine.execution.client_environment import is_stated, passing
from madengine.execution.docker_container import CommandContainer
from madengine.execution.docker_words import Dialect
from madengine.execution.engine import BuildRequest, ContainerRequest, ImageFacts, Output

PROBE_LIMIT = 20.0  # seconds
QUICK_LIMIT = 60.0  # seconds, for what needs no work of the engine's


def docker() -> CommandEngine:
    """The docker engine that the environment leads to (DOCKER_HOST, contexts)."""
    return CommandEngine(docker_words.DOCKER)


def podman() -> CommandEngine:
    """Podman."""
    return CommandEngine(docker_words.PODMAN)


class CommandEngine:
    """A container engine behind a docker-like command. ``grace`` is the time in seconds between TERM and KILL."""

    needs_image = True

    def __init__(self, dialect: Dialect, *, grace: float = 10.0) -> None:
        self.name = dialect.program
        self._dialect = dialect
        self._grace = grace
        self._version = ""
        self._buildkit: bool | None = None

    def problem(self) -> str | None:
        """Why the engine cannot be used, in its own words where it has some. It is asked until it has answered once."""
        if self._version:
            return None
        if shutil.which(self._dialect.program) is None:
            return "not installed"
        field = "{{.Server.Version}}" if self.name == "docker" else "{{.Client.Version}}"
        probe = self._run("version", "--format", field, timeout=PROBE_LIMIT)
        if probe.timed_out:
            return f"does not answer within {PROBE_LIMIT:g} s"
        if probe.exit_code or not probe.stdout.strip():
            return engine_words(probe)
        self._version = probe.stdout.strip()
        return None

    def describe(self) -> str:
        """``docker 26.1.5``."""
        if not self._version:
            self.problem()
        return f"{self.name} {self._version}".rstrip()

    def build(self, request: BuildRequest, *, output: Output, timeout: float | None = None) -> None:
        """Build an image. Raises ``BuildError`` with the exit code; the reason is in the output."""
        buildkit = self._has_buildkit()
        if request.contexts and not buildkit:
            raise BuildError(
                f"{request.tag} needs a named build context ({', '.join(request.contexts)}), which this builder lacks",
                hint="install docker's buildx plugin",
            )
        given = {name: value for name, value in request.build_args.items() if not is_stated(name)}
        environment = {**os.environ, **given, **request.secrets, **({"DOCKER_BUILDKIT": "1"} if buildkit else {})}
        words = docker_words.build_words(self._dialect, request, buildkit=buildkit)
        result = self._stream(words, output=output, env=environment, timeout=timeout)
        if result.timed_out:
            raise BuildError(f"the build of {request.tag} was ended at its time limit of {timeout:g} s")
        if result.exit_code:
            raise BuildError(f"the build of {request.tag} failed: {self.name} exited {result.exit_code}")

    def pull(self, reference: str, *, output: Output) -> None:
        """Fetch an image from its registry."""
        self._work(("pull", "--", reference), f"pull {reference}", output)

    def push(self, reference: str, *, output: Output) -> None:
        """Send a local image to its registry."""
        self._work(("push", "--", reference), f"push {reference}", output)

    def tag(self, reference: str, alias: str) -> None:
        """Give a local image a second name."""
        self._ask(("tag", "--", reference, alias), f"tag {reference} as {alias}", BuildError)

    def load(self, archive: Path, *, output: Output) -> None:
        """Load an image from a tar archive."""
        self._work(("load", "--input", str(archive)), f"load {archive}", output)

    def save(self, reference: str, archive: Path) -> None:
        """Write an image to a tar archive: beside it first, then renamed, so that no reader sees half of it."""
        archive.parent.mkdir(parents=True, exist_ok=True)
        part = archive.with_name(f".{archive.name}.{os.uname().nodename}-{os.getpid()}.part")
        try:
            self._ask(("save", "--output", str(part), "--", reference), f"save {reference}", BuildError, timeout=None)
            part.replace(archive)
        finally:
            part.unlink(missing_ok=True)

    def image_facts(self, reference: str) -> ImageFacts | None:
        """Id and environment of a local image. Raises ``ExecutionError`` when the engine does not answer."""
        import json

        found = self._run("image", "inspect", "--format", "{{json .}}", "--", reference, timeout=QUICK_LIMIT)
        if found.exit_code:
            if "no such image" in found.stderr.lower() or "image not known" in found.stderr.lower():
                return None
            raise ExecutionError(f"{self.name} cannot tell about image {reference}: {engine_words(found)}")
        image = json.loads(found.stdout.splitlines()[0])
        pairs = (str(entry).partition("=") for entry in (image.get("Config") or {}).get("Env") or ())
        return ImageFacts(reference, str(image.get("Id", "")), {name: value for name, _, value in pairs})

    def remove_image(self, reference: str) -> None:
        """Remove a local image; one that is not there is fine."""
        if self.image_facts(reference) is not None:
            self._ask(("image", "rm", "--", reference), f"remove image {reference}", BuildError)

    def start(self, request: ContainerRequest) -> CommandContainer:
        """Start a container that waits for commands. Raises ``ExecutionError`` with the engine's text."""
        import tempfile

        variables = passing({**request.environment, **request.secrets})
        with tempfile.TemporaryDirectory(prefix="madengine-") as folder:
            cidfile = Path(folder) / "id"
            words = docker_words.run_words(self._dialect, request, tuple(variables.plain), cidfile)
            started = run([self._dialect.program, *words], env=variables.client(os.environ))
            identity = cidfile.read_text().strip() if cidfile.exists() else ""
        if started.exit_code == 0 and identity:
            return CommandContainer(self._dialect, identity, request, variables, self._grace)
        if identity:
            self._run("rm", "--force", "--volumes", identity, timeout=QUICK_LIMIT)
        raise self._refusal(request, started)

    def containers(self) -> dict[str, Path]:
        """All of madengine's containers, by name, with their run directories. Raises ``ExecutionError``."""
        import json

        found = self._run("ps", "--all", "--quiet", "--filter", "label=madengine.run", timeout=QUICK_LIMIT)
        if found.exit_code:
            raise ExecutionError(f"{self.name} cannot list containers: {engine_words(found)}")
        identities = found.stdout.split()
        if not identities:
            return {}
        shown = '[{{json .Name}}, {{json (index .Config.Labels "madengine.directory")}}]'
        # One that was removed meanwhile is an error of the command, and the others are shown all the same.
        asked = self._run("inspect", "--type", "container", "--format", shown, *identities, timeout=QUICK_LIMIT)
        pairs = (json.loads(line) for line in asked.stdout.splitlines() if line.strip())
        return {name.removeprefix("/"): Path(directory) for name, directory in pairs}

    def _refusal(self, request: ContainerRequest, started: Completed) -> ExecutionError:
        """The engine's text, and what to do about the mistakes that are made most."""
        text = engine_words(started)
        if "executable file not found" in text or '"tail": stat' in text:
            hint = (
                f"the image {request.image} has no {docker_words.WAITING[0]}; a model's image needs bash and coreutils"
            )
        elif "already in use" in text:
            hint = "madengine does not remove a container that it has not made"
        elif "no such image" in text.lower() or "image not known" in text.lower():
            hint = f"build it with `madengine build`, or pull it: {self.name} pull {request.image}"
        else:
            hint = None
        return ExecutionError(f"{self.name} cannot start a container ({started.exit_code}): {text}", hint=hint)

    def _has_buildkit(self) -> bool:
        """Podman's builder knows what BuildKit knows; docker needs its buildx plugin."""
        if self._buildkit is None:
            plugin = ("buildx", "version")
            self._buildkit = self.name == "podman" or self._run(*plugin, timeout=PROBE_LIMIT).exit_code == 0
        return self._buildkit

    def _run(self, *words: str, timeout: float | None = None) -> Completed:
        return run([self._dialect.program, *words], timeout=timeout)

    def _stream(
        self, words: Sequence[str], *, output: Output, env: dict[str, str] | None = None, timeout: float | None = None
    ) -> StreamResult:
        return stream([self._dialect.program, *words], output=output, env=env, timeout=timeout)

    def _ask(
        self, words: Sequence[str], what: str, kind: type[MADEngineError], timeout: float | None = QUICK_LIMIT
    ) -> None:
        done = self._run(*words, timeout=timeout)
        if done.exit_code:
            raise kind(f"{self.name} cannot {what}: {engine_words(done)}")

    def _work(self, words: Sequence[str], what: str, output: Output) -> None:
        """Work with output that may take long; its last line says why it failed."""
        last = LastLine(output)
        result = self._stream(words, output=last)
        if result.exit_code:
            raise BuildError(f"{self.name} cannot {what}: {last.text() or f'exited {result.exit_code}'}")


class LastLine:
    """Hands output on and remembers the last line that was not blank."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._tail = b""

    def __call__(self, data: bytes) -> None:
        self._output(data)
        self._tail = (self._tail + data)[-2000:]

    def text(self) -> str:
        """The last line, without the engine's own preamble."""
        lines = [line.strip() for line in self._tail.decode("utf-8", "replace").splitlines() if line.strip()]
        return _without_preamble(lines[-1]) if lines else ""


def engine_words(done: Completed) -> str:
    """What an engine said went wrong, on one line and without its usage advice."""
    lines = [line.strip() for line in (done.stderr.strip() or done.stdout).splitlines()]
    said = [_without_preamble(line) for line in lines if line and not line.startswith(("See 'docker", "Run 'docker"))]
    if done.timed_out:
        said.append("no answer in time")
    return " ".join(said) or f"exited {done.exit_code} without a word"


def _without_preamble(line: str) -> str:
    for preamble in ("docker: ", "Error response from daemon: ", "Error: "):
        line = line.removeprefix(preamble)
    return line
