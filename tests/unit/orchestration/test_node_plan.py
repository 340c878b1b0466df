"""From a job order to the run of one rank."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.recording_engine import RecordingEngine
from tests.unit.orchestration.orders import RUN_ID, order, run_directory

from madengine.core.errors import ConfigurationError
from madengine.execution.gpu import GpuInventory
from madengine.execution.host import HostEngine
from madengine.execution.spec import RunSpec
from madengine.orchestration.node_plan import NodeInputs, place_here, plan_node, read_inputs, request_of, run_options

HOSTS = {"MADENGINE_HOSTS": "n0,n1", "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29600"}


def inputs(run_dir: Path, rank: int = 1, **environ: str) -> NodeInputs:
    return read_inputs(run_dir, rank, {**HOSTS, **environ})


def spec(run_dir: Path, rank: int = 1, gpus: int = 0, **environ: str) -> RunSpec:
    found, _ = plan_node(inputs(run_dir, rank, **environ), HostEngine(), GpuInventory("AMD" if gpus else "CPU", gpus))
    return found


def test_a_rank_has_the_runs_id_and_a_folder_of_its_own(tmp_path: Path) -> None:
    run_dir = run_directory(tmp_path)
    run = spec(run_dir, 1)
    assert (run.run_id, run.key) == (RUN_ID, "k")
    assert run.run_dir == run_dir / "node_1"
    assert run.workspace == run_dir / "node_1" / "workspace"
    assert run.artefacts == run_dir / "node_1" / "artefacts"


def test_a_rank_knows_where_it_stands(tmp_path: Path) -> None:
    place = spec(run_directory(tmp_path, gpus_per_node=4), 1).place
    assert (place.deployment, place.rank, place.nnodes, place.gpus_per_node) == ("slurm", 1, 2, 4)
    assert (place.hosts, place.master_addr, place.master_port) == (("n0", "n1"), "10.0.0.1", 29600)
    assert not place.elsewhere


def test_the_orders_port_and_the_first_host_do_without_variables() -> None:
    place = place_here(order(Path("/p"), master_port=4711), 0, {"MADENGINE_HOSTS": "n0,n1", "MASTER_PORT": "x"})
    assert (place.master_addr, place.master_port) == ("n0", 4711)


@pytest.mark.parametrize("hosts", ["", "n0", "n0,n1,n2"])
def test_a_job_that_does_not_name_its_nodes_is_refused(hosts: str) -> None:
    with pytest.raises(ConfigurationError, match="the run has 2 nodes, and MADENGINE_HOSTS names"):
        place_here(order(Path("/p")), 0, {"MADENGINE_HOSTS": hosts})


def test_a_script_that_drives_the_allocation_may_do_without_the_names() -> None:
    assert place_here(order(Path("/p"), reporters=1), 0, {}).nnodes == 2


@pytest.mark.parametrize("rank", [2, -1])
def test_a_rank_that_is_not_there_is_refused(tmp_path: Path, rank: int) -> None:
    with pytest.raises(ConfigurationError, match=f"there is no rank {rank}: the run has 2 nodes"):
        inputs(run_directory(tmp_path), rank)


def test_a_key_that_the_manifest_does_not_have_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="the manifest has no model 'other'"):
        inputs(run_directory(tmp_path, key="other"))


def test_a_package_that_this_node_does_not_see_is_refused(tmp_path: Path) -> None:
    found = inputs(run_directory(tmp_path, package=str(tmp_path / "gone")))
    with pytest.raises(ConfigurationError, match="gone: the model package is not there on this node"):
        plan_node(found, HostEngine(), GpuInventory())


def test_another_version_of_madengine_is_a_note(tmp_path: Path) -> None:
    (note,) = inputs(run_directory(tmp_path, madengine="0.1")).notes
    assert note.startswith("submitted by madengine 0.1, run here by ")


def test_references_resolve_on_the_node_from_the_env_file_which_beats_what_is_inherited(tmp_path: Path) -> None:
    (tmp_path / "mad.env").write_text("HF_HOME=\"/file with blanks\"\nLINES=$'a\\nb'\n")
    run_dir = run_directory(
        tmp_path,
        env_file=str(tmp_path / "mad.env"),
        deployment={"env_vars": {"A": "${HF_HOME}", "B": "$LINES", "C": "${HERE}"}},
    )
    environment = spec(run_dir, HF_HOME="/inherited", HERE="inherited").environment
    assert [environment[name] for name in "ABC"] == ["/file with blanks", "a\nb", "inherited"]


def test_an_env_file_reaches_a_script_without_a_container_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mad.env").write_text("ONLY_THERE=1\n")
    found = inputs(run_directory(tmp_path, env_file=str(tmp_path / "mad.env")))
    here, _ = plan_node(found, HostEngine(), GpuInventory())
    boxed, _ = plan_node(found, RecordingEngine(), GpuInventory())
    assert (here.environment.get("ONLY_THERE"), boxed.environment.get("ONLY_THERE")) == ("1", None)


def test_an_env_file_that_fails_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mad.env").write_text("false\n")
    with pytest.raises(ConfigurationError, match=r"mad\.env: the env_file ended with status 1"):
        inputs(run_directory(tmp_path, env_file=str(tmp_path / "mad.env")))


def test_variables_of_presets_stand_below_what_people_wrote(tmp_path: Path) -> None:
    run_dir = run_directory(tmp_path, environment={"A": "preset", "B": "preset"}, card={"env_vars": {"B": "card"}})
    environment = spec(run_dir).environment
    assert (environment["A"], environment["B"]) == ("preset", "card")


def test_scripts_in_a_container_are_told_of_their_job(tmp_path: Path) -> None:
    environment = spec(run_directory(tmp_path), MAD_SLURM_JOB_ID="4711", SLURM_JOB_ID="4711").environment
    assert (environment.get("MAD_SLURM_JOB_ID"), environment.get("SLURM_JOB_ID")) == ("4711", None)


@pytest.mark.parametrize(
    ("environ", "indices"),
    [
        ({}, (0, 1, 2, 3, 4, 5, 6, 7)),
        ({"SLURM_JOB_GPUS": "0,1,2,3"}, (0, 1, 2, 3)),
        ({"SLURM_JOB_GPUS": "0,1,2,3", "SLURM_STEP_GPUS": "2-3"}, (2, 3)),
        ({"SLURM_STEP_GPUS": ""}, (0, 1, 2, 3, 4, 5, 6, 7)),
    ],
)
def test_a_rank_has_the_gpus_that_slurm_gave_it(
    tmp_path: Path, environ: Mapping[str, str], indices: tuple[int, ...]
) -> None:
    run = spec(run_directory(tmp_path, card={"n_gpus": "-1"}), gpus=8, **environ)
    assert (run.refusal, run.gpus.indices) == (None, indices)


@pytest.mark.parametrize("n_gpus", ["0", "-1"])
def test_a_node_without_a_gpu_does_for_a_card_that_wants_none_or_what_there_is(tmp_path: Path, n_gpus: str) -> None:
    run = spec(run_directory(tmp_path, card={"n_gpus": n_gpus}))
    assert (run.refusal, run.gpus.vendor, run.gpus.indices) == (None, "CPU", ())


def test_a_card_that_wants_more_gpus_than_the_node_has_is_refused_with_a_sentence(tmp_path: Path) -> None:
    assert "asks for 8 GPUs" in str(spec(run_directory(tmp_path, card={"n_gpus": "8"}), gpus=4).refusal)


def test_nodes_that_are_one_machine_and_attempts_after_a_requeue_have_containers_of_their_own(tmp_path: Path) -> None:
    run_dir = run_directory(tmp_path)
    runs = (spec(run_dir, 0), spec(run_dir, 1), spec(run_dir, 1, SLURM_RESTART_COUNT="1"))
    assert [run.part for run in runs] == ["node0", "node1", "node1-1"]


def test_workspaces_lie_in_the_shared_folder_that_the_order_names(tmp_path: Path) -> None:
    run = spec(run_directory(tmp_path, workspaces="spaces"), 1)
    assert run.workspace == tmp_path / "spaces" / RUN_ID / "node_1"
    assert tmp_path / "spaces" in run.folders.others


def test_other_runs_are_kept_out_of_the_workspace(tmp_path: Path) -> None:
    run_dir = run_directory(tmp_path)
    assert run_dir.parent in spec(run_dir).folders.others


def test_other_runs_are_kept_out_of_it_when_they_lie_among_the_scripts(tmp_path: Path) -> None:
    run_dir = run_directory(tmp_path)
    scripts = tmp_path / "package" / "scripts"
    (scripts / "older").mkdir()
    (scripts / "older" / "job.json").write_text("{}")
    moved = run_dir.rename(scripts / RUN_ID)
    assert scripts / "older" in spec(moved).folders.others
    assert scripts / "m" not in spec(moved).folders.others


def test_options_of_the_command_hold_on_the_nodes_and_unknown_ones_are_left_out(tmp_path: Path) -> None:
    given = {"timeout": 60, "keep_workspace": True, "from_the_future": 1}
    options = run_options(order(tmp_path, options=given))
    assert (options.timeout, options.keep_workspace, options.keep_alive) == (60, True, False)


def test_named_tools_and_data_are_read(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(json.dumps({"tools": {"mine": {"cmd": "wrap it"}}}))
    run_dir = run_directory(
        tmp_path,
        context={"tools": [{"name": "mine"}]},
        tools_config=str(tmp_path / "t.json"),
    )
    assert spec(run_dir).prefix == ("wrap", "it")


@pytest.mark.parametrize(
    ("ordered", "context", "vendor"), [("NVIDIA", "AMD", "NVIDIA"), ("", "AMD", "AMD"), ("", None, "CPU")]
)
def test_images_are_built_again_for_the_vendor_of_the_order_the_manifest_or_the_machine(
    tmp_path: Path, ordered: str, context: str | None, vendor: str
) -> None:
    found = inputs(run_directory(tmp_path, gpu_vendor=ordered, context={"gpu_vendor": context} if context else {}))
    assert request_of(found, GpuInventory()).settings.gpu_vendor == vendor
