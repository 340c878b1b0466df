"""From a manifest to run specs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.orchestration.worlds import EIGHT, manifest, package, plan, planned, world

from madengine.core.errors import ConfigurationError
from madengine.execution.gpu import GpuInventory
from madengine.orchestration.plan import RunOptions, plan_runs
from madengine.profiling import ENVIRONMENT_SCRIPT

TOOLS = {
    "rpd": {"cmd": "runTracer.sh -o 'a b'", "pre_scripts": [{"path": "scripts/common/pre.sh", "args": "x"}]},
    "rocprof": {"cmd": "rocprof --", "env_vars": {"A": "tool"}, "post_scripts": ["scripts/common/post.sh"]},
}


def test_there_is_one_spec_per_model_in_the_order_of_the_manifest(tmp_path: Path) -> None:
    made = plan_runs(manifest({"name": "b"}, {"name": "a"}), RunOptions(), world(tmp_path))
    assert [(spec.key, spec.card.name) for spec in made.specs] == [("k0", "b"), ("k1", "a")]


def test_every_run_has_a_directory_of_its_own_that_says_when_and_what(tmp_path: Path) -> None:
    made = plan_runs(manifest({"name": "s/m"}, {"name": "s/m"}), RunOptions(), world(tmp_path))
    first, second = made.specs
    assert first.run_id != second.run_id
    assert first.run_id.startswith("20260101T000000Z-s_m-")
    assert first.run_dir == tmp_path / "runs" / first.run_id


@pytest.mark.parametrize("name", ["../../x", "a b;c", "$(touch x)", "x" * 300, "\n"])
def test_no_name_leads_out_of_the_folder_of_runs(tmp_path: Path, name: str) -> None:
    assert planned(tmp_path, {"name": name}).run_dir.resolve().parent == (tmp_path / "runs").resolve()


@pytest.mark.parametrize(
    ("given", "context", "card", "expected"),
    [
        (5.0, 6, 7, 5.0),
        (None, 6, 7, 6.0),
        (None, None, 7, 7.0),
        (None, None, None, 7200.0),
        (0.0, 6, 7, None),
        (None, 0, 7, None),
        (None, -1, 7, None),
        (None, None, 0, None),
        (None, None, -1, None),
    ],
)
def test_the_time_limit_is_the_command_lines_the_contexts_the_cards_or_the_default(
    tmp_path: Path, given: float | None, context: int | None, card: int | None, expected: float | None
) -> None:
    spec = planned(tmp_path, {"timeout": card}, options=RunOptions(timeout=given), context={"timeout": context})
    assert spec.timeout == expected


@pytest.mark.parametrize("field", ["keep_alive", "keep_workspace"])
def test_what_is_to_be_kept_is_the_command_lines_word(tmp_path: Path, field: str) -> None:
    assert getattr(planned(tmp_path), field) is False
    assert getattr(planned(tmp_path, options=RunOptions(**{field: True})), field) is True


def test_a_run_that_is_not_wanted_is_skipped_and_not_looked_at(tmp_path: Path) -> None:
    spec = planned(tmp_path, {"scripts": "scripts/missing.sh"}, options=RunOptions(skip_model_run=True))
    assert (spec.skip, spec.refusal) == ("--skip-model-run was given", None)


@pytest.mark.parametrize(
    ("skips", "anywhere", "skipped"),
    [("gfx942", False, True), ("gfx90a, gfx942", False, True), ("gfx90a", False, False), ("gfx942", True, False)],
)
def test_a_card_is_skipped_on_architectures_that_it_names(
    tmp_path: Path, skips: str, anywhere: bool, skipped: bool
) -> None:
    options = RunOptions(run_anywhere=anywhere)
    spec = planned(tmp_path, {"skip_gpu_arch": skips}, inventory=EIGHT, options=options)
    assert ("gfx942" in (spec.skip or "")) is skipped


def test_a_machine_without_a_gpu_has_no_architecture_to_skip(tmp_path: Path) -> None:
    assert planned(tmp_path, {"skip_gpu_arch": "gfx942"}).skip is None


@pytest.mark.parametrize(
    ("card", "rest", "said"),
    [
        ({"scripts": "scripts/m/rum.sh"}, {}, "has no scripts/m/rum.sh"),
        ({"scripts": None}, {}, "names no script"),
        ({"n_gpus": "4"}, {}, "asks for 4 GPUs, this machine has no GPU"),
        ({"n_gpus": "16"}, {"inventory": EIGHT}, "asks for 16 GPUs, this machine has 8 AMD GPUs"),
        ({}, {"context": {"docker_mounts": {"/d": "/not/there"}}}, "the host path /not/there, which does not exist"),
        ({"data": "imagenet"}, {"data": {}}, "no data named 'imagenet'"),
        ({"cred": "site"}, {}, "needs the credential 'site'"),
        ({"distributed": {"launcher": "slurm_multi"}}, {}, "Slurm"),
        ({"distributed": {"launcher": "sglang-disagg"}}, {}, "nodes"),
        ({"distributed": {"launcher": "torchrum"}}, {}, "no launcher named 'torchrum'"),
        ({"log_error_patterns": ["("]}, {}, "log_error_patterns"),
        ({"additional_docker_run_options": "-e 'open"}, {}, "quote"),
        ({}, {"context": {"encapsulate_script": "'open"}}, "quote"),
        ({}, {"refusals": {"k0": "there is no image for it"}}, "there is no image for it"),
    ],
)
def test_a_model_that_cannot_run_is_refused_with_a_sentence(
    tmp_path: Path, card: dict[str, Any], rest: dict[str, Any], said: str
) -> None:
    assert said in (planned(tmp_path, card, **rest).refusal or "")


def test_a_refused_model_does_not_keep_the_others_from_running(tmp_path: Path) -> None:
    made = plan_runs(manifest({"n_gpus": "4"}, {}), RunOptions(), world(tmp_path))
    assert [bool(spec.refusal) for spec in made.specs] == [True, False]


@pytest.mark.parametrize("card", [{"scripts": "missing"}, {"skip_gpu_arch": "gfx942"}])
def test_a_run_that_does_not_start_knows_its_secrets_so_that_nothing_writes_them(
    tmp_path: Path, card: dict[str, Any]
) -> None:
    context = {"docker_env_vars": {"HF_TOKEN": "canary-1234"}}
    spec = planned(tmp_path, card, context=context, inventory=EIGHT, environ={"MAD_SECRETS_X": "canary-5678"})
    assert spec.refusal or spec.skip
    assert spec.secrets == {"HF_TOKEN": "canary-1234", "MAD_SECRETS_X": "canary-5678"}


def test_one_node_in_the_context_beats_the_cards_many(tmp_path: Path) -> None:
    card = {"distributed": {"launcher": "torchrun", "nnodes": 2}, "slurm": {"nodes": 2}}
    spec = planned(tmp_path, card, deployment={"distributed": {"nnodes": 1, "launcher": "torchrun"}})
    assert spec.refusal is None
    assert spec.environment["NNODES"] == "1"


def test_a_tool_that_nobody_knows_is_wrong_for_all_models(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no tool named 'rocprov'"):
        planned(tmp_path, context={"tools": [{"name": "rocprov"}]}, tools=TOOLS)


def with_scripts(root: Path, *names: str) -> None:
    for name in names:
        (root / "scripts" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "scripts" / name).touch()


def test_tools_stack_as_a_prefix_in_their_order_before_encapsulate_script(tmp_path: Path) -> None:
    with_scripts(package(tmp_path), "common/pre.sh")
    context = {"tools": [{"name": "rpd"}, {"name": "rocprof"}], "encapsulate_script": "nice -n 5"}
    spec = planned(tmp_path, context=context, tools=TOOLS)
    assert spec.prefix == ("runTracer.sh", "-o", "a b", "rocprof", "--", "nice", "-n", "5")


def test_hooks_come_from_the_context_and_from_tools_around_each_other(tmp_path: Path) -> None:
    with_scripts(package(tmp_path), "first.sh", "common/pre.sh")
    context = {
        "tools": [{"name": "rpd"}, {"name": "rocprof"}],
        "pre_scripts": ["scripts/first.sh"],
        "post_scripts": [{"path": "scripts/last.sh", "args": "y"}],
    }
    spec = planned(tmp_path, context=context, tools=TOOLS, options=RunOptions(system_environment=True))
    assert [(hook.path, hook.args) for hook in spec.pre_scripts] == [
        (ENVIRONMENT_SCRIPT, ""),
        ("scripts/first.sh", ""),
        ("scripts/common/pre.sh", "x"),
    ]
    assert [hook.path for hook in spec.post_scripts] == ["scripts/common/post.sh", "scripts/last.sh"]


def test_layers_of_variables_beat_each_other_in_their_order(tmp_path: Path) -> None:
    layers: dict[str, dict[str, Any]] = {
        "handed_on": {"handed_on": {"V": "env file"}},
        "tool": {"context": {"tools": [{"name": "t"}]}, "tools": {"t": {"env_vars": {"V": "tool"}}}},
        "card": {"card": {"env_vars": {"V": "card"}}},
        "context": {"context": {"docker_env_vars": {"V": "context"}}},
        "deployment": {"deployment": {"env_vars": {"V": "deployment"}}},
    }
    given: dict[str, Any] = {}
    for expected, layer in zip(("env file", "tool", "card", "context", "deployment"), layers.values(), strict=True):
        for name, value in layer.items():
            given[name] = {**given.get(name, {}), **value}
        assert planned(tmp_path, **given).environment["V"] == expected


def test_a_card_can_say_what_the_machine_is_otherwise_asked(tmp_path: Path) -> None:
    assert planned(tmp_path, {"env_vars": {"MAD_GUEST_OS": "X"}}).environment["MAD_GUEST_OS"] == "X"


@pytest.mark.parametrize(("context", "expected"), [({}, "UBUNTU"), ({"guest_os": "CENTOS"}, "CENTOS")])
def test_the_guest_os_is_the_contexts_or_ubuntu(tmp_path: Path, context: dict[str, str], expected: str) -> None:
    assert planned(tmp_path, context=context).environment["MAD_GUEST_OS"] == expected


def test_a_name_that_is_not_set_is_a_warning_that_names_both(tmp_path: Path) -> None:
    card = {"env_vars": {"A": "${NOT_SET}"}, "additional_docker_run_options": "-v ${GONE}:/x"}
    made = plan(tmp_path, card)
    assert made.warnings == (
        "m: A refers to ${NOT_SET}, which is not set here",
        "m: additional_docker_run_options refers to ${GONE}, which is not set here",
    )


def test_a_warning_that_all_models_share_is_told_once_for_each(tmp_path: Path) -> None:
    shared = manifest({}, {}, context={"docker_env_vars": {"A": "$NOT_SET"}})
    assert len(plan_runs(shared, RunOptions(), world(tmp_path)).warnings) == 1


def test_without_a_distributed_block_there_are_no_launcher_variables(tmp_path: Path) -> None:
    spec = planned(tmp_path, inventory=EIGHT)
    assert not {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MAD_MULTI_NODE_RUNNER"} & spec.environment.keys()
    assert spec.launcher == "docker"


@pytest.mark.parametrize(
    ("block", "n_gpus", "runner"),
    [
        ({"launcher": "torchrun"}, "-1", "torchrun --standalone --nproc_per_node=8"),
        ({"launcher": "torchrun"}, "2", "torchrun --standalone --nproc_per_node=2"),
        ({"launcher": "torchrun", "nproc_per_node": 4}, "8", "torchrun --standalone --nproc_per_node=4"),
        ({"launcher": "megatron"}, "8", "torchrun --standalone --nproc_per_node=8"),
        ({"launcher": "deepspeed"}, "8", "deepspeed --num_gpus=8"),
        ({"nnodes": 1}, "8", "torchrun --standalone --nproc_per_node=8"),
    ],
)
def test_a_launcher_on_one_node_gets_its_command(
    tmp_path: Path, block: dict[str, Any], n_gpus: str, runner: str
) -> None:
    spec = planned(tmp_path, {"distributed": block, "n_gpus": n_gpus}, inventory=EIGHT)
    assert spec.environment["MAD_MULTI_NODE_RUNNER"] == runner


def test_a_launcher_on_a_machine_without_gpus_starts_one_process(tmp_path: Path) -> None:
    spec = planned(tmp_path, {"distributed": {"launcher": "torchrun"}})
    assert (spec.environment["WORLD_SIZE"], spec.environment["RANK"]) == ("1", "0")


@pytest.mark.parametrize(("block", "port"), [({}, "29500"), ({"port": 1234}, "1234"), ({"master_port": 1235}, "1235")])
def test_the_port_is_the_blocks_or_the_usual_one(tmp_path: Path, block: dict[str, int], port: str) -> None:
    spec = planned(tmp_path, {"distributed": {"launcher": "torchrun", **block}})
    assert spec.environment["MASTER_PORT"] == port


@pytest.mark.parametrize(
    ("block", "label"),
    [
        ({}, "docker"),
        ({"launcher": "megatron"}, "megatron-lm"),
        ({"launcher": "none"}, "docker"),
        ({"launcher": "no such"}, "no such"),
    ],
)
def test_the_launchers_column_has_its_one_name(tmp_path: Path, block: dict[str, str], label: str) -> None:
    assert planned(tmp_path, {"distributed": block}).launcher == label


def test_the_manifests_distributed_block_beats_the_cards(tmp_path: Path) -> None:
    card = {"distributed": {"launcher": "deepspeed"}}
    assert planned(tmp_path, card, deployment={"distributed": {"launcher": "vllm"}}).launcher == "vllm"


@pytest.mark.parametrize(
    ("context", "deployment", "granted"),
    [
        ({}, {}, (0, 1)),
        ({"docker_gpus": "4-7"}, {}, (4, 5)),
        ({"docker_gpus": "4-7"}, {"docker_gpus": "0-3"}, (4, 5)),
        ({}, {"docker_gpus": "2,3"}, (2, 3)),
        ({"docker_gpus": None}, {"docker_gpus": ""}, (0, 1)),
    ],
)
def test_gpus_are_those_that_the_context_or_the_deployment_allows(
    tmp_path: Path, context: dict[str, Any], deployment: dict[str, Any], granted: tuple[int, ...]
) -> None:
    spec = planned(tmp_path, {"n_gpus": "2"}, inventory=EIGHT, context=context, deployment=deployment)
    assert spec.gpus.indices == granted


def test_gpu_number_0_is_one_gpu_and_not_all(tmp_path: Path) -> None:
    assert planned(tmp_path, {"n_gpus": "-1"}, inventory=EIGHT, context={"docker_gpus": 0}).gpus.indices == (0,)


@pytest.mark.parametrize("n_gpus", ["0", "-1", None])
def test_a_machine_without_a_gpu_runs_what_asks_for_none_or_for_all(tmp_path: Path, n_gpus: str | None) -> None:
    spec = planned(tmp_path, {"n_gpus": n_gpus}, inventory=GpuInventory())
    assert (spec.refusal, spec.gpus.vendor, spec.environment["MAD_GPU_VENDOR"]) == (None, "CPU", "CPU")


def test_the_cards_words_arrive_in_the_spec(tmp_path: Path) -> None:
    card = {
        "multiple_results": "r.csv",
        "args": "--x 1",
        "expected_results": 3,
        "additional_docker_run_options": "--shm-size 1g",
    }
    spec = planned(tmp_path, card, context={"docker_cpus": "0-3", "expected_results": 9})
    assert (spec.results_file, spec.script.args, spec.expected_results, spec.cpus, spec.run_options) == (
        "r.csv", "--x 1", 3, "0-3", ("--shm-size", "1g"),
    )  # fmt: skip


def test_a_secret_in_the_docker_options_travels_with_the_secrets(tmp_path: Path) -> None:
    card = {"additional_docker_run_options": "-e HF_TOKEN=${HF_TOKEN} --shm-size 1g"}
    spec = planned(tmp_path, card, environ={"HF_TOKEN": "canary-1234"})
    assert (spec.secrets, spec.run_options) == ({"HF_TOKEN": "canary-1234"}, ("--shm-size", "1g"))


def test_local_data_is_mounted_named_and_recorded(tmp_path: Path) -> None:
    data = {"squad": {"local": {"path": str(tmp_path), "home": "/data"}}}
    spec = planned(tmp_path, {"data": "squad"}, data=data)
    assert [(str(mount.source), mount.target) for mount in spec.mounts] == [(str(tmp_path.resolve()), "/data")]
    assert (spec.environment["MAD_DATANAME"], spec.environment["MAD_DATAHOME"]) == ("squad", "/data")
    assert spec.data == {"dataname": "squad", "data_provider_type": "local"}


def test_a_credential_reaches_the_script_and_its_password_is_a_secret(tmp_path: Path) -> None:
    credentials = {"site": {"username": "rocm", "password": "canary-1234"}}
    spec = planned(tmp_path, {"cred": "site"}, credentials=credentials)
    assert spec.environment["site_USERNAME"] == "rocm"
    assert spec.secrets == {"site_PASSWORD": "canary-1234"}
