"""``madengine validate``: recognising files, listing every problem with its line, exit codes, JSON, annotations."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from madengine.cli.validate import validate
from madengine.cli.validate_files import check_file
from madengine.reporting.run_record import Machine, RunRecord
from madengine.schemas import perf_csv_columns, perf_csv_header
from madengine.verdict.evidence import Evidence
from madengine.verdict.evidence_json import to_json

Write = Callable[..., Path]

MANIFEST = {"built_images": {"a": {}}, "built_models": {"a": {"name": "a"}}, "context": {}}
ROW = dict.fromkeys(perf_csv_columns(), "") | {"status": "SUCCESS", "model": "a"}
SUPER_ROW = {**ROW, "configs": [{"tp": "8"}], "multi_results": {"bs": "1"}}
EVIDENCE = to_json(Evidence("r"))
RUN_RECORD = RunRecord("r", "a", Machine("h", "Linux", "3.11", "0"), ("madengine",), "2026-01-31T23:59:59Z").to_dict()
RESULTS = "model,performance,metric\nx,1.5,tok/s\n"


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes files of a name and content below a folder that is no model package."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MODEL_DIR", raising=False)

    def write(name: str, content: Any) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(content, (str, bytes)):
            content = json.dumps(content, indent=2)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def run(*words: object) -> Result:
    result = CliRunner().invoke(validate, [str(word) for word in words], standalone_mode=False)
    assert result.exception is None, result.exception
    return result


def problems(path: Path) -> list[tuple[str, str, int | None]]:
    return [(p.code, p.pointer, p.line) for p in check_file(str(path), {}).problems]


KINDS = [
    ("build.json", MANIFEST, "manifest"),
    ("manifest.json", {"context": {}}, "manifest"),
    ("m.json", {"built_models": {}}, "manifest"),
    ("over.json", {"context": {"docker_env_vars": {}}}, "overlay"),
    ("cards.json", [{"name": "a"}], "cards"),
    ("models.json", [], "cards"),
    ("models.json", {"name": "a", "scripts": "x"}, "cards"),
    ("one.json", {"name": "a", "scripts": "run.sh", "n_gpus": "1"}, "cards"),
    ("ctx.json", {"gpu_vendor": "AMD"}, "context"),
    ("ctx.json", {"slurm": {"nodes": 1}, "_comment": "x"}, "context"),
    ("x.json", {}, "context"),
    ("data.json", {"huggingface": {}}, "data"),
    ("data.json", {}, "data"),
    ("sources.json", {"data_sources": {"x": {}}}, "data"),
    ("sources.json", {"x": {"local": {"path": "/x"}}}, "data"),
    ("tools.json", {"tools": {"rocprof": {}}}, "tools"),
    ("mine.json", {"tools": {"rocprof": {}}}, "tools"),
    ("ctx.json", {"tools": [{"name": "rocprof"}]}, "context"),
    ("credential.json", {"name": {}, "tags": {}}, "credentials"),
    ("c.json", {"dockerhub": {"username": "a", "password": "b"}}, "credentials"),
    ("b.json", [{"model_name": "a", "build_new": True}], "batch_manifest"),
    ("batch_manifest.json", [], "batch_manifest"),
    ("names.json", {"x": {"y": 1}}, "unknown"),
    ("b.json", '[{"model_name": ', "batch_manifest"),
    ("credential.json", '{"a": ', "credentials"),
    ("n.json", 5, "unknown"),
    ("mad.env", "export A=1\n", "env_file"),
    ("mad.env.template", "# only\nA=1\n", "env_file"),
    ("r.csv", RESULTS, "results_csv"),
    ("results", RESULTS, "results_csv"),
    ("p.csv", "MODEL", "perf_csv"),
    ("notes.txt", "hello there\n", "unknown"),
    ("build.json", '{"built_images": {', "manifest"),
    ("models.json", "[", "cards"),
    ("perf_entry.json", [ROW], "perf_entry"),
    ("perf_entry.json", [], "perf_entry"),
    ("x.json", [ROW], "perf_entry"),
    ("x.json", [SUPER_ROW], "perf_super"),
    ("perf_super.json", [], "perf_super"),
    ("perf_super.json", '[\n{"model": "a", "n_gpus": "1", "multi_results": null},\n', "perf_super"),
    ("run.json", RUN_RECORD, "run_record"),
    ("r.json", '{"kind": "madengine-run", "rows": [{"n_gpus"', "run_record"),
    ("evidence.json", EVIDENCE, "evidence"),
    ("ctx.json", {"kind": "else", "gpu_vendor": "AMD"}, "context"),
    ("bom.json", b"\xef\xbb\xbf" + json.dumps(MANIFEST).encode(), "manifest"),
]


@pytest.mark.parametrize(("name", "content", "kind"), KINDS, ids=[f"{n} {k}" for n, _, k in KINDS])
def test_a_file_is_recognised_by_its_content(name: str, content: Any, kind: str, write: Write) -> None:
    content = perf_csv_header() + "\n" if content == "MODEL" else content
    assert check_file(str(write(name, content)), {}).kind == kind


@pytest.mark.parametrize("document", [[ROW], [], [SUPER_ROW, {**SUPER_ROW, "extra": 1}], RUN_RECORD, EVIDENCE])
def test_what_madengine_writes_has_no_problem(document: Any, write: Write) -> None:
    assert problems(write("perf_x.json", document)) == []


@pytest.mark.parametrize(
    ("document", "found"),
    [
        ({**RUN_RECORD, "version": 2}, [("content", "/version")]),
        ({**RUN_RECORD, "rows": {}}, [("content", "/rows")]),
        ({"kind": "madengine-run"}, [("content", "/version")]),
        ({**EVIDENCE, "nodes": 5}, [("content", "/nodes")]),
        ({"kind": "madengine-evidence"}, [("content", "/version")]),
        ([ROW, 5], [("type", "/1")]),
        ([ROW, {"model": "a"}], [("missing-column", "/1")]),
        ([ROW, {**ROW, "metric": []}, {**ROW, "status": "OK"}], [("type", "/1/metric"), ("status", "/2/status")]),
        ([{**SUPER_ROW, "multi_results": "x"}], [("type", "/0/multi_results")]),
    ],
)
def test_what_is_wrong_with_a_file_that_madengine_writes_is_told_by_its_reader(
    document: Any, found: list[tuple[str, str]], write: Write
) -> None:
    listed = problems(write("x.json", document))
    assert [(code, pointer) for code, pointer, _ in listed] == found
    assert all(line for _, _, line in listed)


def test_every_problem_of_a_manifest_is_listed_with_its_line(write: Write) -> None:
    text = """{
  "built_images": {"a": {}, "z": {}},
  "built_models": {
    "a": {"name": "a", "n_gpus": "many"},
    "b/c": {
      "name": "b",
      "env_vars": {"A": null}
    }
  },
  "context": {"docker_mounts": {"<FILL_X a/b>": "CHANGE-ME"}},
  "slurm": {
    "nodes": "two"
  }
}"""
    assert problems(write("m.json", text)) == [
        ("image-without-model", "/built_images/z", 2),
        ("format", "/built_models/a/n_gpus", 4),
        ("model-without-image", "/built_models/b~1c", 5),
        ("type", "/built_models/b~1c/env_vars/A", 7),
        ("unfilled-template", "/context/docker_mounts/<FILL_X a~1b>", 10),
        ("unfilled-template", "/context/docker_mounts/<FILL_X a~1b>", 10),
        ("belongs-under", "/slurm", 11),
        ("type", "/slurm/nodes", 12),
    ]


def test_a_value_that_is_a_template_still_is_not_called_a_wrong_type_besides(write: Write) -> None:
    path = write("m.json", {**MANIFEST, "deployment_config": {"slurm": {"nodes": "<FILL_NODES>"}}})
    assert [code for code, _, _ in problems(path)] == ["unfilled-template"]


def test_the_real_manifests_have_only_unfilled_template_values(
    real_mad: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    files = sorted((real_mad / "manifests").glob("*.json"))
    assert len(files) == 11
    for folder in (tmp_path, real_mad):
        monkeypatch.chdir(folder)
        for path in files:
            report = check_file(str(path), {})
            assert report.kind == "manifest"
            assert {(p.severity, p.code) for p in report.problems} == {("error", "unfilled-template")}
            lines = path.read_text().split("\n")
            for problem in report.problems:
                assert problem.line
                assert any(mark in lines[problem.line - 1] for mark in ("<FILL", "<OPTIONAL", "SITE-"))


def test_the_real_cards_have_no_error_and_are_warned_of_the_image_to_supply(real_mad: Path) -> None:
    report = check_file(str(real_mad / "models.json"), {})
    assert report.kind == "cards"
    assert {(p.severity, p.code) for p in report.problems} == {("warning", "unfilled-template")}
    assert len(report.problems) == 33
    for path in real_mad.glob("scripts/*/models.json"):
        assert check_file(str(path), {}).count("error") == 0


def test_the_other_real_files_are_recognised(real_mad: Path) -> None:
    kinds = {path.name: check_file(str(path), {}).kind for folder in ("configs", "env", "results")
        for path in (real_mad / folder).iterdir()}  # fmt: skip
    assert kinds["sglang-disagg.overlay.json"] == "overlay"
    assert kinds["slurm-config.disagg.json"] == "context"
    assert kinds["mad.env.amd-ainic.template"] == "env_file"
    assert kinds["perf_Kimi-K3.csv"] == "results_csv"


def test_cards_are_checked_as_the_catalog_checks_them(write: Write) -> None:
    cards = [
        {"name": "a", "scripts": "../../x/run.sh"},
        {"name": "b"},
        {"name": "b"},
        {"name": "c", "tags": 5},
        {"name": "d", "args": "<FILL_ARGS>", "env_vars": {"DOCKER_IMAGE_NAME": "<supply-your-image>"}},
    ]
    report = check_file(str(write("models.json", cards)), {})
    assert [(p.severity, p.code, p.pointer) for p in report.problems] == [
        ("error", "card", "/0/scripts"),
        ("error", "duplicate-name", "/2/name"),
        ("error", "type", "/3/tags"),
        ("error", "unfilled-template", "/4/args"),
        ("warning", "unfilled-template", "/4/env_vars/DOCKER_IMAGE_NAME"),
    ]


def test_paths_of_a_card_are_relative_to_the_folder_of_its_file(write: Write) -> None:
    cards = [{"name": "a", "dockerfile": "../../docker/x", "scripts": "run.sh"}]
    assert problems(write("scripts/x/models.json", cards)) == []


def test_a_manifest_is_compared_with_the_package_it_lies_in(write: Write, tmp_path: Path) -> None:
    models = {"a": {"name": "a", "scripts": "scripts/x/run.sh", "dockerfile": "docker/a"}}
    path = write("m.json", {**MANIFEST, "built_models": models})
    assert problems(path) == []
    write("docker/b.Dockerfile", "")
    write("scripts/x/run.sh", "")
    assert problems(path) == [("missing-dockerfile", "/built_models/a/dockerfile", 9)]
    write("elsewhere/docker/a.Dockerfile", "")
    write("elsewhere/scripts/y/run.sh", "")
    report = check_file(str(path), {"MODEL_DIR": str(tmp_path / "elsewhere")})
    assert [problem.code for problem in report.problems] == ["missing-scripts"]


def test_a_misspelt_key_is_a_warning_with_its_line(write: Write) -> None:
    text = """{
  "built_images": {"a": {}},
  "built_models": {"a": {
    "name": "a",
    "mutliple_results": "x.csv"
  }},
  "context": {"docker_env_var": {}},
  "distributed": {
    "nproc_per_nodes": 8
  }
}"""
    path = write("m.json", text)
    assert [found for found in problems(path) if found[0] == "misspelt-key"] == [
        ("misspelt-key", "/built_models/a/mutliple_results", 5),
        ("misspelt-key", "/context/docker_env_var", 7),
        ("misspelt-key", "/distributed/nproc_per_nodes", 9),
    ]
    assert run(path).return_value == 0
    assert run("--strict", path).return_value == 4


def test_misspelt_keys_of_cards_contexts_and_overlays_are_warnings(write: Write) -> None:
    cards = write("models.json", [{"name": "a", "n_gpu": "1", "distributed": {"launchr": "x"}}])
    assert problems(cards) == [("misspelt-key", "/0/n_gpu", 4), ("misspelt-key", "/0/distributed/launchr", 6)]
    context = write("ctx.json", {"gpu_vendor": "AMD", "deployment_config": {"slrum": {}}})
    assert problems(context) == [("misspelt-key", "/deployment_config/slrum", 4)]
    overlay = write("over.json", {"context": {"docker_mount": {}}})
    assert problems(overlay) == [("misspelt-key", "/context/docker_mount", 3)]


DATA = {"x": {"local": {"path": "/x"}}, "y": {"nas": {}}, "huggingface": {}, "z": None, "_comment": "text"}
PACKAGE_FILES: list[tuple[str, Any, list[tuple[str, str]]]] = [
    ("data.json", DATA, []),
    ("data.json", {"data_sources": {"x": {}}}, []),
    ("data.json", {"data_sources": 5}, [("content", "/data_sources")]),
    ("data.json", [], [("content", "")]),
    ("data.json", {"a/b": "/x", "c": {"local": {}}}, [("type", "/a~1b"), ("required", "/c/local")]),
    ("data.json", {"x": {"lcoal": {}}, "y": {"nas": {"pth": 1}}},
     [("misspelt-key", "/x/lcoal"), ("misspelt-key", "/y/nas/pth")]),
    ("data.json", {"data_sources": {"x": {"minoi": {}}}}, [("misspelt-key", "/data_sources/x/minoi")]),
    ("data.json", {"x": {"local": {"path": "<FILL_DATA>"}}}, [("unfilled-template", "/x/local/path")]),
    ("tools.json", {"tools": {"a": {"cmd": "x", "env_vars": {"A": 1}, "pre_scripts": ["x.sh"]}}}, []),
    ("tools.json", {"tools": []}, [("content", "")]),
    ("tools.json", {"tools": {"a": {"cmd": 5}}}, [("content", "/tools/a/cmd")]),
    ("tools.json", {"tools": {"a": {"cdm": "x", "pre_scripts": [{"path": "x", "arg": ""}]}}},
     [("misspelt-key", "/tools/a/cdm"), ("misspelt-key", "/tools/a/pre_scripts/0/arg")]),
    ("batch.json", [{"model_name": "a", "build_new": True}], []),
    ("batch.json", [{"model_name": "a"}], [("content", "/0/registry_image")]),
    ("batch.json", [{"model_name": "a", "build_new": "yes"}], [("content", "/0/build_new")]),
    ("batch.json", [{"model_name": "a", "build_nwe": True}], [("content", "/0")]),
    ("batch_manifest.json", [], [("content", "")]),
    ("credential.json", {"dockerhub": {"username": "a", "password": "b", "repository": "c"}, "_note": "x"}, []),
    ("credential.json", {"a/b": {"username": ["x"]}}, [("content", "/a~1b/username")]),
    ("credential.json", {"a": "x"}, [("content", "/a")]),
    ("credential.json", {"a": {"pasword": "x"}}, [("misspelt-key", "/a/pasword")]),
    ("credential.json", {"a": {"password": "<FILL_IT>"}}, [("unfilled-template", "/a/password")]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "expected"), PACKAGE_FILES, ids=[f"{n}" for n in range(len(PACKAGE_FILES))]
)
def test_the_other_files_of_a_package_are_checked_as_their_readers_check_them(
    name: str, content: Any, expected: list[tuple[str, str]], write: Write
) -> None:
    found = problems(write(name, content))
    assert sorted((code, pointer) for code, pointer, _ in found) == sorted(expected)
    assert all(line for _, pointer, line in found if pointer)


def test_the_real_data_and_the_tools_of_madengine_have_no_problem(real_mad: Path) -> None:
    import madengine.profiling

    tools = Path(next(iter(madengine.profiling.__path__))) / "tools.json"
    for path, kind in ((real_mad / "data.json", "data"), (tools, "tools")):
        report = check_file(str(path), {})
        assert (report.kind, report.problems) == (kind, ())


CANARY = "canary1234567890"


@pytest.mark.parametrize(
    "content",
    [
        {"a": CANARY},
        {"a": {"password": [CANARY]}},
        {"a": {"password": {CANARY: 1}}},
        {"a": {"pasword": CANARY, "password": f"<FILL_{CANARY}>"}},
        {"a": {"password": f"SITE-{CANARY.upper()}", "username": f"CHANGE-ME-{CANARY}"}},
        {"name": CANARY, "scripts": CANARY, "tags": CANARY},
        {"built_images": CANARY, "context": {"docker_env_vars": {"A": [CANARY]}, "gpu_vendor": CANARY}},
        [{"name": CANARY, "n_gpus": CANARY}],
        CANARY,
        f'{{"a": {{"password": {CANARY}}}}}',
        f'{{"a": {{"password": "{CANARY}"',
        f'{{"a": {{"password": "{CANARY}\n"}}}}',
        f'{{"a": {{"password": NaN{CANARY}, "{CANARY}": 1, "{CANARY}": 2}}}}',
        '{"a": {"password": 99999999999999991234567890}}',
        f"{CANARY}\n",
        f"export A={CANARY} )\n",
    ],
)
def test_no_value_of_a_credential_is_shown(content: Any, write: Write) -> None:
    path = write("credential.json", content)
    for words in ([path], ["--json", path]):
        output = run(*words).output.lower()
        assert CANARY not in output
        assert "1234567890" not in output


ENV_FILES: list[tuple[str | bytes, list[tuple[str, int | None]]]] = [
    ("export A=1\nB=${X:-y}\nif [[ -s ~/x ]]; then\n  echo hi >&2\nfi\nC=$(cat x 2>/dev/null)\n", []),
    ("# <FILL_A> in a comment\nA=1  # <FILL_B> here, don't mind\nB='x # <FILL_C>'\n", [("unfilled-template", 3)]),
    ("export A=<FILL_PATH>/  # x\nB=CHANGE-ME\n", [("unfilled-template", 1), ("unfilled-template", 2)]),
    ("A=1\nB=2\r\n", [("line-ends", 2)]),
    (b"\xef\xbb\xbfA=1\n", [("byte-order-mark", 1)]),
    ("A=1\nif [[ x ]]; then\n", [("syntax", 3)]),
    ('A="1\n', [("syntax", 1)]),
    (b"A=1\nB=\xff\n", [("unreadable", 2)]),
]


@pytest.mark.parametrize(("content", "expected"), ENV_FILES)
def test_an_env_file_is_checked_without_being_run(content: str | bytes, expected: Any, write: Write) -> None:
    assert [(code, line) for code, _, line in problems(write("mad.env", content))] == expected


def test_an_env_file_is_never_executed(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    canary = tmp_path / "canary"
    monkeypatch.setenv("BASH_ENV", str(write("startup", f"touch {canary}\n")))
    assert problems(write("mad.env", f"touch {canary}\nA=$(touch {canary})\nB=`touch {canary}`\n")) == []
    assert not canary.exists()


def test_a_secret_on_a_line_with_a_syntax_error_is_not_shown(write: Write) -> None:
    path = write("mad.env", "export HF_TOKEN=hf_canary1234567890 )\n")
    assert [code for code, _, _ in problems(path)] == ["syntax"]
    assert "canary" not in run(path).output


PERF = list(perf_csv_columns())
ROW = ["x", *[""] * 19, "SUCCESS", *[""] * 8]
CSV_FILES: list[tuple[str, list[tuple[str, int | None]]]] = [
    (RESULTS, []),
    ("\ufeffMODEL, Performance ,metric\r\nx,1,y\r\n", []),
    ("model,performence,metric\nx,1,y\n", [("no-metric", 1)]),
    ("model,performance,metric\n", [("no-metric", 1)]),
    ("model,performance,metric\nx,,y\nz,nan,y\n", [("no-metric", 3)]),
    ("model,performance,metric\nx,1,y\nz,,y\nz,1,234,y\n", [("row-without-metric", 3), ("row-without-metric", 4)]),
    ("performance,model\n1,x\n", [("missing-column", 1)]),
    ("model,performance\n\0", [("no-metric", 2)]),
    ('model,performance\nx,"1\n', [("no-metric", 2)]),
    ("\0", [("unreadable", 1)]),
    (",".join(PERF) + '\nx,"1\n', [("unreadable", 2)]),
    ("", [("no-metric", 1)]),
    (",".join(PERF) + "\n" + ",".join(ROW) + "\n", []),
    (",".join([*reversed(PERF)]) + "\n" + ",".join(reversed(ROW)) + "\n", []),
    (",".join([*PERF, "rounds"]) + "\n" + ",".join([*ROW, ""]) + "\n", []),
    (",".join([*PERF, "performence"]) + "\n" + ",".join([*ROW, ""]) + "\n", [("misspelt-column", 1)]),
    (",".join(PERF[:-1]) + "\n", [("missing-column", 1)]),
    (",".join([*PERF, "args"]) + "\n", [("duplicate-column", 1)]),
    (",".join(PERF) + "\nx,y\n" + ",".join([*ROW, "", "z"]) + "\n", [("ragged-row", 2), ("ragged-row", 3)]),
    (",".join(PERF) + "\n" + ",".join(ROW).replace("SUCCESS", "FINE") + "\n", [("status", 2)]),
]


@pytest.mark.parametrize(("content", "expected"), CSV_FILES, ids=[f"{n}" for n in range(len(CSV_FILES))])
def test_a_csv_is_checked_row_by_row(content: str, expected: Any, write: Write) -> None:
    assert [(code, line) for code, _, line in problems(write("x.csv", content))] == expected


def test_a_broken_file_is_one_problem_with_its_line(write: Write, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    os.mkfifo(tmp_path / "pipe.json")
    assert problems(write("m.json", '{\n"a": 1,\n"a": 2}')) == [("unreadable", "", 3)]
    assert problems(write("e.json", "")) == [("unreadable", "", None)]
    assert problems(write("e", " \n")) == [("empty", "", None)]
    assert problems(tmp_path) == [("unreadable", "", None)]
    assert problems(tmp_path / "nowhere.json") == [("unreadable", "", None)]
    assert problems(tmp_path / "pipe.csv") == [("unreadable", "", None)]
    assert problems(tmp_path / "pipe.json") == [("unreadable", "", None)]


def test_all_files_are_checked_even_when_the_first_is_broken(write: Write) -> None:
    result = run(write("a.json", "{"), "nowhere.csv", write("m.json", MANIFEST), write("r.csv", RESULTS))
    assert result.return_value == 4
    assert (
        "a.json:1: error: the additional context is not complete JSON" in result.output or "a.json:1:" in result.output
    )
    assert "nowhere.csv: error: there is no such file [unreadable]" in result.output
    assert "m.json: build manifest, no problems" in result.output
    assert result.output.endswith("4 files: 2 errors, 0 warnings\n")


def test_warnings_alone_are_a_success_unless_strict(write: Write) -> None:
    path = write("m.json", {**MANIFEST, "slurm": {}})
    assert run(path).return_value == 0
    assert run("--strict", path).return_value == 4
    assert run("--strict", write("n.json", MANIFEST)).return_value == 0


def test_a_problem_is_a_line_with_place_and_code_then_pointer_and_hint(write: Write) -> None:
    path = write("m.json", {**MANIFEST, "deployment_config": {"slurm": {"nodes": 1}, "distributed": {"nnodes": 2}}})
    assert run(path).output.split("\n")[:3] == [
        f"{path}:13: error: slurm.nodes is 1 but distributed.nnodes is 2: "
        "sbatch and the launcher would disagree on the world size [nodes-mismatch]",
        "    at /deployment_config/slurm/nodes",
        "    give both the same number, or leave one out",
    ]


def test_the_same_hint_is_given_once(write: Write) -> None:
    path = write("c.json", {"env_vars": {"A": "CHANGE-ME", "B": "CHANGE-ME"}})
    assert run(path).output.count("fill it in") == 1


def test_json_output_is_one_object_with_every_field(write: Write) -> None:
    path = write("c.json", {"env_vars": {"A": "CHANGE-ME"}})
    result = run("--json", path)
    assert result.return_value == 4
    assert json.loads(result.stdout) == {
        "files": [
            {
                "file": str(path),
                "kind": "context",
                "problems": [
                    {
                        "severity": "error",
                        "code": "unfilled-template",
                        "pointer": "/env_vars/A",
                        "line": 3,
                        "message": "the template value CHANGE-ME is not filled in",
                        "hint": "fill it in, or remove the key if it is optional",
                    }
                ],
            }
        ]
    }


def test_in_github_actions_each_problem_is_an_annotation(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    path = write("a,b:c.json", {"slurm": {"nodes": "100%"}})
    escaped = str(path).replace(":", "%3A").replace(",", "%2C")
    line = f'::error file={escaped},line=3,title=type::found a string "100%25", allowed: an integer >= 1 (/slurm/nodes)'
    assert line in run(path).stdout.split("\n")
    result = run("--json", path)
    assert line in result.stderr.split("\n")
    assert json.loads(result.stdout)["files"]


def test_the_summary_of_a_github_step_gets_a_row_for_each_file(
    write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    write("m.json", MANIFEST)
    write("c.json", {"slurm": {"nodes": "2"}})
    run("m.json", "c.json")
    assert (tmp_path / "summary.md").read_text().splitlines()[3:] == [
        "| file | kind | errors | warnings |",
        "| --- | --- | --- | --- |",
        "| m.json | build manifest | 0 | 0 |",
        "| c.json | additional context | 1 | 0 |",
        "",
    ]


def test_hostile_text_reaches_the_terminal_escaped(write: Write) -> None:
    path = write("m.json", {**MANIFEST, "built_images": {"a": {}, "\x1b[31m\n::error::x": {}}})
    output = run(path).output
    assert "\x1b" not in output
    assert "\n::error" not in output


def test_a_file_full_of_problems_shows_the_first_thousand(write: Write) -> None:
    path = write("c.json", {"env_vars": {f"A{number}": None for number in range(3000)}})
    report = check_file(str(path), {})
    assert 1000 <= len(report.problems) <= 1001
    rows = "model,performance,metric\nx,1,y\n" + "x,,y\n" * 3000
    assert check_file(str(write("r.csv", rows)), {}).problems[-1].code == "more"


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "context", "built_models", "slurm", "tools", "", "a"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    content=st.binary(max_size=40)
    | st.text().map(lambda text: text.encode("utf-8", "replace"))
    | JSON_VALUES.map(lambda value: json.dumps(value).encode()),
    name=st.sampled_from(["x", "x.json", "x.csv", "mad.env", "models.json", "manifest.json"]),
)
def test_any_content_is_judged_without_a_traceback(content: bytes, name: str, write: Write) -> None:
    report = check_file(str(write(name, content)), {})
    assert report.kind
    assert all(problem.message and "\n" not in problem.message for problem in report.problems)
