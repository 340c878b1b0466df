"""From the options of ``build`` (and of a ``run`` that builds) to the cards and the frozen options of the build."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from madengine.cli import views
from madengine.core.errors import ConfigurationError, DiscoveryError

if TYPE_CHECKING:
    from madengine.catalog.card import ModelCard
    from madengine.catalog.discovery import Catalog
    from madengine.config.batch_manifest import BatchEntry
    from madengine.config.settings import Settings
    from madengine.orchestration.image_plan import BuildOptions

RUNS = Path("runs")

_ARCHITECTURE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:+-]*")


@dataclass(frozen=True)
class BuildWords:
    """The options of the command line that concern building, as they were typed."""

    tags: Sequence[str] = ()
    ignore_deprecated: bool = False
    registry: str | None = None
    clean_docker_cache: bool = False
    target_archs: Sequence[str] = ()
    use_image: str | None = None
    batch_manifest: Path | None = None

    @classmethod
    def of(cls, typed: object) -> BuildWords:
        """From a command that has these options among others, under the same names."""
        return cls(**{option.name: getattr(typed, option.name) for option in fields(cls)})


def read_build_request(
    package: Path, words: BuildWords, environ: Mapping[str, str]
) -> tuple[tuple[ModelCard, ...], BuildOptions]:
    """The selected cards and how their images come to be.

    Raises ConfigurationError (or its kinds) for every mistake in the words, before anything is started.
    """
    from madengine.catalog.discovery import discover
    from madengine.config.credentials import load_credentials
    from madengine.orchestration.image_plan import BuildOptions

    _refuse_contradictions(words)
    architectures = target_architectures(words.target_archs)
    credentials = load_credentials(package, environ)
    catalog = discover(package)
    cards, batch = _selected(catalog, words)
    options = BuildOptions(
        package=package,
        logs=build_folder(RUNS, datetime.now(timezone.utc), os.urandom(3).hex()) / "logs",
        registry=words.registry or "",
        credentials=credentials,
        no_cache=words.clean_docker_cache,
        target_archs=architectures,
        use_image=words.use_image or "",
        batch=batch,
    )
    return cards, options


def builds_nothing(options: BuildOptions, settings: Settings) -> bool:
    """Whether every image is named already, so that no engine is needed."""
    from madengine.orchestration.image_plan import CONTEXT_IMAGE

    if options.use_image or settings.context.get(CONTEXT_IMAGE):
        return True
    return bool(options.batch) and not any(entry.build_new for entry in options.batch.values())


def build_folder(root: Path, now: datetime, token: str) -> Path:
    """The folder of one build, like a run's: ``build-<UTC time>-<short id>``."""
    return root / f"build-{now:%Y%m%dT%H%M%SZ}-{token}"


def target_architectures(words: Sequence[str]) -> tuple[str, ...]:
    """The architectures of ``--target-archs``, each once. Raises ConfigurationError for one that can be none."""
    names = [name.strip() for word in words for name in word.split(",") if name.strip()]
    for name in names:
        if not _ARCHITECTURE.fullmatch(name):
            raise ConfigurationError(f"{name!r} is no GPU architecture", where="--target-archs", hint="gfx942,gfx950")
    return tuple(dict.fromkeys(names))


def _refuse_contradictions(words: BuildWords) -> None:
    if words.batch_manifest and words.tags:
        raise ConfigurationError("--batch-manifest names the models itself, so it does not go with --tags")
    if words.batch_manifest and words.use_image:
        raise ConfigurationError("--batch-manifest names the images itself, so it does not go with --use-image")
    if words.registry and words.use_image:
        raise ConfigurationError("--use-image builds nothing, so there is nothing to push: leave out --registry")


def _selected(catalog: Catalog, words: BuildWords) -> tuple[tuple[ModelCard, ...], dict[str, BatchEntry]]:
    from madengine.catalog.selection import select

    if not words.batch_manifest:
        return select(catalog, words.tags, ignore_deprecated=words.ignore_deprecated, warn=views.warn), {}
    from madengine.config.batch_manifest import load_batch_manifest

    cards: dict[str, ModelCard] = {}
    batch: dict[str, BatchEntry] = {}
    for index, entry in enumerate(load_batch_manifest(words.batch_manifest)):
        found = select(catalog, [entry.model_name], ignore_deprecated=True, warn=views.warn)
        if len(found) != 1 or entry.model_name not in (found[0].name, found[0].short_name):
            place = f"{words.batch_manifest}#/{index}/model_name"
            raise DiscoveryError(f"{entry.model_name!r} is not the name of one model", where=place)
        cards[found[0].name] = found[0]
        batch[found[0].name] = entry
    return tuple(cards.values()), batch
