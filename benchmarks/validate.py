"""Checking a manifest of a thousand models against its contract."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.cards import cards
from benchmarks.measure import Result, interleaved, require
from madengine.core.documents import load_json
from madengine.schemas import validate_build_manifest

COUNT = 1_000


def measure(folder: Path) -> Iterator[Result]:
    """Reading and checking the file, against ``json.loads`` of its text; both in this process, warm."""
    path = folder / "build_manifest.json"
    path.write_text(json.dumps(manifest(), indent=2))
    text = path.read_text()

    def check() -> list[str]:
        return validate_build_manifest(load_json(path, what="build manifest"), source=str(path))

    require(check() == [], "a manifest without a warning")
    bare, checked = interleaved(lambda: json.loads(text), check, repetitions=31)
    yield Result("validate a manifest of 1,000 models", "json.loads of it", checked, bare, "s", 5 * bare, "<= 5x")


def manifest() -> dict[str, Any]:
    """A build manifest as ``madengine build`` writes it."""
    models = {f"ci-{card['name']}": card for card in cards(COUNT)}
    return {
        "built_images": {key: _image(key, card) for key, card in models.items()},
        "built_models": models,
        "context": {
            "docker_env_vars": {"NCCL_DEBUG": "WARN", "MIOPEN_FIND_MODE": "1"},
            "docker_mounts": {},
            "docker_build_arg": {},
            "gpu_vendor": "AMD",
            "guest_os": "UBUNTU",
        },
        "credentials_required": [],
        "summary": {
            "successful_builds": list(models),
            "failed_builds": [],
            "total_build_time": 4711.5,
            "successful_pushes": [],
            "failed_pushes": [],
        },
        "deployment_config": {"target": "local"},
    }


def _image(key: str, card: dict[str, Any]) -> dict[str, Any]:
    return {
        "model": card["name"],
        "docker_image": key,
        "dockerfile": f"{card['dockerfile']}.ubuntu.amd.Dockerfile",
        "base_docker": "rocm/pytorch:rocm7.0_ubuntu22.04_py3.10_pytorch_release_2.7.1",
        "docker_sha": "sha256:" + "0123456789abcdef" * 4,
        "build_duration": 12.5,
        "registry_image": None,
        "registry": None,
        "gpu_vendor": "AMD",
    }
