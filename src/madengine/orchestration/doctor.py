"""What works on this machine, and what to do about the rest."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from madengine.catalog.card import ModelCard
from madengine.catalog.discovery import discover
from madengine.config.manifest import BuildManifest
from madengine.config.manifest_io import read_manifest
from madengine.config.settings import Settings
from madengine.core.errors import ConfigurationError, MADEngineError
from madengine.deployment.base import TARGETS, Finding, Workshop, target_class
from madengine.deployment.carrier import Carrier
from madengine.execution.engine import ContainerEngine
from madengine.execution.gpu import GpuInventory
from madengine.orchestration.effective import effective_manifest

LITTLE_SPACE = 10 << 30  # bytes; images and workspaces of real models need more


def examine(
    package: Path, load: Callable[[str], ContainerEngine], detect: Callable[[], GpuInventory]
) -> tuple[Finding, ...]:
    """Look at everything that a run on this machine relies on. Starts nothing, changes nothing."""
    return (
        Finding("python", "ok", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
        _git(),
        *_engines(load),
        _gpus(detect),
        _directory(Path.cwd()),
        _package(package),
    )


def examine_target(
    name: str,
    settings: Settings,
    manifest_file: Path | None,
    *,
    package: Path,
    engine: str,
    environ: Mapping[str, str],
) -> tuple[Finding, ...]:
    """Look at what runs on another target rely on, with the manifest or the context that says what they ask for.

    Raises ``ConfigurationError`` for a target that nobody knows, and for a manifest or context that cannot be used.
    """
    if name not in TARGETS:
        raise ConfigurationError(f"there is no target {name!r}", where="--target", hint=f"one of: {', '.join(TARGETS)}")
    kind = target_class(name)
    if not kind.remote:
        return ()
    given = read_manifest(manifest_file)[0] if manifest_file else BuildManifest({}, {})
    manifest = effective_manifest(given, settings)
    workshop = Workshop(
        deployment=manifest.deployment_config,
        inherited=environ,
        environ=environ,
        order={"package": str(package), "engine": engine, "gpu_vendor": settings.gpu_vendor or ""},
    )
    cards = list(manifest.models.values()) or [ModelCard({"name": "any model"})]
    return kind.create(workshop).examine(cards)


def _git() -> Finding:
    if shutil.which("git"):
        return Finding("git", "ok", "found")
    return Finding("git", "warning", "not found", "install git: cards with a url are cloned, commits are recorded")


def _engines(load: Callable[[str], ContainerEngine]) -> Iterator[Finding]:
    """A container engine that does not work is a warning: the host engine runs scripts all the same."""
    for name in ("docker", "podman"):
        engine = load(name)
        problem = engine.problem()
        if problem is None:
            yield Finding(name, "ok", "answers")
            yield from _left_over(engine)
        else:
            yield Finding(name, "warning", problem, f"install or start {name}, or run with --engine host")
    yield Finding("host engine", "ok", "runs scripts on this machine without a container")


def _left_over(engine: ContainerEngine) -> Iterator[Finding]:
    """Containers whose run has ended: a ``kill -9`` leaves one, and so does ``--keep-alive``."""
    subject = f"{engine.name} containers"
    try:
        found = engine.containers()
    except MADEngineError as error:
        yield Finding(subject, "warning", str(error))
        return
    names = sorted(name for name, directory in found.items() if not _is_carried(directory))
    if names:
        left = f"left over from runs that have ended: {', '.join(names)}"
        yield Finding(subject, "warning", left, f"unless you want to keep them: {engine.name} rm -f {' '.join(names)}")


def _is_carried(run_dir: Path) -> bool:
    carrier = Carrier.read(run_dir)
    return carrier is not None and carrier.may_live()


def _gpus(detect: Callable[[], GpuInventory]) -> Finding:
    found = detect()
    if found.vendor == "CPU":
        return Finding("gpus", "ok", "none: cards that ask for 0 or all GPUs run on the CPU")
    facts = " ".join(part for part in (found.vendor, found.architecture, found.product) if part)
    return Finding("gpus", "ok", f"{found.count} x {facts}")


def _directory(folder: Path) -> Finding:
    if not os.access(folder, os.W_OK):
        return Finding("directory", "problem", f"{folder} cannot be written", "change to a directory of yours")
    free = shutil.disk_usage(folder).free
    shown = f"{folder}, {free / (1 << 30):.1f} GiB free"
    if free < LITTLE_SPACE:
        return Finding("directory", "warning", shown, "runs and images of large models may fill the disk")
    return Finding("directory", "ok", shown)


def _package(package: Path) -> Finding:
    try:
        catalog = discover(package)
    except MADEngineError as error:
        return Finding("package", "warning", str(error), "change to a model package, or set MODEL_DIR")
    broken = sum(problem.is_error for problem in catalog.problems)
    detail = f"{package}: {len(catalog.cards)} model cards"
    if broken:
        return Finding("package", "problem", f"{detail}, {broken} problems", "see `madengine discover`")
    return Finding("package", "ok", detail)
