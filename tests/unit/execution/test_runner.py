"""One model from workspace to evidence, on the host engine."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.hostile import HOSTILE, canaries
from tests.unit.execution.packages import Watching, package, spec

from madengine.core.errors import ConfigurationError, ExecutionError
from madengine.execution.engine import ContainerRequest
from madengine.execution.host import HostContainer, HostEngine
from madengine.execution.runner import container_name, hook_path, model_argv, run_model
from madengine.execution.spec import Folders, GpuGrant, HookScript, Place, ScriptPlan
from madengine.verdict.evidence import Evidence, InterruptionKind

SECRET = "canary-83b1c07e"


def run(root: Path, watching: Watching | None = None, cancel: threading.Event | None = None, **fields: Any) -> Evidence:
    engine = fields.pop("engine", None) or HostEngine(grace=0.3)
    return run_model(spec(root, **fields), engine, observer=watching or Watching(), cancel=cancel or threading.Event())


def run_dir(root: Path) -> Path:
    return root / "runs" / "run-1"


def hook(root: Path, name: str, script: str) -> HookScript:
    folder = root / "scripts" / "hooks"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(script)
    return HookScript(f"scripts/hooks/{name}")


def test_a_metric_line_is_a_measurement(tmp_path: Path) -> None:
    evidence = run(package(tmp_path, "echo 'performance: 12.5 tokens/s'"))
    assert [(m.value, m.metric) for m in evidence.measurements] == [(12.5, "tokens/s")]
    assert [node.exit_code for node in evidence.nodes] == [0]
    assert (evidence.run_id, evidence.interruption) == ("run-1", None)


def test_the_log_and_the_screen_show_the_same(tmp_path: Path) -> None:
    root, watching = package(tmp_path, "echo out; echo err >&2"), Watching()
    run(root, watching)
    assert watching.shown == b"out\nerr\n" == (run_dir(root) / "logs" / "run.log").read_bytes()


@pytest.mark.parametrize("script", ["echo performance: 1 x", "printf 'model,performance,metric\\na,2,y\\n' >r.csv"])
def test_what_a_node_measures_and_reports_carries_its_rank(tmp_path: Path, script: str) -> None:
    evidence = run(package(tmp_path, script), results_file="r.csv", place=Place(nnodes=4, rank=3))
    assert [measurement.rank for measurement in evidence.measurements] == [3]
    assert [node.rank for node in evidence.nodes] == [3]


def test_artefacts_are_kept_where_the_spec_says(tmp_path: Path) -> None:
    run(package(tmp_path, "echo x >r.csv"), folders=Folders(artefacts="artefacts"))
    assert (run_dir(tmp_path / "package") / "artefacts" / "r.csv").is_file()


def test_two_nodes_on_one_machine_have_containers_of_their_own() -> None:
    assert len({container_name("run-1"), container_name("run-1", "node0"), container_name("run-1", "node1")}) == 3


def test_a_declared_file_outranks_a_metric_line(tmp_path: Path) -> None:
    root = package(tmp_path, "echo performance: 1 x; printf 'model,performance,metric\\na,2,y\\n' >../r.csv")
    evidence = run(root, results_file="r.csv")
    assert [(m.name, m.value) for m in evidence.measurements] == [("a", 2.0)]
    assert (run_dir(root) / "node_0" / "r.csv").is_file()


@pytest.mark.parametrize("place", ["", "./", "../"])
def test_a_script_is_told_how_its_results_are_called(tmp_path: Path, place: str) -> None:
    root = package(tmp_path, f"printf 'model,performance,metric\\na,2,y\\n' >{place}$MAD_OUTPUT_CSV")
    assert [m.value for m in run(root, results_file="r.csv").measurements] == [2.0]


def test_a_script_without_a_declared_file_is_told_nothing(tmp_path: Path) -> None:
    root, watching = package(tmp_path, "echo ${MAD_OUTPUT_CSV-unset}"), Watching()
    run(root, watching)
    assert watching.shown == b"unset\n"


def test_a_metric_line_stands_in_for_a_declared_file_that_is_missing(tmp_path: Path) -> None:
    evidence = run(package(tmp_path, "echo performance: 1 x"), results_file="r.csv")
    assert [m.value for m in evidence.measurements] == [1.0]
    assert "was not written" in evidence.contract_problems[0].summary


def test_a_misspelt_file_is_named_and_kept(tmp_path: Path) -> None:
    root = package(tmp_path, "printf 'model,performance,metric\\na,2,y\\n' >../result.csv")
    evidence = run(root, results_file="results.csv")
    assert evidence.measurements == ()
    assert "result.csv" in evidence.contract_problems[0].candidates[0]
    assert (run_dir(root) / "node_0" / "result.csv").is_file()


def test_a_number_that_is_none_is_told_with_its_reason(tmp_path: Path) -> None:
    evidence = run(package(tmp_path, "echo performance: nan x"))
    assert evidence.measurements == ()
    assert "nan" in evidence.contract_problems[0].summary


@pytest.mark.parametrize("place", ["", "scripts/m", "scripts", "runs"])
def test_a_stale_file_in_the_package_is_never_a_result(tmp_path: Path, place: str) -> None:
    root = package(tmp_path, "true")
    (root / place).mkdir(exist_ok=True)
    (root / place / "r.csv").write_text("model,performance,metric\na,2,y\n")
    evidence = run(root, results_file="r.csv")
    assert evidence.measurements == ()


def test_of_a_file_that_was_there_only_the_new_rows_count(tmp_path: Path) -> None:
    root = package(tmp_path, "echo b,3,y >>r.csv")
    (root / "scripts" / "m" / "r.csv").write_text("model,performance,metric\na,2,y\n")
    assert [m.name for m in run(root, results_file="r.csv").measurements] == ["b"]


def test_a_file_that_was_deleted_and_written_anew_counts_and_is_not_held_open_longer(tmp_path: Path) -> None:
    rows = "model,performance,metric\na,2,y\n"
    root = package(tmp_path, 'rows=$(cat r.csv); rm r.csv; echo "$rows" >r.csv')
    (root / "scripts" / "m" / "r.csv").write_text(rows)
    assert [m.name for m in run(root, results_file="r.csv").measurements] == ["a"]
    held = [link.readlink() for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    assert [path for path in held if path.is_relative_to(tmp_path)] == []


def test_the_exit_code_and_the_log_finding_are_evidence(tmp_path: Path) -> None:
    evidence = run(package(tmp_path, "echo 'RuntimeError: boom'; exit 7"))
    assert evidence.nodes[0].exit_code == 7
    assert evidence.log_findings[0].line == 1


def test_args_reach_the_script_word_by_word(tmp_path: Path) -> None:
    root = package(tmp_path)
    (root / "scripts" / "m" / "run.py").write_text("import json, sys; print(json.dumps(sys.argv[1:]))")
    watching = Watching()
    plan = ScriptPlan(root / "scripts" / "m", "run.py", ("python3",), "--a 'x;y:z' --b \"q r\" $(touch c) `id` $HOME")
    run(root, watching, script=plan)
    words = ["--a", "x;y:z", "--b", "q r", "$(touch", "c)", "`id`", "$HOME"]
    assert json.loads(watching.shown) == words


def test_hostile_values_neither_run_nor_change(tmp_path: Path) -> None:
    root = package(tmp_path)
    script = "import json, os; print(json.dumps({k: v for k, v in os.environ.items() if k.startswith('H_')}))"
    (root / "scripts" / "m" / "run.py").write_text(script)
    given = {f"H_{number}": text for number, text in enumerate(HOSTILE)}
    watching = Watching()
    plan = ScriptPlan(root / "scripts" / "m", "run.py", ("python3",))
    run(root, watching, script=plan, environment=given, card={"name": HOSTILE[0]})
    assert json.loads(watching.shown) == given
    assert not canaries(tmp_path)


@pytest.mark.parametrize("args", ["'open", 'a "b', "a\\"])
def test_args_that_are_no_words_are_refused_before_anything_starts(tmp_path: Path, args: str) -> None:
    root = package(tmp_path, "touch ran")
    evidence = run(root, args=args)
    assert evidence.interruption is not None
    assert evidence.interruption.kind is InterruptionKind.REFUSED
    assert not (run_dir(root) / "workspace").exists()


def test_a_prefix_stands_before_the_interpreter(tmp_path: Path) -> None:
    watching = Watching()
    run(package(tmp_path, 'echo "$A"'), watching, prefix=("env", "A=from the prefix"))
    assert watching.shown == b"from the prefix\n"


def test_a_script_that_looks_like_an_option_is_run(tmp_path: Path) -> None:
    root = package(tmp_path)
    (root / "scripts" / "m" / "-x.sh").write_text("echo ran")
    watching = Watching()
    run(root, watching, script=ScriptPlan(root / "scripts" / "m", "-x.sh"))
    assert watching.shown == b"ran\n"


def test_hooks_run_around_the_model_in_their_order(tmp_path: Path) -> None:
    root = package(tmp_path, "echo model >>../order")
    before, after = (
        hook(root, "b.sh", 'echo "pre $*" >>../order'),
        hook(root, "a.py", "open('../order','a').write('post\\n')"),
    )
    run(
        root,
        pre_scripts=(HookScript(before.path, "--x 'a b'"), before),
        post_scripts=(after,),
    )
    order = (run_dir(root) / "workspace" / "order").read_text().splitlines()
    assert order == ["pre --x a b", "pre ", "model", "post"]


def test_a_hooks_output_is_no_metric_and_has_its_own_log(tmp_path: Path) -> None:
    root = package(tmp_path, "true")
    noisy = hook(root, "h.sh", "echo performance: 99 x")
    evidence = run(root, pre_scripts=(noisy,), post_scripts=(noisy,))
    assert evidence.measurements == ()
    for name in ("pre-scripts.log", "post-scripts.log"):
        assert (run_dir(root) / "logs" / name).read_text() == "performance: 99 x\n"


def test_a_pre_script_that_fails_keeps_the_model_from_running(tmp_path: Path) -> None:
    root, watching = package(tmp_path, "touch ../ran"), Watching()
    evidence = run(root, watching, pre_scripts=(hook(root, "h.sh", "exit 4"),))
    assert evidence.nodes[0].exit_code == 4
    assert "was not run" in evidence.nodes[0].detail
    assert not (run_dir(root) / "workspace" / "ran").exists()
    assert "model" not in watching.phases


def test_a_post_script_that_fails_takes_no_measurement_away(tmp_path: Path) -> None:
    root = package(tmp_path, "echo performance: 1 x")
    evidence = run(root, post_scripts=(hook(root, "h.sh", "exit 4"),))
    assert [m.value for m in evidence.measurements] == [1.0]
    assert evidence.nodes[0].exit_code == 0
    assert [trouble.endswith("h.sh exited 4") for trouble in evidence.troubles] == [True]


def test_post_scripts_run_after_a_model_that_failed(tmp_path: Path) -> None:
    root = package(tmp_path, "exit 1")
    run(root, post_scripts=(hook(root, "h.sh", "touch ../after"),))
    assert (run_dir(root) / "workspace" / "after").exists()


@pytest.mark.parametrize("path", ["../x.sh", "/etc/x.sh", "scripts/../../x.sh"])
def test_a_hook_outside_the_workspace_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(ConfigurationError, match="outside the workspace"):
        hook_path(HookScript(path))
    evidence = run(package(tmp_path), pre_scripts=(HookScript(path),))
    assert evidence.interruption is not None
    assert evidence.interruption.kind is InterruptionKind.REFUSED


def test_a_time_limit_is_an_interruption_and_what_was_measured_stays(tmp_path: Path) -> None:
    evidence = run(package(tmp_path, "echo performance: 1 x; sleep 60"), timeout=0.5)
    assert evidence.interruption is not None
    assert (evidence.interruption.kind, evidence.interruption.detail) == (
        InterruptionKind.TIMEOUT,
        "timed out after 0.5 s",
    )
    assert [m.value for m in evidence.measurements] == [1.0]
    assert evidence.nodes[0].exit_code == 124


def test_pre_scripts_use_up_the_same_time_limit(tmp_path: Path) -> None:
    root = package(tmp_path, "touch ../ran")
    began = time.monotonic()
    evidence = run(root, timeout=0.5, pre_scripts=(hook(root, "h.sh", "sleep 60"),))
    assert evidence.interruption is not None
    assert evidence.interruption.kind is InterruptionKind.TIMEOUT
    assert time.monotonic() - began < 20


def test_a_cancel_ends_the_run_without_post_scripts(tmp_path: Path) -> None:
    root, cancel = package(tmp_path, "sleep 60"), threading.Event()
    threading.Timer(0.3, cancel.set).start()
    evidence = run(root, cancel=cancel, post_scripts=(hook(root, "h.sh", "touch ../after"),))
    assert evidence.interruption is not None
    assert evidence.interruption.kind is InterruptionKind.CANCELLED
    assert not (run_dir(root) / "workspace" / "after").exists()


def test_a_run_that_was_cancelled_before_it_began_starts_nothing(tmp_path: Path) -> None:
    root, cancel = package(tmp_path), threading.Event()
    cancel.set()
    evidence = run(root, cancel=cancel)
    assert evidence.interruption is not None
    assert evidence.interruption.kind is InterruptionKind.CANCELLED
    assert not run_dir(root).exists()


def test_a_skip_and_a_refusal_start_nothing(tmp_path: Path) -> None:
    root = package(tmp_path)
    assert run(root, skip="not on gfx942").skipped == "not on gfx942"
    refused = run(root, refusal="the card asks for 8 GPUs").interruption
    assert refused is not None
    assert (refused.kind, refused.detail) == (InterruptionKind.REFUSED, "the card asks for 8 GPUs")
    assert not run_dir(root).exists()


class Refusing(HostEngine):
    """An engine that starts nothing."""

    def start(self, request: ContainerRequest) -> HostContainer:
        raise ExecutionError(f"docker cannot start a container (125): no space for {SECRET}")


def test_an_engine_that_refuses_is_quoted_without_secrets_and_leaves_nothing(tmp_path: Path) -> None:
    root = package(tmp_path)
    evidence = run(root, engine=Refusing(), secrets={"MAD_SECRETS_X": SECRET})
    assert evidence.interruption is not None
    assert evidence.interruption.kind is InterruptionKind.REFUSED
    assert "(125): no space for ***" in evidence.interruption.detail
    assert not (run_dir(root) / "workspace").exists()


class Unstoppable(HostEngine):
    """An engine whose container cannot be removed."""

    def start(self, request: ContainerRequest) -> HostContainer:
        container = super().start(request)

        def stop() -> None:
            raise ExecutionError("the driver hangs")

        container.stop = stop  # type: ignore[method-assign]
        return container


def test_a_container_that_cannot_be_removed_is_a_note(tmp_path: Path) -> None:
    evidence = run(package(tmp_path, "echo performance: 1 x"), engine=Unstoppable())
    assert [m.value for m in evidence.measurements] == [1.0]
    assert "the driver hangs" in evidence.notes


def test_no_secret_reaches_a_log_a_screen_or_evidence(tmp_path: Path) -> None:
    root, watching = package(tmp_path, 'echo "$MAD_SECRETS_X"; echo "ValueError: $MAD_SECRETS_X"; exit 1'), Watching()
    evidence = run(root, watching, secrets={"MAD_SECRETS_X": SECRET})
    assert SECRET not in repr(evidence)
    assert SECRET.encode() not in watching.shown
    for path in run_dir(root).rglob("*"):
        assert path.is_dir() or SECRET.encode() not in path.read_bytes()


def test_a_secret_by_its_name_is_kept_out_of_the_log_too(tmp_path: Path) -> None:
    root, watching = package(tmp_path, 'echo "$HF_TOKEN"'), Watching()
    run(root, watching, environment={"HF_TOKEN": SECRET})
    assert watching.shown == b"***\n"


def test_the_workspace_stays_for_whoever_judges_the_run(tmp_path: Path) -> None:
    root = package(tmp_path)
    run(root)
    assert (run_dir(root) / "workspace" / "run_directory" / "run.sh").is_file()


def test_what_is_kept_alive_says_how_to_enter_it(tmp_path: Path) -> None:
    root, watching = package(tmp_path), Watching()
    run(root, watching, keep_alive=True)
    assert (run_dir(root) / "workspace").is_dir()
    assert any("enter it: cd " in note for note in watching.notes)


@pytest.mark.parametrize("name", ["host_env.csv", "gpu_profiler_output.csv", "rpd_trace.csv", "any.csv"])
def test_what_tools_write_is_kept(tmp_path: Path, name: str) -> None:
    root = package(tmp_path, f"echo x >../{name}; echo y >{name}")
    run(root)
    kept = run_dir(root) / "node_0"
    assert (kept / name).read_text() == "x\n"
    assert (kept / f"run_directory_{name}").read_text() == "y\n"


def test_what_pre_scripts_write_is_kept(tmp_path: Path) -> None:
    root = package(tmp_path)
    run(root, pre_scripts=(hook(root, "env.sh", "echo x >../m_env.csv"),))
    assert (run_dir(root) / "node_0" / "m_env.csv").read_text() == "x\n"


def test_what_was_there_before_and_links_are_no_artefacts(tmp_path: Path) -> None:
    root = package(tmp_path, "ln -s /etc/hostname x.csv; echo new >new.csv")
    (root / "scripts" / "m" / "old.csv").write_text("old")
    run(root)
    assert [path.name for path in (run_dir(root) / "node_0").iterdir()] == ["new.csv"]


def test_phases_come_in_order(tmp_path: Path) -> None:
    watching = Watching()
    run(package(tmp_path), watching)
    assert watching.phases == ["workspace", "container", "model", "results"]


def test_mounts_that_the_host_cannot_show_are_noted(tmp_path: Path) -> None:
    from madengine.execution.engine import Mount

    (tmp_path / "data").mkdir()
    evidence = run(package(tmp_path), mounts=(Mount(tmp_path / "data", "/data"),), run_options=("--shm-size", "1g"))
    assert any("is not visible as /data on the host engine" in note for note in evidence.notes)
    assert any("additional_docker_run_options" in note for note in evidence.notes)


@pytest.mark.parametrize(
    ("gpus", "said"),
    [
        (GpuGrant("AMD", (1, 3), 8), b"1,3"),
        (GpuGrant("AMD", (0, 1), 2), b"all"),
        (GpuGrant("AMD", (), 8), b""),
    ],
)
def test_without_a_container_a_variable_limits_the_gpus(tmp_path: Path, gpus: GpuGrant, said: bytes) -> None:
    watching = Watching()
    run(package(tmp_path, "echo ${ROCR_VISIBLE_DEVICES-all}"), watching, gpus=gpus)
    assert watching.shown == said + b"\n"


class Asking(HostEngine):
    """An engine that keeps the request and starts nothing."""

    needs_image = True

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[ContainerRequest] = []

    def start(self, request: ContainerRequest) -> HostContainer:
        self.requests.append(request)
        raise ExecutionError("only asking")


def asked(tmp_path: Path, **fields: Any) -> ContainerRequest:
    engine = Asking()
    run(package(tmp_path), engine=engine, **fields)
    return engine.requests[0]


@pytest.mark.parametrize(
    ("options", "user", "expected"),
    [((), "7:8", "7:8"), (("-u", "root"), "", ""), (("--user=0",), "7:8", "")],
)
def test_the_container_user_is_the_callers_unless_something_says_else(
    tmp_path: Path, options: Sequence[str], user: str, expected: str
) -> None:
    assert asked(tmp_path, run_options=tuple(options), user=user).user == expected


def test_amd_gpus_come_as_device_files_with_what_rocm_needs(tmp_path: Path) -> None:
    gpus = GpuGrant("AMD", (0,), 8, render_nodes=("/dev/dri/renderD128",))
    request = asked(tmp_path, gpus=gpus, run_options=("--shm-size", "64g", "--network=bridge"))
    assert request.devices == ("/dev/kfd", "/dev/dri/renderD128")
    assert request.options == (
        "--cap-add=SYS_PTRACE", "--security-opt=seccomp=unconfined", "--shm-size", "64g", "--network=bridge",
    )  # fmt: skip


def test_nvidia_gpus_come_by_number_and_a_cpu_needs_nothing(tmp_path: Path) -> None:
    request = asked(tmp_path / "a", gpus=GpuGrant("NVIDIA", (0, 2), 8))
    assert (request.gpus, request.devices, request.options) == ("0,2", (), ("--ipc=host", "--network=host"))
    request = asked(tmp_path / "b", gpus=GpuGrant())
    assert (request.gpus, request.devices, request.options) == ("", (), ())


@pytest.mark.parametrize("text", HOSTILE[::5])
def test_a_containers_name_is_one_that_engines_take(text: str) -> None:
    import re

    assert re.fullmatch(r"[a-zA-Z0-9][a-zA-Z0-9_.-]+", container_name(text))


def test_the_words_of_a_command_are_prefix_interpreter_script_and_args(tmp_path: Path) -> None:
    assert model_argv(spec(package(tmp_path), args="--x 'y z'", prefix=("nice",))) == (
        "nice", "bash", "run.sh", "--x", "y z",
    )  # fmt: skip
