"""Generated cards: scripts that work, break, hang or chatter."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from tests.unit.catalog.packages import card, write_cards, write_script

from madengine.catalog.discovery import discover
from madengine.catalog.dynamic import ScriptRunner
from madengine.core.errors import ConfigurationError, DiscoveryError

PLAIN = """
from madengine.utils.discover_models import CustomModel
def list_models():
    return [CustomModel(name="a", scripts="run.sh", dockerfile="../../docker/x", tags=["t"]), CustomModel("b")]
"""


def runner(package: Path, limit: float = 30.0) -> ScriptRunner:
    return ScriptRunner(package, {"PATH": "/usr/bin:/bin"}, limit)


def test_generated_cards_are_listed_under_their_folder(tmp_path: Path) -> None:
    write_script(tmp_path, PLAIN)
    catalog = discover(tmp_path)
    assert catalog.problems == ()
    first, second = catalog.cards
    assert (first.name, second.name) == ("gen/a", "gen/b")
    assert (first.text("scripts"), first.text("dockerfile")) == ("scripts/gen/run.sh", "docker/x")
    assert (second.n_gpus, second.timeout, second.tags, second.text("args")) == (-1, 7200.0, (), "")


def test_the_older_import_path_and_a_helper_beside_the_script_work(tmp_path: Path) -> None:
    script = write_script(
        tmp_path,
        """
        from madengine.tools.discover_models import CustomModel
        from sizes import SIZES
        def list_models():
            return (CustomModel(name=f"m{size}") for size in SIZES)
        """,
    )
    script.with_name("sizes.py").write_text("SIZES = [1, 2]")
    assert [item["name"] for item in runner(tmp_path).list_models(script).documents] == ["m1", "m2"]


def test_a_script_sees_its_folder_the_package_and_a_closed_standard_input(tmp_path: Path) -> None:
    script = write_script(
        tmp_path,
        """
        import os, sys
        from madengine.utils.discover_models import CustomModel
        def list_models():
            return [CustomModel(name="m", owner=os.getcwd(), url=os.environ["MODEL_DIR"], args=repr(sys.stdin.read()))]
        """,
    )
    (model,) = runner(tmp_path).list_models(script).documents
    assert (model["owner"], model["url"], model["args"]) == (str(script.parent), str(tmp_path), "''")


def test_what_a_script_prints_does_not_disturb(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script = write_script(
        tmp_path,
        """
        import os, sys
        print("hello")
        os.write(1, b"x" * 3_000_000)
        print("notice", file=sys.stderr)
        """
        + PLAIN.replace("\n", "\n        "),
    )
    assert len(runner(tmp_path).list_models(script).documents) == 2
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import no_such_module_here", "line 1: ModuleNotFoundError: No module named 'no_such_module_here'"),
        ("def list_models(:", "line 1: SyntaxError"),
        ("x = 1\n\ndef list_models():\n    return 1 / 0", "line 4: ZeroDivisionError: division by zero"),
        ("x = 1", "no function list_models()"),
        ("list_models = 3", "no function list_models()"),
        ("def list_models(): return None", "list_models() gave NoneType"),
        ("def list_models(): return [{'name': 'x'}]", "list_models()[0] is of type dict, allowed is CustomModel"),
        ("raise SystemExit('no checkout')", "line 1: SystemExit: no checkout"),
        ("import os, sys\nsys.stderr.write('last words\\n')\nsys.stderr.flush()\nos._exit(7)", "exit code 7"),
        ("import os\nos.write(2, b'last words')\nos._exit(7)", 'printed: "last words"'),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "exit code 137"),
        ("import sys\nsys.stderr.write('why\\n')\nraise ValueError('a\\nb')", 'a b; the last line it printed: "why"'),
        ("raise BaseException('\\ud800')", "BaseException"),
        (PLAIN.rstrip() + " + [CustomModel(name=open)]", "list_models()[2].name is of type"),
        ("import itertools\n" + PLAIN.replace("return", "return itertools.cycle(") + ")", "more than 100,000"),
        (PLAIN.rstrip() + " + [CustomModel(name='n', args='x' * 20_000_000)]", "bytes"),
    ],
)  # fmt: skip
def test_a_broken_script_says_what_broke(code: str, words: str, tmp_path: Path) -> None:
    script = tmp_path / "scripts" / "gen" / "get_models_json.py"
    script.parent.mkdir(parents=True)
    script.write_text(code)
    with pytest.raises(DiscoveryError) as caught:
        runner(tmp_path).list_models(script)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_a_broken_script_does_not_hide_the_other_cards(tmp_path: Path) -> None:
    write_cards(tmp_path, [card("x")])
    write_script(tmp_path, PLAIN, "good")
    write_script(tmp_path, "import nowhere", "bad")
    catalog = discover(tmp_path)
    assert [item.name for item in catalog.cards] == ["x", "good/a", "good/b"]
    (problem,) = catalog.problems
    assert "scripts/bad/get_models_json.py" in problem.where


def test_a_hanging_script_is_ended_with_its_children_at_the_time_limit(tmp_path: Path) -> None:
    script = write_script(
        tmp_path, "import subprocess, sys\nsubprocess.run(['sleep', '60'])\ndef list_models(): return []"
    )
    began = time.monotonic()
    with pytest.raises(DiscoveryError, match=r"within 0.3 seconds.*MAD_DISCOVERY_TIMEOUT"):
        runner(tmp_path, 0.3).list_models(script)
    assert time.monotonic() - began < 5


def test_several_scripts_run_side_by_side(tmp_path: Path) -> None:
    meet = """
    import os, pathlib, time
    here = pathlib.Path(os.environ["MEETING"])
    (here / "{me}").touch()
    while not (here / "{other}").exists():
        time.sleep(0.01)
    def list_models(): return []
    """
    write_script(tmp_path, meet.format(me="a", other="b"), "a")
    write_script(tmp_path, meet.format(me="b", other="a"), "b")
    write_cards(tmp_path, [card("x")])
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    assert discover(tmp_path, environment={"MEETING": str(meeting), "MAD_DISCOVERY_TIMEOUT": "20"}).problems == ()


def test_a_broken_generated_card_is_named_and_the_others_are_listed(tmp_path: Path) -> None:
    write_script(tmp_path, PLAIN.rstrip() + " + [CustomModel('c', n_gpus='many'), CustomModel('../d')]")
    catalog = discover(tmp_path)
    assert [item.name for item in catalog.cards] == ["gen/a", "gen/b"]
    assert [problem.pointer for problem in catalog.problems] == ["/2/n_gpus", "/3/name"]


def test_fields_of_a_subclass_and_attributes_become_card_keys(tmp_path: Path) -> None:
    script = write_script(
        tmp_path,
        """
        from dataclasses import dataclass
        from pathlib import Path
        from madengine.utils.discover_models import CustomModel
        @dataclass
        class Mine(CustomModel):
            batch: int = 4
        def list_models():
            model = Mine(name="m")
            model.env_vars = {"A": "1"}
            model.checkout = Path("/x")
            model._private = 1
            return [model]
        """,
    )
    (model,) = runner(tmp_path).list_models(script).documents
    assert (model["batch"], model["env_vars"]) == (4, {"A": "1"})
    assert not {"checkout", "_private"} & set(model)


UPDATING = """
from madengine.utils.discover_models import CustomModel
class Lazy(CustomModel):
    def update_model(self):
        self.args = f"--updated {self.name}"
        if self.name == "gen/broken":
            raise RuntimeError("cannot update")
