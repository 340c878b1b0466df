"""Finding a card's script."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.orchestration.worlds import package

from madengine.catalog.card import ModelCard
from madengine.core.errors import DiscoveryError
from madengine.execution.spec import ScriptPlan
from madengine.orchestration.scripts import script_plan


def card(scripts: str | None, **fields: str) -> ModelCard:
    return ModelCard({"name": "m", "scripts": scripts, **fields})


@pytest.mark.parametrize(
    ("written", "file", "interpreter"),
    [
        ("scripts/m/run.sh", "run.sh", ("bash",)),
        ("scripts/m", "run.sh", ("bash",)),
        ("scripts/m/", "run.sh", ("bash",)),
        ("./scripts/../scripts/m/run.sh", "run.sh", ("bash",)),
        ("scripts/m/x.py", "x.py", ("python3",)),
        ("scripts/m/job.slurm", "job.slurm", ("bash",)),
        ("scripts/m/job.sbatch", "job.sbatch", ("bash",)),
        ("scripts/m/no_suffix", "no_suffix", ("bash",)),
    ],
)
def test_a_script_has_a_folder_a_file_and_an_interpreter(
    tmp_path: Path, written: str, file: str, interpreter: tuple[str, ...]
) -> None:
    root = package(tmp_path).resolve()
    for name in ("x.py", "job.slurm", "job.sbatch", "no_suffix"):
        (root / "scripts/m" / name).touch()
    plan = script_plan(card(written, args="--x"), root)
    assert plan == ScriptPlan(root / "scripts" / "m", file, interpreter, "--x")


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (None, "names no script"),
        ("", "names no script"),
        ("scripts/m/rum.sh", r"the package has no scripts/m/rum.sh \(scripts/m holds: run.sh\)"),
        ("scripts/zzz/run.sh", "there is no folder scripts/zzz in "),
        ("scripts", r"the package has no scripts/run.sh \(scripts holds: empty, m\)"),
        ("scripts/empty", r"scripts/empty holds: nothing"),
        ("../x.sh", "lies outside its package"),
        ("/etc/passwd", "lies outside its package"),
        ("scripts/m/link.sh", "lies outside its package"),
        ("scripts/a\0b", "is no path of a file"),
        ("x" * 5000, "is no path of a file"),
        ("scripts/loop", "is no path of a file|the package has no"),
    ],
)
def test_a_script_that_is_not_to_be_had_is_a_sentence(tmp_path: Path, written: str | None, said: str) -> None:
    root = package(tmp_path)
    (root / "scripts" / "empty").mkdir()
    (root / "scripts" / "loop").symlink_to("loop") if written == "scripts/loop" else None
    (root / "scripts" / "m" / "link.sh").symlink_to("/etc/passwd") if "link" in str(written) else None
    with pytest.raises(DiscoveryError, match=said):
        script_plan(card(written), root)


def test_a_link_inside_the_package_is_followed(tmp_path: Path) -> None:
    root = package(tmp_path)
    (root / "alias").symlink_to("scripts/m")
    assert script_plan(card("alias/run.sh"), root).folder == (root / "scripts" / "m").resolve()
