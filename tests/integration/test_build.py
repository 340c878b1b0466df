"""``madengine build`` on a real Docker engine."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from madengine.cli.main import main
from madengine.config.manifest_io import read_manifest
from madengine.core.process import run

pytestmark = pytest.mark.docker

SECRET = "canary-secret-8d1f"
ARGUMENT = "canary-argument-77aa"
CONTEXT = {"gpu_vendor": "AMD", "guest_os": "UBUNTU", "docker_build_arg": {"EXTRA": ARGUMENT}}
HEADER = "# CONTEXT {'gpu_vendor': 'AMD'}\nARG BASE_DOCKER=local/debian-py:1\nFROM $BASE_DOCKER\n"

DOCKERFILES = {
    "good.ubuntu.amd": HEADER + "COPY file /file\n",
    "good.ubuntu.nvidia": "# CONTEXT {'gpu_vendor': 'NVIDIA'}\nFROM local/no-such-image:1\n",
    "bad": HEADER + "RUN echo to standard error >&2 && exit 7\n",
    "slow": HEADER
    + "ARG EXTRA\nCOPY --from=tools tool /tool\n"
    + 'RUN --mount=type=secret,id=MAD_SECRETS_X sleep 1 && cat /run/secrets/MAD_SECRETS_X && test -n "$EXTRA"\n',
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, docker_engine: Mapping[str, str]) -> Iterator[Path]:
    """Three cards, one of which cannot be built; the current directory is beside the package."""
    root = tmp_path / "package"
    for folder in ("docker/common", "scripts", "."):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "docker" / "file").write_text("x")
    (root / "docker" / "common" / "tool").write_text("x")
    (root / "scripts" / "run.sh").write_text("echo performance: 1 x\n")
    for name, text in DOCKERFILES.items():
        (root / "docker" / f"{name}.Dockerfile").write_text(text)
    cards = [
        {
            "name": name,
            "dockerfile": f"docker/{name}",
            "scripts": "scripts/run.sh",
            "tags": ["all-three"],
            "n_gpus": "0",
        }
        for name in ("good", "bad", "slow")
    ]
    (root / "models.json").write_text(json.dumps(cards))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MODEL_DIR", str(root))
    monkeypatch.setenv("MAD_SECRETS_X", SECRET)
    yield root
    run(["docker", "image", "rm", "--force", "ci-good_good.ubuntu.amd", "ci-slow_slow"])


class ProcessList:
    """Reads every process's command line, over and over, until it is closed."""

    def __init__(self) -> None:
        self.seen: set[bytes] = set()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> ProcessList:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.02):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                with suppress(OSError):
                    self.seen.add(path.read_bytes())


def _build(*words: str) -> int:
    return main(["build", "--engine", "docker", "-c", json.dumps(CONTEXT), *words])


