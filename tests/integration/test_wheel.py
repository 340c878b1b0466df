"""The wheel that a clean checkout builds holds everything the product needs, and works where it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
TRAVELLING = (".py", ".json", ".sh", ".typed")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What git tracks, as it is now in the working tree, and nothing else."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("this is no git checkout, so what belongs to the product is not known")
    folder = tmp_path_factory.mktemp("checkout")
    for name in listed.stdout.decode().split("\0"):
        if name and (REPOSITORY / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    words = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(folder), str(checkout)]
    subprocess.run([sys.executable, *words], check=True, capture_output=True)
    (built,) = folder.glob("madengine-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's files in a folder of their own, as an installer would lay them out."""
    folder = tmp_path_factory.mktemp("site")
    words = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--target", str(folder), str(wheel)]
    subprocess.run([sys.executable, *words], check=True, capture_output=True)
    return folder


def test_it_holds_every_module_schema_and_script_of_the_checkout(checkout: Path, wheel: Path) -> None:
    source = checkout / "src"
    expected = {
        str(path.relative_to(source)) for path in source.rglob("*") if path.is_file() and path.suffix in TRAVELLING
    }
    with zipfile.ZipFile(wheel) as archive:
        assert expected - set(archive.namelist()) == set()
    assert {"madengine/schemas/build_manifest.schema.json", "madengine/profiling/tools.json"} <= expected


def test_it_holds_nothing_but_the_product_and_its_licence(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
        assert {top for top in tops if not top.endswith(".dist-info")} == {"madengine"}
        assert any(name.endswith("LICENSE") for name in archive.namelist())


def run_installed(installed: Path, words: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    code = (
        "import madengine, os, sys; from madengine.cli.main import main\n"
        "assert madengine.__file__.startswith(os.environ['PYTHONPATH']), madengine.__file__\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    environment = {**os.environ, "PYTHONPATH": str(installed), "MODEL_DIR": str(REPOSITORY / "examples" / "quickstart")}
    return subprocess.run(
        [sys.executable, "-c", code, *words], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("name", ["build_manifest", "perf_csv", "model_card", "additional_context"])
def test_every_schema_is_printed_by_what_was_installed(name: str, installed: Path, tmp_path: Path) -> None:
    done = run_installed(installed, ["schema", name], tmp_path)
    assert (done.returncode, done.stdout[:1]) == (0, "{"), done.stderr


def test_what_was_installed_runs_the_quickstart(installed: Path, tmp_path: Path) -> None:
    words = ["run", "--tags", "primes:rounds=2", "--engine", "host", "--sys-env-details", "--keep-model-dir"]
    done = run_installed(installed, words, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "million_numbers_per_second" in (tmp_path / "perf.csv").read_text()
    (script,) = tmp_path.glob("runs/*/workspace/scripts/common/pre_scripts/system_environment.sh")
    assert script.is_file()
