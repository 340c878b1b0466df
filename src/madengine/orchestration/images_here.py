"""Making a run's image available on this machine just before it is needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from madengine.config.context import env_map
from madengine.config.credentials import load_credentials
from madengine.execution.engine import ContainerEngine
from madengine.execution.runner import Observer
from madengine.execution.spec import RunSpec
from madengine.orchestration.prepare import RunRequest


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
        from madengine.execution.ensure_image import archives_folder, builder, ensure_image, rebuild_job

        request = self._request
        observer.phase(f"image {spec.image.docker_image}")
        credentials = load_credentials(request.package, request.environ)
        job = rebuild_job(spec.image, spec.card, self._settings, request.package, credentials)
        how = ensure_image(
            spec.image,
            self._engine,
            archives=archives_folder(request.environ),
            build=builder(job, self._engine, log=spec.run_dir / "logs" / "build.log", output=observer.output),
            output=observer.output,
        )
        observer.note(f"image {spec.image.docker_image}: {how}")
