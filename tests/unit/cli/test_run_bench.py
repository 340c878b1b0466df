"""What was built on the submit node and is to run elsewhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.recording_engine import RecordingEngine
from tests.unit.orchestration.worlds import manifest

from madengine.cli.run_bench import Bench
from madengine.config.manifest import ImageRecord
from madengine.execution.gpu import GpuInventory
from madengine.orchestration.prepare import Means, Source

BUILT = replace(manifest({}), images={"k0": ImageRecord({"docker_image": "ci-a"})})


@pytest.mark.parametrize(
    ("remote", "source", "kept"),
    [
        (True, Source(BUILT, built=BUILT), ["ci-a.tar"]),
        (False, Source(BUILT, built=BUILT), []),
        (True, Source(BUILT), []),
        (True, Source(BUILT, built=BUILT, interrupted=True), []),
    ],
)
def test_images_that_were_built_for_nodes_elsewhere_are_kept_for_them(
    tmp_path: Path, remote: bool, source: Source, kept: list[str]
) -> None:
    unused: Any = None
    prepared: Any = SimpleNamespace(
        target=SimpleNamespace(remote=remote), plan=SimpleNamespace(environ={"MAD_DOCKER_BUILDS": str(tmp_path)})
    )
    bench = Bench(unused, unused, Means(RecordingEngine(), GpuInventory()), unused)
    bench.keep_for_nodes(source, prepared)
    assert [path.name for path in tmp_path.iterdir()] == kept
