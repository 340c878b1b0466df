"""From a request to a plan: everything that is wrong is found before anything starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.recording_engine import RecordingEngine
from tests.unit.execution.packages import Watching
from tests.unit.orchestration.worlds import EIGHT, manifest, package

from madengine.config.context import settings_of
from madengine.config.manifest import BuildManifest
from madengine.core.errors import ConfigurationError
from madengine.execution.gpu import GpuInventory
from madengine.orchestration.images_here import ImageKeeper
from madengine.orchestration.plan import Plan, RunOptions
from madengine.orchestration.prepare import (
    Means,
    Prepared,
    RunRequest,
    Source,
    for_this_machine,
    inventory_for,
    make_runs_folder,
    prepare_runs,
)


def prepare(
    tmp_path: Path,
    one: BuildManifest | None = None,
    *,
    context: Any = None,
    environ: dict[str, str] | None = None,
    needs_image: bool = True,
    refusals: dict[str, str] | None = None,
    **fields: Any,
) -> Plan:
    made = prepared(
        tmp_path, one, context=context, environ=environ, needs_image=needs_image, refusals=refusals, **fields
    )
    return made.plan


def prepared(
    tmp_path: Path,
    one: BuildManifest | None = None,
    *,
    context: Any = None,
    environ: dict[str, str] | None = None,
    needs_image: bool = True,
    refusals: dict[str, str] | None = None,
    **fields: Any,
) -> Prepared:
    request = RunRequest(
        **{"package": package(tmp_path), "settings": settings_of(context or {}, {}), "options": RunOptions(), **fields},
        environ=environ or {},
    )
    engine = RecordingEngine(needs_image=needs_image)
    means = Means(
        engine, GpuInventory(), lambda _: Watching(), lambda request, manifest: ImageKeeper(request, engine, {})
    )
    return prepare_runs(Source(one or manifest(), refusals or {}), request, means)


def test_the_plan_is_for_the_package_the_engine_and_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (spec,) = prepare(tmp_path).specs
    assert (spec.package, spec.engine, spec.refusal) == (tmp_path / "package", "docker", None)
    assert spec.run_dir.parent == tmp_path / "runs"
    assert spec.run_id[8] == "T"
    assert not (tmp_path / "runs").exists()


def test_models_that_were_not_built_are_refused(tmp_path: Path) -> None:
    assert prepare(tmp_path, refusals={"k0": "not built"}).specs[0].refusal == "not built"


def test_a_manifest_without_models_is_nothing_to_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="holds no model"):
        prepare(tmp_path, BuildManifest({}, {}, source=tmp_path / "m.json"))


@pytest.mark.parametrize("name", ["missing", "file", "x" * 5000])
def test_a_package_that_is_not_there_is_told_before_each_model_misses_its_script(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="there is no model package"):
        prepare(tmp_path, package=tmp_path / name)


@pytest.mark.parametrize(
    ("context", "deployment", "target"),
    [
        ({}, {}, "local"),
        ({}, {"target": "local"}, "local"),
        ({}, {"target": "docker"}, "local"),
        ({}, {"target": "slurm"}, "slurm"),
        ({}, {"slurm": {"nodes": 1}}, "slurm"),
        ({}, {"target": "local", "slurm": {"nodes": 1}}, "local"),
        ({"target": "local"}, {"target": "slurm"}, "local"),
        ({"target": "local"}, {"slurm": {"nodes": 2}}, "local"),
        ({"target": "slurm"}, {"target": "local"}, "slurm"),
        ({"slurm": {"nodes": 1}}, {"target": "local"}, "slurm"),
        ({"distributed": {"nnodes": 1}}, {"target": "local", "distributed": {"nnodes": 2}}, "local"),
        ({}, {"target": "slurm", "distributed": {"nnodes": 2}}, "slurm"),
        ({}, {"distributed": {"nnodes": 1}}, "local"),
        ({}, {"distributed": None}, "local"),
    ],
)
def test_the_context_and_then_the_manifest_say_where_runs_happen(
    tmp_path: Path, context: dict[str, Any], deployment: dict[str, Any], target: str
) -> None:
    made = prepared(tmp_path, manifest(deployment=deployment), context=context)
    assert (made.target.name, len(made.plan.specs)) == (target, 1)


@pytest.mark.parametrize(
    ("context", "deployment", "refusal"),
    [
        ({}, {"target": "k8s"}, "the target is k8s"),
        ({}, {"target": "kubernetes"}, "the target is k8s"),
        ({}, {"k8s": {"namespace": "x"}}, "the target is k8s"),
        ({}, {"distributed": {"nnodes": 2}}, "the runs are for 2 nodes"),
        ({}, {"target": "local", "distributed": {"nnodes": 2}}, "the runs are for 2 nodes"),
        ({"target": "local"}, {"target": "slurm", "distributed": {"nnodes": 2}}, "the runs are for 2 nodes"),
    ],
)
def test_a_job_for_a_scheduler_or_of_several_nodes_never_silently_runs_here(
    tmp_path: Path, context: dict[str, Any], deployment: dict[str, Any], refusal: str
) -> None:
    with pytest.raises(ConfigurationError, match=refusal) as error:
        prepare(tmp_path, manifest(deployment=deployment), context=context)
    assert "--additional-context" in str(error.value)


def test_runs_of_a_cluster_lie_in_its_output_folder_and_ask_for_its_gpus(tmp_path: Path) -> None:
    slurm = {"nodes": 2, "gpus_per_node": 4, "output_dir": str(tmp_path / "shared")}
    (spec,) = prepare(tmp_path, manifest({"n_gpus": "-1"}, deployment={"slurm": slurm})).specs
    assert spec.run_dir.parent == tmp_path / "shared"
    assert (spec.place.nnodes, spec.gpus.total, spec.environment["NNODES"]) == (2, 4, "2")


def test_what_only_the_nodes_know_is_not_missed_here(tmp_path: Path) -> None:
    variables = {"A": "${SLURM_SUBMIT_DIR}", "B": "${NOWHERE_SET}"}
    plan = prepare(tmp_path, manifest({"env_vars": variables}, deployment={"slurm": {"nodes": 1}}))
    assert plan.warnings == ("m: B refers to ${NOWHERE_SET}, which is not set here",)


def with_env_file(tmp_path: Path, text: str, **card: Any) -> BuildManifest:
    (tmp_path / "mad.env").write_text(text)
    made = manifest(card, deployment={"env_file": "mad.env"})
    return BuildManifest(made.images, made.models, {}, made.deployment_config, source=tmp_path / "m.json")


@pytest.mark.parametrize(("needs_image", "given"), [(True, {"A": "/f/x"}), (False, {"A": "/f/x", "DIR": "/f"})])
def test_an_env_file_is_what_references_see_and_without_a_container_the_script_too(
    tmp_path: Path, needs_image: bool, given: dict[str, str]
) -> None:
    one = with_env_file(tmp_path, "DIR=/f\n", env_vars={"A": "${DIR}/x"})
    (spec,) = prepare(tmp_path, one, environ={"DIR": "/inherited"}, needs_image=needs_image).specs
    assert {name: spec.environment[name] for name in ("A", "DIR") if name in spec.environment} == given


def test_a_secret_of_the_env_file_is_a_secret_of_the_run(tmp_path: Path) -> None:
    one = with_env_file(tmp_path, "MAD_SECRETS_X=canary-1234\nHF_TOKEN=canary-5678\n")
    (spec,) = prepare(tmp_path, one, needs_image=False).specs
    assert spec.secrets == {"MAD_SECRETS_X": "canary-1234", "HF_TOKEN": "canary-5678"}


def test_the_plan_hands_on_the_environment_with_the_env_file_on_top(tmp_path: Path) -> None:
    one = with_env_file(tmp_path, "export BUILD_NUMBER=77\nexport pipeline=pp\n")
    plan = prepare(tmp_path, one, environ={"BUILD_NUMBER": "1", "pipeline": "p", "HOME": "/canary"})
    assert plan.environ == {"BUILD_NUMBER": "77", "pipeline": "pp", "HOME": "/canary"}
    assert "canary" not in repr(plan)


def test_credentials_of_the_env_file_are_the_runs(tmp_path: Path) -> None:
    one = with_env_file(tmp_path, "MAD_DOCKERHUB_USER=u\nMAD_DOCKERHUB_PASSWORD=canary-1234\n", cred="dockerhub")
    (spec,) = prepare(tmp_path, one).specs
    assert spec.secrets["dockerhub_PASSWORD"] == "canary-1234"


def test_an_env_file_of_the_context_lies_in_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mad.env").write_text("DIR=/f\n")
    (spec,) = prepare(tmp_path, manifest({"env_vars": {"A": "$DIR"}}), context={"env_file": "mad.env"}).specs
    assert spec.environment["A"] == "/f"


def test_an_env_file_that_is_missing_is_told_with_its_resolved_path(tmp_path: Path) -> None:
    one = with_env_file(tmp_path, "")
    (tmp_path / "mad.env").unlink()
    with pytest.raises(ConfigurationError, match=str(tmp_path / "mad.env")):
        prepare(tmp_path, one)


@pytest.mark.parametrize("where", ["package", "option"])
def test_tools_and_data_are_the_packages_own_or_what_the_user_names(tmp_path: Path, where: str) -> None:
    root = package(tmp_path)
    folder = root if where == "package" else tmp_path
    (folder / "tools.json").write_text(json.dumps({"tools": {"mine": {"cmd": "nice"}}}))
    (folder / "data.json").write_text(json.dumps({"d": {"local": {"path": str(tmp_path)}}}))
    named = {} if where == "package" else {"data_config": folder / "data.json", "tools_config": folder / "tools.json"}
    (spec,) = prepare(tmp_path, manifest({"data": "d"}), context={"tools": [{"name": "mine"}]}, **named).specs
    assert (spec.prefix, len(spec.mounts)) == (("nice",), 1)


def test_madengines_own_tools_are_always_known(tmp_path: Path) -> None:
    (spec,) = prepare(tmp_path, context={"tools": [{"name": "rocprof"}]}).specs
    assert spec.prefix


def test_credentials_are_the_packages(tmp_path: Path) -> None:
    (package(tmp_path) / "credential.json").write_text(json.dumps({"site": {"username": "u", "password": "p-1234"}}))
    (spec,) = prepare(tmp_path, manifest({"cred": "site"})).specs
    assert spec.secrets == {"site_PASSWORD": "p-1234"}


@pytest.mark.parametrize(("given", "vendor"), [({}, "AMD"), ({"gpu_vendor": "NVIDIA"}, "NVIDIA")])
def test_without_a_word_of_the_user_the_vendor_is_the_machines(given: dict[str, str], vendor: str) -> None:
    assert for_this_machine(settings_of(given, {}), EIGHT).gpu_vendor == vendor


def test_a_user_who_says_cpu_is_believed() -> None:
    assert inventory_for(settings_of({"gpu_vendor": "CPU"}, {})) == GpuInventory()


def test_the_folder_of_runs_is_made_and_may_be_there(tmp_path: Path) -> None:
    make_runs_folder(tmp_path / "runs")
    make_runs_folder(tmp_path / "runs")
    assert (tmp_path / "runs").is_dir()


def test_a_folder_of_runs_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "runs").touch()
    with pytest.raises(ConfigurationError, match="cannot be made"):
        make_runs_folder(tmp_path / "runs")


def test_a_folder_of_runs_that_cannot_be_written_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("madengine.orchestration.prepare.os.access", lambda path, mode: False)
    with pytest.raises(ConfigurationError, match="cannot be written"):
        make_runs_folder(tmp_path / "runs")
