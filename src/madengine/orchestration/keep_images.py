"""Leaving freshly built images for nodes that cannot pull them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from madengine.config.manifest import BuildManifest
from madengine.core.errors import MADEngineError
from madengine.execution.engine import ContainerEngine


def keep_for_nodes(
    manifest: BuildManifest, engine: ContainerEngine, environ: Mapping[str, str], say: Callable[[str], None]
) -> None:
    """Save each image of the manifest that is in no registry under ``MAD_DOCKER_BUILDS``, when that is set.

    An image that cannot be saved is said and breaks nothing off: a node builds it then.
    """
    from madengine.execution.ensure_image import ARCHIVES_VARIABLE, archives_folder, keep_archive

    archives = archives_folder(environ)
    for reference in _in_no_registry(manifest) if archives else ():
        assert archives is not None
        try:
            keep_archive(reference, engine, archives)
        except (MADEngineError, OSError) as error:
            say(f"image {reference} was not kept for the nodes: {error}")
        else:
            say(f"image {reference}: kept for the nodes under ${ARCHIVES_VARIABLE}")


def _in_no_registry(manifest: BuildManifest) -> Iterator[str]:
    found = (image.docker_image for image in manifest.images.values() if not image.text("registry_image"))
    yield from dict.fromkeys(reference for reference in found if reference)
