"""Mounts, data, options of the container, rules for the log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from madengine.catalog.card import ModelCard
from madengine.config.data import DataSource
from madengine.core.errors import ConfigurationError
from madengine.execution.spec import LogScanRules
from madengine.orchestration.resources import (
    EngineOptions,
    bind_mounts,
    data_facts,
    data_mounts,
    data_sources,
    data_variables,
    engine_options,
    expected_results,
    log_rules,
)

TOKEN = "canary-7f3a9e"
ENVIRON = {"DIR": "/a b", "HF_TOKEN": TOKEN, "COPY": TOKEN}


def card(**fields: Any) -> ModelCard:
    return ModelCard({"name": "m", **fields})


def options(text: str, secrets: dict[str, str] | None = None) -> EngineOptions:
    return engine_options(card(additional_docker_run_options=text), ENVIRON, secrets or {})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ()),
        ("--privileged --shm-size 64G", ("--privileged", "--shm-size", "64G")),
        ("-v $DIR:/x", ("-v", "/a b:/x")),
        ("-v '${DIR}':/x", ("-v", "/a b:/x")),
        ("--label 'a b;c'", ("--label", "a b;c")),
        ("-e NAME", ("-e", "NAME")),
        ("-e A=1 --env B=$(id)", ("-e", "A=1", "--env", "B=$(id)")),
        ("-eA=1 --env=B=2", ("-eA=1", "--env=B=2")),
        ("-e HF_TOKEN", ("-e", "HF_TOKEN")),
        ("-e", ("-e",)),
    ],
)
def test_options_are_split_as_a_shell_would_and_then_expanded(text: str, words: tuple[str, ...]) -> None:
    assert options(text) == EngineOptions(words)


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("-e HF_TOKEN=${HF_TOKEN}", "HF_TOKEN", TOKEN),
        ("--env HF_TOKEN=x-literal", "HF_TOKEN", "x-literal"),
        ("--env=T=$HF_TOKEN", "T", TOKEN),
        ("-eT=$HF_TOKEN", "T", TOKEN),
        ("-e URL=https://$COPY@h", "URL", f"https://{TOKEN}@h"),
    ],
)
def test_a_variable_with_a_secret_leaves_the_command_line(text: str, name: str, value: str) -> None:
    found = options(f"--init {text} --rm", {"MAD_SECRETS_X": TOKEN})
    assert (found.words, found.secrets) == (("--init", "--rm"), {name: value})
    assert value not in repr(found)


@pytest.mark.parametrize("text", ["--label key=$HF_TOKEN", f"--label key={TOKEN}", "--add-host=$COPY:1"])
def test_another_option_with_a_secret_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(ConfigurationError, match="would show a secret in the process list") as refusal:
        options(text, {"MAD_SECRETS_X": TOKEN})
    assert TOKEN not in str(refusal.value)


def test_names_that_are_not_set_are_told_once() -> None:
    assert options("-v $GONE:/x -e A=${GONE}${AWAY}").unset == ("GONE", "AWAY")


def test_mounts_map_container_paths_to_host_paths(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (mount,) = bind_mounts({"/data": "${ROOT}/d"}, {"ROOT": str(tmp_path)})
    assert (mount.source, mount.target, mount.read_only) == ((tmp_path / "d").resolve(), "/data", False)


def test_a_tilde_is_the_users_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert bind_mounts({"/h": "~"}, {})[0].source == tmp_path.resolve()


@pytest.mark.parametrize("source", ["/not/there", "~nobody-of-that-name/x", "/" + "x" * 5000, "/a\0b", ""])
def test_a_host_path_that_is_not_there_is_refused_with_both_paths(source: str) -> None:
    with pytest.raises(ConfigurationError, match="does not exist here") as refusal:
        bind_mounts({"/data": source}, {})
    assert "/data" in str(refusal.value)


def test_a_mount_of_what_is_left_of_a_path_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"\$\{SHARED\}/, and SHARED is not set here"):
        bind_mounts({"/data": "${SHARED}/"}, {})


LOCAL = DataSource("a", "local", Path("/here"), "/data_dlm_0")
REMOTE = DataSource("hub")


@pytest.mark.parametrize(
    ("sources", "variables", "facts"),
    [
        ((), {}, {"dataname": "", "data_provider_type": ""}),
        ((REMOTE,), {"MAD_DATANAME": "hub"}, {"dataname": "hub", "data_provider_type": ""}),
        (
            (REMOTE, LOCAL),
            {"MAD_DATANAME": "hub,a", "MAD_DATAHOME": "/data_dlm_0"},
            {"dataname": "hub,a", "data_provider_type": "local"},
        ),
    ],
)
def test_data_is_named_and_its_place_is_told(
    sources: tuple[DataSource, ...], variables: dict[str, str], facts: dict[str, str]
) -> None:
    assert (data_variables(sources), data_facts(sources)) == (variables, facts)
    assert [mount.target for mount in data_mounts(sources)] == [s.home for s in sources if s.path]


def test_a_package_without_data_json_says_nothing_about_data() -> None:
    assert data_sources(card(data="huggingface"), None) == ()


@pytest.mark.parametrize(("own", "context", "expected"), [(3, 9, 3), (None, 9, 9), (None, None, None), (3, None, 3)])
def test_the_card_or_else_the_context_says_how_many_results(
    own: int | None, context: int | None, expected: int | None
) -> None:
    assert expected_results(card(expected_results=own), {"expected_results": context}) == expected


@pytest.mark.parametrize(
    ("own", "context", "rules"),
    [
        ({}, {}, LogScanRules()),
        ({"log_error_pattern_scan": False}, {"log_error_pattern_scan": True}, LogScanRules(enabled=False)),
        ({}, {"log_error_pattern_scan": False}, LogScanRules(enabled=False)),
        ({"log_error_pattern_scan": None}, {"log_error_pattern_scan": False}, LogScanRules(enabled=False)),
        ({"log_error_patterns": ["a"]}, {"log_error_patterns": ["b"]}, LogScanRules(patterns=("a",))),
        ({}, {"log_error_patterns": []}, LogScanRules(patterns=())),
        (
            {"log_error_benign_patterns": ["a"]},
            {"log_error_benign_patterns": ["b"]},
            LogScanRules(benign=("b", "a")),
        ),
    ],
)
def test_the_card_replaces_the_contexts_log_rules_and_adds_to_what_is_benign(
    own: dict[str, Any], context: dict[str, Any], rules: LogScanRules
) -> None:
    assert log_rules(card(**own), context) == rules
