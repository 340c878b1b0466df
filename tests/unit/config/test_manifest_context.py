"""The part of a context that goes into a manifest."""

from __future__ import annotations

import json

from madengine.config.context import settings_of
from madengine.config.manifest_context import manifest_context, without_secrets

CANARY = "canary-secret-value"


def test_deployment_keys_stand_under_deployment_config() -> None:
    document = {
        "docker_gpus": "0,1",
        "tools": [{"name": "rocprof"}],
        "slurm": {"nodes": 2},
        "env_vars": {"A": "1"},
        "env_file": "mad.env",
        "deployment_config": {"debug": True, "env_vars": {"A": "0"}},
        "something_else": 1,
    }
    found = manifest_context(settings_of(document, {}), "AMD")
    assert found.context == {
        "docker_env_vars": {},
        "docker_mounts": {},
        "docker_build_arg": {},
        "docker_gpus": "0,1",
        "tools": [{"name": "rocprof"}],
        "something_else": 1,
        "gpu_vendor": "AMD",
        "guest_os": "UBUNTU",
    }
    assert found.deployment_config == {
        "debug": True,
        "env_vars": {"A": "1"},
        "env_file": "mad.env",
        "slurm": {"nodes": 2},
        "target": "slurm",
    }
    assert document["slurm"] == {"nodes": 2}


def test_a_vendor_that_is_not_known_is_not_written() -> None:
    assert "gpu_vendor" not in manifest_context(settings_of({}, {}), "").context


def test_variables_named_as_secrets_become_references_and_mad_secrets_stay_out() -> None:
    document = {
        "docker_env_vars": {"MAD_SECRETS_A": CANARY, "HF_TOKEN": CANARY, "GITHUB_PASSWORD": "$OTHER", "PLAIN": "x"}
        | {"DB_PASSWORD": f"{CANARY}$x"},
        "docker_build_arg": {"MAD_SECRETS_B": CANARY, "BASE_DOCKER": "x"},
        "env_vars": {"MAD_SECRETS_C": CANARY},
    }
    found = manifest_context(settings_of(document, {}), "AMD")
    assert found.context["docker_env_vars"] == {
        "HF_TOKEN": "${HF_TOKEN}",
        "GITHUB_PASSWORD": "$OTHER",
        "PLAIN": "x",
        "DB_PASSWORD": "${DB_PASSWORD}",
    }
    assert found.context["docker_build_arg"] == {"BASE_DOCKER": "x"}
    assert found.deployment_config["env_vars"] == {}
    assert found.secret_names == ("DB_PASSWORD", "HF_TOKEN", "MAD_SECRETS_A", "MAD_SECRETS_B", "MAD_SECRETS_C")
    assert any("export HF_TOKEN for the run" in note for note in found.notes)
    assert CANARY not in json.dumps([found.context, found.deployment_config, found.notes])


def test_the_value_of_a_known_secret_is_a_reference_wherever_it_stands() -> None:
    secrets = {"MAD_SECRETS_A": CANARY, "MAD_SECRETS_LONG": CANARY + "-more", "MAD_SECRETS_SHORT": "x"}
    document = {"a": [f"--token={CANARY}"], CANARY: {"b": f"{CANARY}-more"}, "n": 1, "x": "x"}
    assert without_secrets(document, secrets) == {
        "a": ["--token=${MAD_SECRETS_A}"],
        "${MAD_SECRETS_A}": {"b": "${MAD_SECRETS_LONG}"},
        "n": 1,
        "x": "x",
    }


def test_the_context_of_a_build_has_no_secret_of_the_environment() -> None:
    document = {"encapsulate_script": f"wrap {CANARY}", "env_vars": {"A": CANARY}}
    found = manifest_context(settings_of(document, {"MAD_SECRETS_A": CANARY}), "AMD")
    assert found.context["encapsulate_script"] == "wrap ${MAD_SECRETS_A}"
    assert found.deployment_config["env_vars"] == {"A": "${MAD_SECRETS_A}"}
