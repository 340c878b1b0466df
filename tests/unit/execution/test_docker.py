"""The adapter's dealings with the client program, which is a script here that answers as a client would."""

from __future__ import annotations

from pathlib import Path

import pytest

from madengine.core.errors import BuildError, ExecutionError
from madengine.core.process import Completed
from madengine.execution import docker_words
from madengine.execution.docker import CommandEngine, LastLine, engine_words
from madengine.execution.engine import BuildRequest, ContainerRequest

CLIENT = """#!/bin/sh
printf '%s\\0' "$@" >>"$HEARD/words"
printf '\\n' >>"$HEARD/words"
env >"$HEARD/environment"
case " $* " in
    *" --cidfile "*) [ -n "$ID" ] && { for w in "$@"; do [ "$p" = --cidfile ] && printf %s "$ID" >"$w"; p=$w; done; } ;;
esac
[ -n "$ERROR" ] && printf '%s\\n' "$ERROR" >&2
[ -n "$ANSWER" ] && printf '%s\\n' "$ANSWER"
exit ${CODE:-0}
"""


class Client:
    """The client program: what it answers, and what it was asked."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self._folder, self._patch = folder, patch
        for program in ("docker", "podman"):
            (folder / program).write_text(CLIENT)
            (folder / program).chmod(0o755)
        patch.setenv("PATH", f"{folder}:/usr/bin:/bin")
        patch.setenv("HEARD", str(folder))
        self.answers()

    def answers(self, answer: str = "", *, code: int = 0, error: str = "", identity: str = "") -> None:
        for name, value in {"ANSWER": answer, "CODE": str(code), "ERROR": error, "ID": identity}.items():
            self._patch.setenv(name, value)

    @property
    def calls(self) -> list[list[str]]:
        lines = (self._folder / "words").read_text().split("\n")
        return [line.split("\0")[:-1] for line in lines if line]

    @property
    def environment(self) -> dict[str, str]:
        lines = (self._folder / "environment").read_text().splitlines()
        return {name: value for name, _, value in (line.partition("=") for line in lines)}


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    return Client(tmp_path, monkeypatch)


@pytest.fixture
def engine() -> CommandEngine:
    return CommandEngine(docker_words.DOCKER)


def quiet(_: bytes) -> None:
    """Nobody listens."""


def test_an_engine_that_answers_has_no_problem(client: Client, engine: CommandEngine) -> None:
    client.answers("26.1.5")
    assert engine.problem() is None
    assert engine.describe() == "docker 26.1.5"


def test_an_engine_that_has_answered_once_is_not_asked_again(client: Client, engine: CommandEngine) -> None:
    client.answers(code=1, error="not yet")
    assert engine.problem() == "not yet"
    client.answers("26.1.5")
    assert [engine.problem(), engine.problem(), engine.describe()] == [None, None, "docker 26.1.5"]
    assert len(client.calls) == 2


def test_a_program_that_is_not_installed_says_so(engine: CommandEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert engine.problem() == "not installed"


def test_a_daemon_that_is_away_is_quoted(client: Client, engine: CommandEngine) -> None:
    client.answers(code=1, error="Cannot connect to the Docker daemon at unix:///x.\nSee 'docker run --help'.")
    assert engine.problem() == "Cannot connect to the Docker daemon at unix:///x."


def test_starting_hands_values_over_in_the_environment(client: Client, engine: CommandEngine, tmp_path: Path) -> None:
    client.answers("abc", identity="abc")
    container = engine.start(
        ContainerRequest("n", "img", tmp_path, {"A": "plain", "HOME": "carried"}, {"MAD_SECRETS_X": "hidden"})
    )
    assert container.name == "n"
    assert (client.environment["A"], client.environment["MAD_SECRETS_X"]) == ("plain", "hidden")
    assert client.environment["HOME"] != "carried"
    assert not any("hidden" in word for call in client.calls for word in call)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("docker: Error response from daemon: No such image: x:1.", "madengine build"),
        ("docker: Error response from daemon: Conflict. The name is already in use", "has not made"),
        ('docker: exec: "tail": executable file not found in $PATH: unknown.', "bash and coreutils"),
        ("docker: invalid argument", None),
    ],
)
def test_a_refusal_quotes_the_engine_and_says_what_to_do(
    client: Client, engine: CommandEngine, tmp_path: Path, text: str, hint: str | None
) -> None:
    client.answers(code=125, error=text)
    with pytest.raises(ExecutionError, match="125") as refused:
        engine.start(ContainerRequest("n", "x:1", tmp_path))
    assert text.removeprefix("docker: ").removeprefix("Error response from daemon: ") in refused.value.message
    assert (refused.value.hint or "").find(hint or "") >= 0


def test_what_was_made_but_did_not_start_is_removed_by_its_id(
    client: Client, engine: CommandEngine, tmp_path: Path
) -> None:
    client.answers(code=127, error="no", identity="f00")
    with pytest.raises(ExecutionError):
        engine.start(ContainerRequest("theirs", "x:1", tmp_path))
    assert client.calls[-1] == ["rm", "--force", "--volumes", "f00"]


def test_a_container_that_was_never_made_is_not_removed(client: Client, engine: CommandEngine, tmp_path: Path) -> None:
    client.answers(code=125, error="Conflict")
    with pytest.raises(ExecutionError):
        engine.start(ContainerRequest("theirs", "x:1", tmp_path))
    assert [call[0] for call in client.calls] == ["run"]


def test_a_removal_that_fails_is_an_error_and_a_missing_container_is_none(
    client: Client, engine: CommandEngine, tmp_path: Path
) -> None:
    client.answers("abc", identity="abc")
    container = engine.start(ContainerRequest("n", "x:1", tmp_path))
    client.answers(code=1, error="driver failed")
    with pytest.raises(ExecutionError, match="driver failed"):
        container.stop()
    client.answers(code=1, error="Error response from daemon: No such container: abc")
    container.stop()


def test_a_build_hands_secrets_over_in_the_environment(client: Client, engine: CommandEngine, tmp_path: Path) -> None:
    request = BuildRequest("t", tmp_path / "x", tmp_path, {"A": "1"}, {"MAD_SECRETS_X": "hidden"})
    engine.build(request, output=quiet)
    assert client.environment["MAD_SECRETS_X"] == "hidden"
    assert client.environment["DOCKER_BUILDKIT"] == "1"
    assert not any("hidden" in word for call in client.calls for word in call)


def test_a_build_that_fails_says_its_exit_code(client: Client, engine: CommandEngine, tmp_path: Path) -> None:
    client.answers(code=17)
    with pytest.raises(BuildError, match="exited 17"):
        engine.build(BuildRequest("t", tmp_path / "x", tmp_path), output=quiet)


def test_a_named_context_needs_a_builder_that_knows_it(client: Client, engine: CommandEngine, tmp_path: Path) -> None:
    client.answers(code=1)
    with pytest.raises(BuildError, match="named build context") as refused:
        engine.build(BuildRequest("t", tmp_path / "x", tmp_path, contexts={"tools": tmp_path}), output=quiet)
    assert "buildx" in (refused.value.hint or "")


@pytest.mark.parametrize("action", ["pull", "push"])
def test_a_transfer_that_fails_quotes_its_last_line(client: Client, engine: CommandEngine, action: str) -> None:
    client.answers("Trying...\nError response from daemon: manifest unknown", code=1)
    heard: list[bytes] = []
    with pytest.raises(BuildError, match=f"cannot {action} r/i: manifest unknown"):
        getattr(engine, action)("r/i", output=heard.append)
    assert b"Trying" in b"".join(heard)


def test_an_images_facts_are_its_id_and_environment(client: Client, engine: CommandEngine) -> None:
    client.answers('{"Id": "sha256:1", "Config": {"Env": ["A=b=c", "EMPTY="]}}')
    facts = engine.image_facts("i")
    assert facts is not None
    assert (facts.digest, facts.environment) == ("sha256:1", {"A": "b=c", "EMPTY": ""})


def test_an_engine_that_is_away_is_not_an_image_that_is_missing(client: Client, engine: CommandEngine) -> None:
    client.answers(code=1, error="Error: No such image: i")
    assert engine.image_facts("i") is None
    client.answers(code=1, error="Cannot connect to the Docker daemon")
    with pytest.raises(ExecutionError, match="Cannot connect"):
        engine.image_facts("i")


def test_an_archive_appears_whole_or_not_at_all(client: Client, engine: CommandEngine, tmp_path: Path) -> None:
    client.answers(code=1, error="no space left")
    with pytest.raises(BuildError, match="no space left"):
        engine.save("i", tmp_path / "out" / "i.tar")
    assert list((tmp_path / "out").iterdir()) == []


def test_tagging_and_loading_say_what_failed(client: Client, engine: CommandEngine, tmp_path: Path) -> None:
    engine.tag("a", "b")
    assert client.calls[-1] == ["tag", "--", "a", "b"]
    client.answers("bad archive", code=1)
    with pytest.raises(BuildError, match="bad archive"):
        engine.load(tmp_path / "x.tar", output=quiet)


def test_an_engine_without_words_is_told_by_its_exit_code() -> None:
    assert engine_words(Completed(("d",), 3, "", "", 0.0)) == "exited 3 without a word"
    assert engine_words(Completed(("d",), 124, "", "x", 0.0, timed_out=True)) == "x no answer in time"


def test_the_last_line_is_the_last_that_says_something() -> None:
    heard: list[bytes] = []
    last = LastLine(heard.append)
    last(b"one\ntw")
    last(b"o\n\n")
    assert (last.text(), b"".join(heard)) == ("two", b"one\ntwo\n\n")


def test_containers_are_told_with_their_run_directories(client: Client, engine: CommandEngine) -> None:
    client.answers('["/madengine-a", "/runs/a b"]\n["madengine-b", ""]')
    assert engine.containers() == {"madengine-a": Path("/runs/a b"), "madengine-b": Path()}
    listing, asking = client.calls
    assert listing == ["ps", "--all", "--quiet", "--filter", "label=madengine.run"]
    assert asking[0] == "inspect"


def test_without_containers_nothing_more_is_asked(client: Client, engine: CommandEngine) -> None:
    assert engine.containers() == {}
    assert len(client.calls) == 1


def test_an_engine_that_cannot_list_containers_says_why(client: Client, engine: CommandEngine) -> None:
    client.answers(code=1, error="no daemon")
    with pytest.raises(ExecutionError, match="docker cannot list containers: no daemon"):
        engine.containers()
