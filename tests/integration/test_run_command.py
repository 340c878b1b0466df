"""``madengine run`` from the command line to the files it leaves: on the host engine, and on docker where it builds."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.integration.packages import (
    MADENGINE,
    MEASURES,
    Outcome,
    Place,
    card,
    make_package,
    manifest,
    place,
    read_csv,
    snapshot,
    write_json,
)

HOST = ("run", "--engine", "host")
TAGS = (*HOST, "--tags", "t")
CANARY = "canary-7f3a9e"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    return place(tmp_path, monkeypatch, capsys)


def started_nothing(here: Place, result: Outcome, code: int = 4) -> None:
    assert result.code == code, result
    assert len(result.errors) == 1, result.err
    assert not (here.work / "runs").exists()
    assert not (here.work / "perf.csv").exists()


def statuses(here: Place) -> list[str]:
    return [row["status"] for row in here.rows()]


def two_cards(here: Place) -> None:
    """One model that measures and one whose script exits 7."""
    make_package(here.package, [card("good"), card("bad", scripts="scripts/bad")])
    (here.package / "scripts" / "bad").mkdir()
    (here.package / "scripts" / "bad" / "run.sh").write_text("exit 7\n")


class TestTheWayOfAManifest:
    def test_what_build_writes_run_takes(self, here: Place) -> None:
        assert here.madengine("build", "--engine", "host", "--tags", "t").code == 0
        result = here.madengine(*HOST, "--manifest-file", "build_manifest.json")
        assert result.code == 0, result.err
        assert statuses(here) == ["SUCCESS"]

    def test_the_users_file_is_never_rewritten(self, here: Place) -> None:
        path = write_json(here.work / "m.json", manifest(slurm={}, deployment_config={"target": "local"}))
        before = path.read_bytes()
        here.madengine(*HOST, "-m", "m.json")
        assert path.read_bytes() == before

    def test_an_empty_manifest_is_nothing_to_run(self, here: Place) -> None:
        write_json(here.work / "m.json", manifest([]))
        result = here.madengine(*HOST, "-m", "m.json")
        started_nothing(here, result)
        assert "holds no model" in result.errors[0]

    def test_a_manifest_of_a_build_in_which_nothing_was_built_is_nothing_to_run(self, here: Place) -> None:
        (here.package / "scripts/m/run.sh").unlink()
        assert here.madengine("build", "--engine", "host", "--tags", "t").code == 2
        started_nothing(here, here.madengine(*HOST, "-m", "build_manifest.json"))

    @pytest.mark.parametrize(
        ("blocks", "words"),
        [
            ({"deployment_config": {"k8s": {"namespace": "n"}}}, ["k8s", '{"target": "local"}']),
            ({"deployment_config": {"target": "local", "distributed": {"nnodes": 2}}}, ["2 nodes", '"nnodes": 1']),
        ],
    )
    def test_a_job_for_elsewhere_is_refused_with_a_hint(
        self, here: Place, blocks: dict[str, Any], words: list[str]
    ) -> None:
        write_json(here.work / "m.json", manifest(**blocks))
        result = here.madengine(*HOST, "-m", "m.json")
        started_nothing(here, result)
        assert all(word in result.errors[0] for word in ["m.json#/deployment_config", *words])

    def test_the_hint_for_a_slurm_manifest_works(self, here: Place) -> None:
        write_json(here.work / "m.json", manifest(deployment_config={"target": "slurm", "slurm": {"nodes": 1}}))
        assert here.madengine(*HOST, "-m", "m.json", "--additional-context", '{"target": "local"}').code == 0

    @pytest.mark.parametrize(
        "blocks",
        [
            {"context": {"docker_env_vars": {"A": "<FILL_A something>"}}},
            {"deployment_config": {"env_vars": {"A": "x CHANGE-ME y"}}},
        ],
    )
    def test_a_template_that_is_not_filled_in_is_refused(self, here: Place, blocks: dict[str, Any]) -> None:
        write_json(here.work / "m.json", manifest(**blocks))
        result = here.madengine(*HOST, "-m", "m.json")
        started_nothing(here, result)
        assert "not filled in" in result.errors[0]

    @pytest.mark.parametrize(
        "words",
        [
            ["--tags", "t"],
            ["--use-image", "x"],
            ["--registry", "h"],
            ["--batch-manifest", "b.json"],
            ["--clean-docker-cache"],
            ["--target-archs", "gfx942"],
            ["--manifest-output", "o.json"],
            ["--ignore-deprecated"],
        ],
    )
    def test_a_manifest_goes_with_no_option_that_selects_or_builds(self, here: Place, words: list[str]) -> None:
        write_json(here.work / "m.json", manifest())
        started_nothing(here, here.madengine(*HOST, "-m", "m.json", *words))

    def test_a_manifest_for_the_host_needs_images_on_another_engine(
        self, here: Place, docker_engine: Mapping[str, str]
    ) -> None:
        write_json(here.work / "m.json", manifest())
        result = here.madengine("run", "--engine", "docker", "-m", "m.json")
        started_nothing(here, result)
        assert "m has no image for engine docker" in result.errors[0]

    def test_a_package_that_is_not_there_is_told_once(self, here: Place) -> None:
        write_json(here.work / "m.json", manifest())
        result = here.madengine(*HOST, "-m", "m.json", "--model-dir", "missing")
        started_nothing(here, result)
        assert "there is no model package" in result.errors[0]


class TestTheEnvFile:
    def given(self, here: Place, text: str | None, script: str) -> list[object]:
        folder = here.work.parent / "elsewhere"
        folder.mkdir()
        deployment = {"env_file": "site/mad.env", "env_vars": {"WHERE": "${SITE_DIR}/x"}}
        path = write_json(folder / "m.json", manifest(deployment_config=deployment))
        if text is not None:
            (folder / "site").mkdir()
            (folder / "site" / "mad.env").write_text(text)
        make_package(here.package, script=script)
        return [*HOST, "-m", path]

    def test_it_is_relative_to_the_manifest_and_its_values_reach_the_script(self, here: Place) -> None:
        words = self.given(here, "SITE_DIR=/from/file\n", 'echo "performance: 1 $WHERE:$SITE_DIR"\n')
        result = here.madengine(*words)
        assert result.code == 0, result.err
        assert here.rows()[0]["metric"] == "/from/file/x:/from/file"

    def test_it_wins_over_the_inherited_environment_and_sees_it(
        self, here: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SITE_DIR", "/inherited")
        words = self.given(here, "SITE_DIR=${SITE_DIR:-/unset}/more\n", 'echo "performance: 1 $SITE_DIR"\n')
        assert here.madengine(*words).code == 0
        assert here.rows()[0]["metric"] == "/inherited/more"

    def test_its_pipeline_and_build_number_are_in_the_rows(self, here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("BUILD_NUMBER", "1")
        text = "SITE_DIR=/x\nexport BUILD_NUMBER=77\nexport pipeline=pp\n"
        assert here.madengine(*self.given(here, text, MEASURES)).code == 0
        assert [(row["build_number"], row["pipeline"]) for row in here.rows()] == [("77", "pp")]

    def test_of_a_manifest_that_comes_through_a_pipe_it_lies_in_the_current_directory(self, here: Place) -> None:
        (here.work / "mad.env").write_text("export BUILD_NUMBER=77\n")
        write_json(here.work / "m.json", manifest(deployment_config={"env_file": "mad.env"}))
        script = f"{shlex.join(MADENGINE)} run --engine host -m <(cat m.json) -f <(echo '{{}}')"
        done = subprocess.run(["bash", "-c", script], check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert [row["build_number"] for row in here.rows()] == ["77"]

    def test_the_archives_that_it_names_are_where_an_image_is_kept(
        self, here: Place, docker_engine: Mapping[str, str]
    ) -> None:
        (here.work / "mad.env").write_text(f"export MAD_DOCKER_BUILDS={here.work}/archives\n")
        image = f"local/archived-{os.getpid()}:1"
        words = manifest(image=image, deployment_config={"env_file": "mad.env"})
        words["built_images"]["k0"] |= {"local_image": True, "dockerfile": "docker/m.Dockerfile"}
        try:
            result = here.madengine("run", "--engine", "docker", "-m", write_json(here.work / "m.json", words))
        finally:
            subprocess.run(["docker", "rmi", image], check=False, capture_output=True)
        assert result.code == 0, result.err
        assert [path.suffix for path in (here.work / "archives").iterdir() if path.suffix != ".lock"] == [".tar"]

    @pytest.mark.parametrize("text", [None, "exit 3\n", "if\n", "SITE_DIR=<FILL_ME>\n", "false\n"])
    def test_one_that_cannot_be_used_starts_nothing_and_is_named(self, here: Place, text: str | None) -> None:
        result = here.madengine(*self.given(here, text, MEASURES))
        started_nothing(here, result)
        assert str(here.work.parent / "elsewhere" / "site" / "mad.env") in result.errors[0]

    def test_its_secrets_are_written_nowhere(self, here: Place) -> None:
        text = f"SITE_DIR=/x\nMAD_SECRETS_X={CANARY}\nHF_TOKEN={CANARY}2\n"
        script = f'test "$MAD_SECRETS_X$HF_TOKEN" = {CANARY}{CANARY}2 || exit 9; echo $HF_TOKEN; {MEASURES}'
        words = self.given(here, text, script.replace(CANARY, "canary-'7f3a9e'"))
        result = here.madengine(*words)
        assert result.code == 0, result.err
        assert CANARY not in result.out + result.err
        for path, (_, content) in snapshot(here.work).items():
            assert CANARY.encode() not in content, path

    def test_a_name_that_is_not_set_is_a_warning_that_names_it(self, here: Place) -> None:
        result = here.madengine(*self.given(here, "OTHER=1\n", MEASURES))
        assert result.code == 0
        assert "warning: m: WHERE refers to ${SITE_DIR}, which is not set here" in result.err


class TestWhatIsSelected:
    @pytest.mark.parametrize("words", [[], ["--tags", "nothing-like-it"], ["--tags", ""], ["--tags", " , "]])
    def test_nothing_selected_is_never_a_success(self, here: Place, words: list[str]) -> None:
        started_nothing(here, here.madengine(*HOST, *words))

    def test_one_failing_model_fails_the_command_and_not_the_other(self, here: Place) -> None:
        two_cards(here)
        result = here.madengine(*TAGS)
        assert result.code == 3
        assert {row["model"]: row["status"] for row in here.rows()} == {"good": "SUCCESS", "bad": "FAILURE"}
        assert "exited 7" in result.err

    def test_a_model_that_asks_for_gpus_that_are_not_there_leaves_a_row_and_the_other_runs(self, here: Place) -> None:
        make_package(here.package, [card("big", n_gpus="8"), card("small")])
        result = here.madengine(*TAGS, "--additional-context", '{"gpu_vendor": "CPU"}')
        assert result.code == 3
        assert {row["model"]: row["status"] for row in here.rows()} == {"big": "FAILURE", "small": "SUCCESS"}
        assert "asks for 8 GPUs, this machine has no GPU" in result.err

    def test_a_card_for_several_nodes_does_not_silently_run_on_one(self, here: Place) -> None:
        make_package(here.package, [card(distributed={"launcher": "torchrun", "nnodes": 2})])
        result = here.madengine(*TAGS)
        assert (result.code, statuses(here)) == (3, ["FAILURE"])
        assert "the card is for 2 nodes" in result.err

    def test_slurm_multi_is_refused_on_this_machine(self, here: Place) -> None:
        make_package(here.package, [card(distributed={"launcher": "slurm_multi"})])
        result = here.madengine(*TAGS)
        assert (result.code, statuses(here)) == (3, ["FAILURE"])
        assert "slurm" in result.err.lower()


@pytest.mark.docker
@pytest.mark.usefixtures("docker_engine")
class TestBuilding:
    def test_a_build_that_fails_leaves_a_row_and_exit_2_while_the_others_run(self, here: Place) -> None:
        make_package(here.package, [card("good"), card("bad", dockerfile="docker/bad")])
        (here.package / "docker" / "bad.Dockerfile").write_text("FROM local/debian-py:1\nRUN exit 7\n")
        try:
            result = here.madengine("run", "--engine", "docker", "--tags", "t", "--manifest-output", "kept.json")
        finally:
            subprocess.run(["docker", "image", "rm", "--force", "ci-good_m"], check=True, capture_output=True)
        assert result.code == 2, result.err
        assert {row["model"]: row["status"] for row in here.rows()} == {"good": "SUCCESS", "bad": "FAILURE"}
        assert "exit code: 7" in result.err
        kept = json.loads((here.work / "kept.json").read_text())
        assert list(kept["built_images"]) == list(kept["built_models"]) == ["ci-good_m"]
        assert [failure["model"] for failure in kept["summary"]["failed_builds"]] == ["bad"]

    def test_nothing_built_is_never_a_success(self, here: Place) -> None:
        (here.package / "docker" / "m.Dockerfile").write_text("FROM local/debian-py:1\nRUN exit 7\n")
        result = here.madengine("run", "--engine", "docker", "--tags", "t")
        assert (result.code, statuses(here)) == (2, ["FAILURE"])

    def test_no_dockerfile_for_this_machine_says_what_to_do_and_that_works(self, here: Place) -> None:
        (here.package / "docker" / "m.Dockerfile").write_text("# CONTEXT {'gpu_vendor': 'AMD'}\nFROM x\n")
        cpu = ("--additional-context", '{"gpu_vendor": "CPU"}')
        result = here.madengine("run", "--engine", "docker", "--tags", "t", *cpu)
        assert (result.code, statuses(here)) == (2, ["FAILURE"])
        assert "docker/m.Dockerfile is for gpu_vendor=AMD" in result.err
        assert "--engine host" in result.err
        assert here.madengine(*TAGS, *cpu).code == 0


class TestADryRun:
    def test_it_tells_what_would_run_and_starts_and_writes_nothing(self, here: Place) -> None:
        make_package(here.package, [card(env_vars={"PLAIN": "value-of-plain"}, args="--n 3")], script="touch ran\n")
        before = snapshot(here.package, here.work)
        context = json.dumps({"docker_env_vars": {"HF_TOKEN": CANARY}, "docker_mounts": {"/d": str(here.work)}})
        result = here.madengine(*TAGS, "--dry-run", "--additional-context", context)
        assert result.code == 0, result.err
        assert snapshot(here.package, here.work) == before
        for word in ("bash run.sh --n 3", "PLAIN", "HF_TOKEN", f"{here.work} -> /d", "nothing was started"):
            assert word in result.out + result.err
        assert "value-of-plain" not in result.out + result.err
        assert CANARY not in result.out + result.err

    def test_for_machines_it_is_one_object(self, here: Place) -> None:
        result = here.madengine(*TAGS, "--dry-run", "--json")
        document = json.loads(result.out)
        assert document["dry_run"] is True
        (run,) = document["runs"]
        assert (run["model"], run["engine"]) == ("m", "host")
        assert "MAD_MODEL_NAME" in run["variables"]

    @pytest.mark.parametrize("field", [{"n_gpus": "8"}, {"distributed": {"launcher": "no such"}}])
    def test_a_run_that_would_be_refused_is_told_and_is_no_success(self, here: Place, field: dict[str, Any]) -> None:
        make_package(here.package, [card(**field), card("other")])
        result = here.madengine(*TAGS, "--dry-run", "--additional-context", '{"gpu_vendor": "CPU"}')
        assert result.code == 3
        assert len(result.errors) == 1
        assert "m would not run: " in result.errors[0]
        assert not (here.work / "runs").exists()

    def test_a_script_that_is_not_there_would_end_as_a_failed_build(self, here: Place) -> None:
        make_package(here.package, [card(scripts="scripts/missing.sh")])
        assert here.madengine(*TAGS, "--dry-run").code == 2


class TestWhatIsPrintedAndWritten:
    def test_json_is_one_object_on_standard_output_and_narration_is_not(self, here: Place) -> None:
        result = here.madengine(*TAGS, "--json", "--live-output")
        document = json.loads(result.out)
        assert (document["exit_code"], document["interrupted"], document["not_started"]) == (0, False, [])
        assert document["perf_csv"] == str(here.work / "perf.csv")
        (run,) = document["runs"]
        assert (run["outcome"], run["rows"][0]["performance"]) == ("SUCCESS", "1")
        assert Path(run["log"]).read_text() == "performance: 1 x\n"
        assert "engine: host" in result.err

    def test_the_summary_file_holds_the_same(self, here: Place) -> None:
        two_cards(here)
        result = here.madengine(*TAGS, "--json", "--summary-output", "new/s.json")
        assert json.loads((here.work / "new" / "s.json").read_text()) == json.loads(result.out)
        assert json.loads(result.out)["exit_code"] == result.code == 3

    @pytest.mark.parametrize("name", ["x.csv", "perf_entry.csv"])
    def test_output_names_the_rows_of_this_command_alone(self, here: Place, name: str) -> None:
        for _ in range(2):
            assert here.madengine(*TAGS, *(["-o", name] if name == "x.csv" else [])).code == 0
        assert len(here.rows()) == 2
        assert len(read_csv(here.work / name)) == 1
        assert (here.work / name).with_suffix(".json").exists()

    def test_an_output_that_would_replace_somebodys_file_is_refused(self, here: Place) -> None:
        (here.work / "x.csv").write_text("name,age\na,1\n")
        started_nothing(here, here.madengine(*TAGS, "-o", "x.csv"))
        assert (here.work / "x.csv").read_text() == "name,age\na,1\n"

    def test_cleanup_perf_leaves_only_what_is_cumulative(self, here: Place) -> None:
        assert here.madengine(*TAGS, "--cleanup-perf").code == 0
        assert sorted(path.name for path in here.work.glob("perf*")) == [
            "perf.csv", "perf_super.csv", "perf_super.json",
        ]  # fmt: skip

    @pytest.mark.parametrize("name", ["x.csv", "x.json"])
    def test_what_output_names_stays_also_with_cleanup_perf(self, here: Place, name: str) -> None:
        assert here.madengine(*TAGS, "--cleanup-perf", "-o", name).code == 0
        assert [path.name for path in here.work.glob("x*")] == [name]
        assert "SUCCESS" in (here.work / name).read_text()

    def test_on_github_a_failed_run_is_an_annotation_and_the_table_is_in_the_summary(
        self, here: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        two_cards(here)
        (here.work / "summary.md").write_text("before")
        monkeypatch.setenv("GITHUB_ACTIONS", "true")
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(here.work / "summary.md"))
        result = here.madengine(*TAGS, "--json")
        assert json.loads(result.out)["exit_code"] == result.code == 3
        (line,) = [line for line in result.err.splitlines() if line.startswith("::")]
        assert line.startswith("::error title=FAILURE bad::")
        assert "exited 7" in line
        summary = (here.work / "summary.md").read_text()
        assert summary.startswith("before\n### madengine run\n\n| model | status | performance |")
        assert "| good | SUCCESS | 1 | x |" in summary
        assert "| bad | FAILURE | - | - |" in summary

    def test_a_runs_directory_holds_its_whole_story(self, here: Place) -> None:
        here.madengine(*TAGS)
        (folder,) = here.run_dirs()
        names = {path.name for path in folder.iterdir()}
        assert {"run.json", "manifest.json", "plan.txt", "evidence.json", "logs"} <= names
        assert json.loads((folder / "run.json").read_text())["verdict"]["outcome"] == "SUCCESS"

    def test_verbose_tells_the_steps(self, here: Place) -> None:
        assert "  model\n" in here.madengine(*TAGS, "--verbose").err


class TestOptions:
    @pytest.mark.parametrize(
        ("script", "words", "kept"),
        [
            (MEASURES, [], False),
            (MEASURES, ["--keep-model-dir"], True),
            ("exit 7\n", [], True),
            ("echo silent\n", [], True),
            (MEASURES + "exit 3\n", [], True),
        ],
    )
    def test_the_workspace_stays_when_somebody_may_look_at_it(
        self, here: Place, script: str, words: list[str], kept: bool
    ) -> None:
        make_package(here.package, script=script)
        here.madengine(*TAGS, *words)
        (folder,) = here.run_dirs()
        assert (folder / "workspace" / "run_directory" / "run.sh").exists() is kept

    def test_a_model_run_can_be_skipped_and_leaves_a_row(self, here: Place) -> None:
        make_package(here.package, script="exit 7\n")
        result = here.madengine(*TAGS, "--skip-model-run")
        assert (result.code, statuses(here)) == (0, ["SKIPPED"])
        assert "--skip-model-run was given" in result.err

    def test_a_time_limit_is_enforced_and_told(self, here: Place) -> None:
        make_package(here.package, [card(timeout=600)], script="sleep 60\n")
        result = here.madengine(*TAGS, "--timeout", "0.5")
        assert (result.code, statuses(here)) == (3, ["FAILURE"])
        assert "timed out after 0.5 s" in result.err

    @pytest.mark.parametrize("value", ["-1", "nan", "inf", "soon", ""])
    def test_a_time_limit_that_is_none_is_refused(self, here: Place, value: str) -> None:
        started_nothing(here, here.madengine(*TAGS, "--timeout", value))

    @pytest.mark.parametrize(("strict", "code"), [([], 0), (["--strict"], 3)])
    def test_strict_makes_an_incomplete_run_fail(self, here: Place, strict: list[str], code: int) -> None:
        make_package(here.package, script=MEASURES + "exit 3\n")
        result = here.madengine(*TAGS, *strict)
        assert (result.code, statuses(here)) == (code, ["SUCCESS"])
        assert "INCOMPLETE" in result.out
        assert "exited 3" in result.err

    @pytest.mark.parametrize("where", ["card", "context"])
    def test_fewer_results_than_expected_are_incomplete(self, here: Place, where: str) -> None:
        fields = {"multiple_results": "r.csv"} | ({"expected_results": 3} if where == "card" else {})
        make_package(here.package, [card(**fields)], "printf 'model,performance,metric\\na,1,x\\nb,2,x\\n' >../r.csv\n")
        context = [] if where == "card" else ["--additional-context", '{"expected_results": 3}']
        result = here.madengine(*TAGS, "--strict", *context)
        assert result.code == 3
        assert "2 of 3 expected rows" in result.err

    def test_sys_env_details_are_recorded_beside_the_run(self, here: Place) -> None:
        assert here.madengine(*TAGS, "--sys-env-details").code == 0
        (folder,) = here.run_dirs()
        assert [path for path in (folder / "node_0").iterdir() if path.name.endswith("_env.csv")]

    def test_tools_stand_before_the_script(self, here: Place) -> None:
        (here.package / "tools.json").write_text(
            json.dumps({"tools": {"a": {"cmd": "env A=1"}, "b": {"cmd": "env B=2", "env_vars": {"C": 3}}}})
        )
        make_package(here.package, script='echo "performance: 1 x$A$B$C"\n')
        context = json.dumps({"tools": [{"name": "a"}, {"name": "b"}]})
        result = here.madengine(*TAGS, "--additional-context", context)
        assert result.code == 0, result.err
        assert here.rows()[0]["metric"] == "x123"

    def test_the_engine_can_be_named_by_a_variable(self, here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MAD_CONTAINER_ENGINE", "host")
        result = here.madengine("run", "--tags", "t")
        assert result.code == 0
        assert "engine: host (no container) (from MAD_CONTAINER_ENGINE)" in result.err

    @pytest.mark.parametrize("words", [["--engine", "crio"], []])
    def test_an_engine_that_nobody_knows_is_refused(
        self, here: Place, monkeypatch: pytest.MonkeyPatch, words: list[str]
    ) -> None:
        monkeypatch.setenv("MAD_CONTAINER_ENGINE", "crio")
        started_nothing(here, here.madengine("run", "--tags", "t", *words))

    def test_a_mount_that_is_not_there_fails_its_model_with_both_paths(self, here: Place) -> None:
        result = here.madengine(*TAGS, "--additional-context", '{"docker_mounts": {"/d": "/not/there"}}')
        assert (result.code, statuses(here)) == (3, ["FAILURE"])
        assert "docker_mounts gives /d the host path /not/there" in result.err

    def test_data_is_found_where_the_variable_says(self, here: Place) -> None:
        (here.work / "squad").mkdir()
        (here.work / "squad" / "x").write_text("seen")
        data = {"squad": {"local": {"path": str(here.work / "squad"), "home": "/data"}}}
        make_package(
            here.package, [card(data="squad")], 'echo "performance: 1 $(cat "$MAD_DATAHOME/x")-$MAD_DATANAME"\n'
        )
        write_json(here.package / "data.json", data)
        assert here.madengine(*TAGS).code == 0
        (row,) = here.rows()
        assert (row["metric"], row["dataname"], row["data_provider_type"]) == ("seen-squad", "squad", "local")

    @pytest.mark.parametrize("data", [{}, {"squad": {"local": {"path": "/not/there"}}}, {"squad": {"nas": {}}}])
    def test_data_that_is_not_there_fails_its_model_with_a_sentence(self, here: Place, data: dict[str, Any]) -> None:
        make_package(here.package, [card(data="squad")])
        write_json(here.package / "data.json", data)
        result = here.madengine(*TAGS)
        assert (result.code, statuses(here)) == (3, ["FAILURE"])
        assert "squad" in result.err

    def test_a_credential_that_is_missing_fails_its_model_with_a_sentence(self, here: Place) -> None:
        make_package(here.package, [card(cred="site")])
        result = here.madengine(*TAGS)
        assert (result.code, statuses(here)) == (3, ["FAILURE"])
        assert "needs the credential 'site'" in result.err

    def test_log_rules_of_the_context_count(self, here: Place) -> None:
        make_package(here.package, script="echo MY_PATTERN: boom\n")
        assert here.madengine(*TAGS).code == 5
        context = json.dumps({"log_error_patterns": ["MY_PATTERN"]})
        result = here.madengine(*TAGS, "--additional-context", context)
        assert result.code == 3
        assert "MY_PATTERN: boom" in result.err

    def test_a_card_is_skipped_unless_it_is_to_run_anywhere(self, here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        from madengine.execution.gpu import GpuInventory

        monkeypatch.setattr(
            "madengine.orchestration.prepare.detect", lambda vendor: GpuInventory("AMD", 8, architecture="gfx942")
        )
        make_package(here.package, [card(skip_gpu_arch="gfx942")])
        assert here.madengine(*TAGS).code == 0
        assert here.madengine(*TAGS, "--disable-skip-gpu-arch").code == 0
        assert statuses(here) == ["SKIPPED", "SUCCESS"]


class TestStrangePlaces:
    @pytest.mark.parametrize("name", ["with blanks  in it", "ünïcödé 模型", 'quote\'s "and" $HOME;#', "-dash"])
    def test_package_and_working_directory_may_have_any_name(
        self, here: Place, monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        package, work = here.work.parent / name / "package", here.work.parent / name / "work"
        make_package(package)
        work.mkdir()
        monkeypatch.chdir(work)
        result = here.madengine(*TAGS, "--model-dir", package)
        assert result.code == 0, result.err
        assert [row["status"] for row in read_csv(work / "perf.csv")] == ["SUCCESS"]

    def test_a_package_in_the_working_directory_stays_as_it_is(
        self, here: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(here.package)
        monkeypatch.delenv("MODEL_DIR")
        before = snapshot(here.package)
        assert here.madengine(*TAGS).code == 0
        after = snapshot(here.package)
        assert {path: after[path] for path in before} == before
        new = {Path(path).relative_to(here.package).parts[0] for path in after.keys() - before.keys()}
        assert {name for name in new if not name.startswith("perf")} <= {"runs", ".perf.csv.lock"}

    def test_a_folder_that_cannot_be_written_is_told_before_anything_runs(self, here: Place) -> None:
        (here.work / "runs").touch()
        result = here.madengine(*TAGS)
        assert (result.code, len(result.errors)) == (4, 1)
        assert not (here.work / "perf.csv").exists()


class TestResultsThatCannotBeWritten:
    def test_rows_that_perf_csv_cannot_take_are_told_and_lie_beside_the_run(self, here: Place) -> None:
        make_package(here.package, script=f"mkdir '{here.work}/perf.csv'; {MEASURES}")
        result = here.madengine(*TAGS)
        assert result.code == 1
        assert "m has no rows in perf.csv" in result.err
        assert "0 rows appended" in result.err
        (folder,) = here.run_dirs()
        assert json.loads((folder / "rows.json").read_text())[0]["status"] == "SUCCESS"

    @pytest.mark.parametrize(("ending", "code"), [("", 1), ("exit 7\n", 3)])
    def test_a_summary_that_cannot_be_written_is_told_beside_the_runs_own_code(
        self, here: Place, ending: str, code: int
    ) -> None:
        make_package(here.package, script=f"mkdir '{here.work}/s.json'; {ending or MEASURES}")
        result = here.madengine(*TAGS, "--summary-output", "s.json")
        assert result.code == code
        assert any("s.json" in error for error in result.errors)
        assert len(here.rows()) == 1

    def test_a_configuration_that_is_not_there_is_a_warning(self, here: Place) -> None:
        make_package(here.package, [card(args="--config missing.yaml")])
        result = here.madengine(*TAGS)
        assert result.code == 0
        assert "warning: m: --config missing.yaml names no file" in result.err


@pytest.mark.parametrize(("strict", "code"), [((), 0), (("--strict",), 3)])
def test_a_post_script_that_fails_leaves_the_numbers_and_a_warning(
    here: Place, strict: tuple[str, ...], code: int
) -> None:
    make_package(here.package)
    (here.package / "scripts" / "after.sh").write_text("exit 4\n")
    result = here.madengine(*TAGS, *strict, "-c", '{"post_scripts": ["scripts/after.sh"]}')
    assert result.code == code, result.err
    assert "warning: m: post-script scripts/after.sh exited 4" in result.err
    assert statuses(here) == ["SUCCESS"]
    assert "INCOMPLETE" in result.out


def test_a_pre_script_that_nobody_has_is_refused_before_the_model_starts(here: Place) -> None:
    make_package(here.package)
    words = [*TAGS, "-c", '{"pre_scripts": ["scripts/befor.sh"]}']
    assert here.madengine(*words, "--dry-run").code == 3
    result = here.madengine(*words)
    assert result.code == 3
    assert "the pre-script scripts/befor.sh is neither in the package nor madengine's own" in result.err
    assert statuses(here) == ["FAILURE"]


def test_madengines_own_pre_scripts_are_there_for_every_package(here: Place) -> None:
    make_package(here.package)
    own = "scripts/common/pre_scripts/system_environment.sh"
    assert here.madengine(*TAGS, "-c", json.dumps({"pre_scripts": [own]})).code == 0
