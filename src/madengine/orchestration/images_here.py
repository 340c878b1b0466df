"""Making a run's image available on this machine just before it is needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from madengine.config.context import env_map
from madengine.config.credentials import load_credentials
from madengine.core.errors import BuildError
from madengine.core.redact import is_secret_name
from madengine.execution.engine import ContainerEngine
from madengine.execution.runner import Observer
from madengine.execution.spec import RunSpec
from madengine.orchestration.prepare import RunRequest

if TYPE_CHECKING:
    from madengine.execution.images import ImageJob


class ImageKeeper:
    """Makes images available on this machine and remembers what they turned out to be."""

    def __init__(self, request: RunRequest, engine: ContainerEngine, context: Mapping[str, Any]) -> None:
        """``context`` is the effective manifest's: an image is built again with the arguments it was built with."""
        self._request, self._engine = request, engine
        self._settings = replace(
            request.settings,
            context=context,
            docker_build_arg=env_map(context.get("docker_build_arg")),
            docker_env_vars=env_map(context.get("docker_env_vars")),
            guest_os=str(context.get("guest_os") or request.settings.guest_os),
        )
        self._digests: dict[str, str] = {}

    def __call__(self, spec: RunSpec, observer: Observer) -> None:
        """Make the spec's image available. Raises ``MADEngineError`` with what was tried."""
        reference = spec.image.docker_image
        facts = self._engine.image_facts(reference)
        if facts is None:
            self._fetch(spec, observer)
            facts = self._engine.image_facts(reference)
        self._digests[reference] = facts.digest if facts else ""

    def digest_of(self, reference: str) -> str:
        """The digest of an image that was made available, empty for another."""
        return self._digests.get(reference, "")

    def _fetch(self, spec: RunSpec, observer: Observer) -> None:
        from madengine.execution.ensure_image import archives_folder, ensure_image

        observer.phase(f"image {spec.image.docker_image}")
        how = ensure_image(
            spec.image,
            self._engine,
            archives=archives_folder(self._request.environ),
            build=self._builder(spec, observer),
            output=observer.output,
        )
        observer.note(f"image {spec.image.docker_image}: {how}")

    def _builder(self, spec: RunSpec, observer: Observer) -> Callable[[], None] | None:
        """What builds the image again; nothing of that is looked at before it is needed."""
        from madengine.execution.ensure_image import is_rebuilt, rebuild_job
        from madengine.execution.images import build_image

        if not is_rebuilt(spec.image):
            return None

        def build() -> None:
            request = self._request
            settings = replace(
                self._settings, docker_build_arg=_with_secrets(self._settings.docker_build_arg, request.environ)
            )
            credentials = load_credentials(request.package, request.environ)
            job = rebuild_job(spec.image, spec.card, settings, request.package, credentials)
            _require_secrets(job)
            build_image(job, self._engine, log=spec.run_dir / "logs" / "build.log", output=observer.output)

        return build


def _with_secrets(arguments: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """Build arguments with the secrets that a written manifest only refers to, as far as they are set here."""
    return {
        name: (environ.get(name) or value) if _is_left_out(name, value) else value for name, value in arguments.items()
    }


def _require_secrets(job: ImageJob) -> None:
    """Raise ``BuildError`` when the Dockerfile wants a secret that the manifest refers to and that is not set here."""
    for name, value in job.request.secrets.items():
        if _is_left_out(name, value):
            raise BuildError(f"the build argument {name} is a secret, and it is not set here")


def _is_left_out(name: str, value: str) -> bool:
    return is_secret_name(name) and value == f"${{{name}}}"