def test_one_failed_build_does_not_stop_the_others(package: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with ProcessList() as processes:
        code = _build("--tags", "all-three", "--clean-docker-cache", "--json", "--live-output")
    shown = capfd.readouterr()
    assert code == 2, shown.err
    manifest, warnings = read_manifest(Path("build_manifest.json"))
    assert warnings == []
    assert set(manifest.images) == {"ci-good_good.ubuntu.amd", "ci-slow_slow"}
    digest = run(["docker", "image", "inspect", "--format", "{{.Id}}", "local/debian-py:1"]).stdout.strip()
    for image in manifest.images.values():
        assert (image.text("base_docker"), image.text("docker_sha")) == ("local/debian-py:1", digest)
        assert run(["docker", "image", "inspect", image.docker_image]).exit_code == 0
    (failure,) = manifest.summary["failed_builds"]
    assert (failure["model"], failure["image"]) == ("bad", "ci-bad_bad")
    assert "exit code: 7" in failure["error"]
    assert "to standard error" in Path(failure["log_file"]).read_text()
    assert json.loads(shown.out)["summary"]["failed_builds"] == [failure]

    logs = "".join(path.read_text() for path in Path("runs").rglob("*.build.live.log"))
    assert "***" in logs  # the slow image's build prints its secret
    for canary in (SECRET, ARGUMENT):
        assert not any(canary.encode() in line for line in processes.seen)
    everything = logs + Path("build_manifest.json").read_text() + shown.out + shown.err
    assert SECRET not in everything
    assert any(b"ci-slow_slow" in line for line in processes.seen), "the process list was read while a build ran"


def test_everything_built_ends_with_zero_and_a_table(package: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert _build("--tags", "good", "--manifest-output", "new/m.json", "--summary-output", "s.json") == 0
    shown = capfd.readouterr()
    assert "ci-good_good.ubuntu.amd" in shown.out
    assert "building 1/1 ci-good_good.ubuntu.amd" in shown.err
    assert "next: madengine run --manifest-file new/m.json" in shown.err
    assert json.loads(Path("s.json").read_text())["manifest"] == "new/m.json"
    assert not (package / "runs").exists()


def test_nothing_built_at_all_is_exit_two_with_a_sentence(package: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert _build("--tags", "bad") == 2
    assert "nothing was built" in capfd.readouterr().err
    assert json.loads(Path("build_manifest.json").read_text())["built_images"] == {}


@pytest.mark.parametrize(
    "words",
    [
        ["--tags", "no-such-tag"],
        [],
        ["--tags", "good", "--use-image", "<supply-your-image>"],
        ["--tags", "good", "--use-image", "auto"],
        ["--tags", "good", "--registry", "docker.io"],
        ["--tags", "good", "--registry", "https://h"],
        ["--tags", "good", "--target-archs", "a b"],
        ["--tags", "good", "--manifest-output", "."],
        ["--tags", "good", "--batch-manifest", "missing.json"],
        ["--batch-manifest", "missing.json"],
        ["--tags", "good", "-f", "missing.json"],
    ],
)
def test_a_mistake_is_exit_four_and_nothing_is_started(
    package: Path, words: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    Path("build_manifest.json").write_text("kept")
    assert _build(*words) == 4
    assert "error:" in capfd.readouterr().err
    assert Path("build_manifest.json").read_text() == "kept"
    assert not Path("runs").exists()


@pytest.mark.parametrize("content", ["", "[", "[]", '{"dockerhub": "x"}'])
def test_malformed_credentials_are_exit_four_before_anything_is_built(package: Path, content: str) -> None:
    (package / "credential.json").write_text(content)
    assert _build("--tags", "good", "--registry", "h:5000") == 4
    assert not Path("runs").exists()


def test_a_push_that_is_refused_is_exit_two_and_keeps_the_image(package: Path) -> None:
    assert _build("--tags", "good", "--registry", "127.0.0.1:1") == 2
    summary: dict[str, Any] = json.loads(Path("build_manifest.json").read_text())["summary"]
    assert summary["failed_pushes"][0]["image"] == "127.0.0.1:1/ci-good_good.ubuntu.amd"
    assert summary["successful_builds"][0]["image"] == "ci-good_good.ubuntu.amd"
    run(["docker", "image", "rm", "--force", "127.0.0.1:1/ci-good_good.ubuntu.amd"])


def test_a_named_image_makes_a_manifest_without_an_engine(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")
    assert main(["build", "--tags", "good", "--use-image", "local/debian-py:1"]) == 0
    manifest, _ = read_manifest(Path("build_manifest.json"))
    assert manifest.images["good"].raw["dockerfile"] == "N/A (local image mode)"
    assert manifest.images["good"].local_image


def test_on_github_a_failed_build_is_an_annotation_and_the_table_is_in_the_summary(
    package: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    assert _build("--tags", "bad", "--json") == 2
    shown = capfd.readouterr()
    assert json.loads(shown.out)["built_images"] == {}
    (line,) = [line for line in shown.err.splitlines() if line.startswith("::")]
    assert line.startswith("::error title=FAILED bad::")
    assert "exit code: 7" in line
    assert "| bad | FAILED | ci-bad\\_bad |" in Path("summary.md").read_text()


def test_the_host_engine_needs_no_build(package: Path) -> None:
    assert main(["build", "--tags", "all-three", "--engine", "host"]) == 0
    manifest, _ = read_manifest(Path("build_manifest.json"))
    assert {key: image.docker_image for key, image in manifest.images.items()} == {"good": "", "bad": "", "slow": ""}
