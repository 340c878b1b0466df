"""Building images: what one build needs, resolved from a card and its Dockerfile, and the build itself."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from madengine.catalog.card import ModelCard
from madengine.config.context import env_map
from madengine.config.credentials import Credentials, variables
from madengine.config.manifest import ImageRecord
from madengine.config.settings import Settings
from madengine.core.errors import BuildError
from madengine.execution.engine import BuildRequest, ContainerEngine, Output
from madengine.execution.image_names import image_name

if TYPE_CHECKING:
    from madengine.execution.base_image import Bases
    from madengine.execution.dockerfile import Dockerfile

LOCAL_IMAGE_DOCKERFILE = "N/A (local image mode)"
"""What ``dockerfile`` says in a manifest for an image that was given, not built."""

DEFAULT_CONTEXT = "docker"
TOOLS_CONTEXT = Path("docker") / "common"
TAIL = 4000  # bytes of a build's output that are searched for the reason of its failure
WORDS = 300  # characters of that reason
ARCHITECTURE_ARGUMENT = "MAD_SYSTEM_GPU_ARCHITECTURE"


@dataclass(frozen=True)
class ImageJob:
    """One image to build. ``warnings`` should be read before it is built."""

    model: str
    dockerfile: str
    request: BuildRequest
    bases: Bases
    gpu_vendor: str
    architecture: str = ""
    warnings: tuple[str, ...] = ()


def plan_image(
    card: ModelCard,
    dockerfile: Dockerfile,
    settings: Settings,
    package: Path,
    *,
    gpu_vendor: str,
    architecture: str = "",
    credentials: Credentials | None = None,
    no_cache: bool = False,
) -> ImageJob:
    """Resolve everything that the build of a card's image needs.

    ``architecture`` is the GPU architecture that was asked for by name; it becomes part of the image's name. Raises
    BuildError when a base image has no value, a credential is missing, or the context folder is not there.
    """
    from madengine.core.redact import is_secret_name
    from madengine.execution.base_image import bases

    given = {**env_map(card.block("docker_build_arg")), **settings.docker_build_arg}
    secrets = _secrets(card, dockerfile, given, settings, credentials or {})
    build_args = {n: v for n, v in given.items() if n not in secrets and not is_secret_name(n)}
    found = bases(dockerfile.text, build_args)
    if found.unset:
        line, written = found.unset[0]
        raise BuildError(
            f"FROM {written} has no value", where=f"{dockerfile.name}:{line}", hint="give it in docker_build_arg"
        )
    known = architecture or known_architecture(settings)
    if known and ARCHITECTURE_ARGUMENT in found.arguments:
        build_args.setdefault(ARCHITECTURE_ARGUMENT, known)
    request = BuildRequest(
        tag=image_name(card.name, dockerfile.stem, architecture),
        dockerfile=dockerfile.path,
        context=context_folder(card, dockerfile, package),
        build_args=build_args,
        secrets=secrets,
        contexts=named_contexts(package),
        no_cache=no_cache,
    )
    vendor = str(dockerfile.header.values.get("gpu_vendor", gpu_vendor))
    return ImageJob(
        card.name, dockerfile.name, request, found, vendor, known, _warnings(dockerfile, found, build_args, secrets)
    )


def _warnings(
    dockerfile: Dockerfile, found: Bases, build_args: Mapping[str, str], secrets: Mapping[str, str]
) -> tuple[str, ...]:
    warnings = [
        f"{dockerfile.name} declares ARG {name}: the value stays in the image's history; "
        f"RUN --mount=type=secret,id={name} leaves none"
        for name in secrets
        if name in found.arguments
    ]
    if ARCHITECTURE_ARGUMENT not in build_args and found.arguments.get(ARCHITECTURE_ARGUMENT, "given") in (None, ""):
        warnings.append(f"{dockerfile.name} asks for {ARCHITECTURE_ARGUMENT}; name it with --target-archs")
    return tuple(warnings)


def known_architecture(settings: Settings) -> str:
    """The GPU architecture that the context names, empty when it names none."""
    for block in (settings.docker_build_arg, settings.docker_env_vars, settings.context):
        if value := block.get(ARCHITECTURE_ARGUMENT):
            return str(value)
    return ""


def context_folder(card: ModelCard, dockerfile: Dockerfile, package: Path) -> Path:
    """The folder that is sent to the builder: the card's ``dockercontext``, else ``docker``, else the Dockerfile's."""
    written = card.text("dockercontext")
    if not written:
        folder = package / DEFAULT_CONTEXT
        return folder if folder.is_dir() else dockerfile.path.parent
    normal = os.path.normpath(written)
    if "\0" in written or normal == ".." or normal.startswith(("/", "../")):
        raise BuildError(f"dockercontext {written!r} leads out of the package")
    if not os.path.isdir(package / normal):  # noqa: PTH112 - Path.is_dir raises for a name that is too long
        raise BuildError(f"dockercontext {written!r} is no folder of the package")
    return package / normal


def named_contexts(package: Path) -> Mapping[str, Path]:
    """Build contexts that Dockerfiles may copy from by name: ``COPY --from=tools``."""
    tools = package / TOOLS_CONTEXT
    return {"tools": tools} if tools.is_dir() else {}


def _secrets(
    card: ModelCard,
    dockerfile: Dockerfile,
    given: Mapping[str, str],
    settings: Settings,
    credentials: Credentials,
) -> dict[str, str]:
    """The secrets that the Dockerfile mentions, and no others: each one given is one that could leak."""
    from madengine.core.redact import is_secret_name

    cred = card.text("cred")
    entry = credentials.get(cred, {}) if cred else {}
    named = {n: v for n, v in given.items() if is_secret_name(n) or n in settings.secrets}
    offered = {**settings.secrets, **variables(cred, entry), **named}
    mentioned = set(re.findall(r"\w+", dockerfile.text))
    wanted = f"{cred}_USERNAME", f"{cred}_PASSWORD"
    if cred and not entry and mentioned.intersection(wanted):
        raise BuildError(
            f"{dockerfile.name} needs the credential {cred!r}, and there is none",
            hint=f'add "{cred}": {{"username": ..., "password": ...}} to credential.json',
        )
    return {name: value for name, value in offered.items() if name in mentioned}


@dataclass(frozen=True)
class BuiltImage:
    """A build that succeeded. ``base_digest`` is the id of the base image, empty when it is not on this machine."""

    job: ImageJob
    seconds: float
    base_digest: str
    command: str
    log_file: str
    registry: str = ""
    registry_image: str = ""

    def record(self) -> ImageRecord:
        """The entry of ``built_images``."""
        job = self.job
        return ImageRecord(
            {
                "model": job.model,
                "docker_image": job.request.tag,
                "dockerfile": job.dockerfile,
                "base_docker": job.bases.base_docker,
                "docker_sha": self.base_digest,
                "local_image": not self.registry_image,
                "registry": self.registry or None,
                "registry_image": self.registry_image or None,
                "gpu_vendor": job.gpu_vendor,
                "gpu_architecture": job.architecture or None,
                "build_duration": round(self.seconds, 3),
                "build_command": self.command,
                "log_file": self.log_file,
            }
        )


def build_image(job: ImageJob, engine: ContainerEngine, *, log: Path, output: Output) -> BuiltImage:
    """Build one image, with its whole output in ``log`` and, redacted as well, handed to ``output``.

    Raises BuildError with the engine's own words.
    """
    from madengine.core.redact import Redactor

    request = with_pull(job.request, job.bases, engine)
    command = command_text(request, engine.name)
    redactor = Redactor(request.secrets.values())
    tail = bytearray()
    log.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    with log.open("wb") as file:
        file.write(f"$ {command}\n".encode())

        def both(chunk: bytes) -> None:
            file.write(chunk)
            output(chunk)
            tail.extend(chunk)
            del tail[:-TAIL]

        sink = redactor.sink(both)
        try:
            engine.build(request, output=sink)
        except BuildError as error:
            sink.close()
            words = last_words(tail.decode("utf-8", "replace"))
            message = f"{error.message}: {words}" if words else error.message
            raise BuildError(redactor.text(message), where=error.where, hint=error.hint) from None
        finally:
            sink.close()
    seconds = time.monotonic() - started
    facts = engine.image_facts(job.bases.base_docker) if job.bases.base_docker in job.bases.images else None
    return BuiltImage(job, seconds, facts.digest if facts else "", command, str(log))


def last_words(output: str) -> str:
    """The line of a failed build that says most: the builder's last ``ERROR`` line, else the last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    return (errors or lines or [""])[-1][:WORDS]