def list_models():
    return [Lazy(name="lazy"), CustomModel(name="plain"), Lazy(name="broken")]
"""


def test_update_model_is_called_for_the_named_models_only(tmp_path: Path) -> None:
    script = write_script(tmp_path, UPDATING)
    listed = runner(tmp_path).list_models(script)
    assert listed.updatable == {"lazy", "broken"}
    assert [model["args"] for model in listed.documents] == ["", "", ""]
    (model,) = runner(tmp_path).update_models(script, ["lazy"]).documents
    assert (model["name"], model["args"]) == ("lazy", "--updated gen/lazy")


def test_an_update_that_breaks_says_so(tmp_path: Path) -> None:
    script = write_script(tmp_path, UPDATING)
    with pytest.raises(DiscoveryError, match="RuntimeError: cannot update"):
        runner(tmp_path).update_models(script, ["broken"])
    with pytest.raises(DiscoveryError, match="no longer gives the model 'gone'"):
        runner(tmp_path).update_models(script, ["gone"])


@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan", "inf", "1e9"])
def test_a_time_limit_that_is_no_number_of_seconds_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="MAD_DISCOVERY_TIMEOUT"):
        ScriptRunner.from_environment(tmp_path, {"MAD_DISCOVERY_TIMEOUT": text})


def test_an_interpreter_that_cannot_be_started_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = write_script(tmp_path, PLAIN)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    with pytest.raises(DiscoveryError, match="exit code 127"):
        runner(tmp_path).list_models(script)
