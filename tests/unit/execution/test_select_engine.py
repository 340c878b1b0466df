"""Which engine is chosen, and what is said about it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from madengine.core.errors import ConfigurationError
from madengine.execution.engine import ENGINES, ContainerEngine
from madengine.execution.host import HostEngine
from madengine.execution.select_engine import CONTAINERS, choose_engine, load_engine


class Probe(HostEngine):
    """An engine that works or says why not."""

    def __init__(self, name: str, problem: str | None) -> None:
        super().__init__()
        self.name = name
        self.needs_image = name != "host"
        self._problem = problem

    def problem(self) -> str | None:
        return self._problem

    def describe(self) -> str:
        return f"{self.name} 1.0"


def engines(**problems: str | None) -> Callable[[str], ContainerEngine]:
    return lambda name: Probe(name, problems[name])


def test_the_first_that_works_is_chosen_and_named() -> None:
    engine, sentence = choose_engine(environ={}, load=engines(docker=None))
    assert (engine.name, sentence) == ("docker", "engine: docker 1.0")


def test_the_next_is_chosen_without_a_word_about_the_first() -> None:
    engine, sentence = choose_engine(environ={}, load=engines(docker="not installed", podman=None))
    assert (engine.name, sentence) == ("podman", "engine: podman 1.0")


def test_falling_back_to_the_host_says_why() -> None:
    load = engines(docker="cannot connect", podman="not installed", host=None)
    engine, sentence = choose_engine(environ={}, load=load)
    assert engine.name == "host"
    assert sentence == (
        "no container engine works here (docker: cannot connect; podman: not installed); engine: host 1.0"
    )


def test_the_host_is_no_choice_where_only_containers_will_do() -> None:
    with pytest.raises(ConfigurationError, match=r"no engine works here \(docker: a; podman: b\)"):
        choose_engine(environ={}, load=engines(docker="a", podman="b", host=None), order=CONTAINERS)


def test_nothing_that_works_is_an_error_with_all_reasons() -> None:
    with pytest.raises(ConfigurationError, match=r"docker: a; podman: b; host: c"):
        choose_engine(environ={}, load=engines(docker="a", podman="b", host="c"))


@pytest.mark.parametrize(
    ("name", "environ", "expected"),
    [
        ("podman", {"MAD_CONTAINER_ENGINE": "docker"}, "engine: podman 1.0 (from --engine)"),
        (None, {"MAD_CONTAINER_ENGINE": "host"}, "engine: host 1.0 (from MAD_CONTAINER_ENGINE)"),
    ],
)
def test_what_was_asked_for_beats_what_works(name: str | None, environ: dict[str, str], expected: str) -> None:
    _, sentence = choose_engine(name, environ=environ, load=engines(docker=None, podman=None, host=None))
    assert sentence == expected


def test_an_engine_that_was_asked_for_is_not_replaced() -> None:
    with pytest.raises(ConfigurationError, match="podman cannot be used: not installed") as refused:
        choose_engine("podman", environ={}, load=engines(podman="not installed", docker=None))
    assert refused.value.where == "--engine"


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match="docker, podman, host"):
        load_engine("dokcer")


@pytest.mark.parametrize("name", ENGINES)
def test_every_engine_of_the_registry_can_be_loaded(name: str) -> None:
    assert load_engine(name).name == name