def with_pull(request: BuildRequest, found: Bases, engine: ContainerEngine) -> BuildRequest:
    """Ask for the newest base only where none of the bases is here: a local base may exist nowhere else."""
    missing = bool(found.images) and all(engine.image_facts(image) is None for image in found.images)
    return replace(request, pull=missing)


def command_text(request: BuildRequest, engine: str) -> str:
    """The build as a command to read: names of arguments and secrets, no values."""
    words = [engine, "build", f"--network={request.network}", "-t", request.tag, "-f", str(request.dockerfile)]
    words += ["--pull"] * request.pull + ["--no-cache"] * request.no_cache
    for name in (*request.build_args, *request.secrets):
        words += ["--build-arg", name]
    for name, folder in request.contexts.items():
        words += ["--build-context", f"{name}={folder}"]
    from madengine.core.shell import quote

    text = " ".join(quote(word) for word in [*words, str(request.context)])
    return text.encode("utf-8", "backslashreplace").decode()  # a path may hold bytes that are no UTF-8


def given_image(model: str, image: str, gpu_vendor: str, *, digest: str = "") -> ImageRecord:
    """The entry of ``built_images`` for an image that was named instead of built."""
    return ImageRecord(
        {
            **_NOTHING_BUILT,
            "model": model,
            "docker_image": image,
            "dockerfile": LOCAL_IMAGE_DOCKERFILE,
            "docker_sha": digest,
            "local_image": True,
            "gpu_vendor": gpu_vendor,
        }
    )


def registry_record(model: str, image: str, registry: str, gpu_vendor: str) -> ImageRecord:
    """The entry of ``built_images`` for an image that a registry has already."""
    return ImageRecord(
        {
            **_NOTHING_BUILT,
            "model": model,
            "docker_image": image,
            "registry": registry or None,
            "registry_image": image,
            "gpu_vendor": gpu_vendor,
        }
    )


def no_image(model: str, gpu_vendor: str) -> ImageRecord:
    """The entry of ``built_images`` for a model that runs without a container."""
    return ImageRecord({**_NOTHING_BUILT, "model": model, "docker_image": None, "gpu_vendor": gpu_vendor})


_NOTHING_BUILT: Mapping[str, Any] = {
    "dockerfile": None,
    "base_docker": "",
    "docker_sha": "",
    "local_image": False,
    "registry": None,
    "registry_image": None,
    "gpu_architecture": None,
    "build_duration": 0,
    "build_command": "",
    "log_file": "",
}
