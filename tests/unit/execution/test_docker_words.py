"""The words that docker and podman are given."""

from __future__ import annotations

import csv
import io
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hostile import HOSTILE

from madengine.core.errors import ConfigurationError
from madengine.execution.client_environment import CARRIER, is_stated, is_the_clients, passing
from madengine.execution.docker_words import (
    DOCKER,
    PODMAN,
    build_words,
    csv_record,
    device_groups,
    exec_words,
    run_words,
    sets_user,
)
from madengine.execution.engine import BuildRequest, ContainerRequest, Mount

CID = Path("/tmp/id")


def request(**fields: object) -> ContainerRequest:
    defaults = {"name": "n", "image": "img:1", "workspace": Path("/w")}
    return ContainerRequest(**{**defaults, **fields})  # type: ignore[arg-type]


def after(words: list[str], option: str) -> list[str]:
    return [words[index + 1] for index, word in enumerate(words[:-1]) if word == option]


def test_a_container_waits_for_commands_and_never_pulls() -> None:
    words = run_words(DOCKER, request(), (), CID)
    assert words[:4] == ["run", "--pull", "never", "--detach"]
    assert words[words.index("--") :] == ["--", "img:1", "-f", "/dev/null"]
    assert after(words, "--entrypoint") == ["tail"]
    assert "--init" in words


def test_the_workspace_is_mounted_and_is_the_working_directory() -> None:
    words = run_words(DOCKER, request(mounts=(Mount(Path("/d"), "/data", read_only=True),)), (), CID)
    assert after(words, "--mount") == [
        "type=bind,source=/w,target=/myworkspace",
        "type=bind,source=/d,target=/data,readonly",
    ]
    assert after(words, "--workdir") == ["/myworkspace"]


def test_the_users_options_cannot_take_our_place() -> None:
    words = run_words(DOCKER, request(options=("--name", "theirs", "--entrypoint", "sh")), (), CID)
    assert after(words, "--name")[-1] == "n"
    assert after(words, "--entrypoint")[-1] == "tail"


@pytest.mark.parametrize("image", ["-v/:/host", "--privileged", "$(id)", "a b"])
def test_an_image_name_is_never_an_option(image: str) -> None:
    words = run_words(DOCKER, request(image=image), (), CID)
    assert words[words.index("--") + 1] == image


def test_no_value_of_a_variable_is_a_word() -> None:
    variables = {"A": "secret-a", "HOME": "secret-home", "DOCKER_HOST": "secret-host"}
    sorted_out = passing(variables)
    words = run_words(DOCKER, request(environment=variables), sorted_out.names, CID)
    words += exec_words("id", ["x"], cwd="/", user="", names=sorted_out.names, settings={})
    assert not any("secret" in word for word in words)
    assert {"A", CARRIER + "HOME", CARRIER + "DOCKER_HOST"} <= set(after(words, "--env"))


def test_nvidia_devices_are_one_quoted_value() -> None:
    assert after(run_words(DOCKER, request(gpus="0,2"), (), CID), "--gpus") == ['"device=0,2"']
    assert after(run_words(PODMAN, request(gpus="0,2"), (), CID), "--device") == [
        "nvidia.com/gpu=0",
        "nvidia.com/gpu=2",
    ]


def test_cpus_user_labels_and_devices_are_handed_on(tmp_path: Path) -> None:
    words = run_words(DOCKER, request(cpus="0-3", user="5:6", labels={"a": "b c"}, devices=(str(tmp_path),)), (), CID)
    assert after(words, "--cpuset-cpus") == ["0-3"]
    assert after(words, "--user") == ["5:6"]
    assert after(words, "--label") == ["a=b c"]
    assert after(words, "--device") == [str(tmp_path)]


def test_a_user_joins_the_groups_of_the_devices(tmp_path: Path) -> None:

    device = tmp_path / "renderD128"
    device.touch()
    if os.getuid() == 0:
        os.chown(device, 0, 4711)
        assert device_groups([f"{device}:/dev/x:rw", "/dev/not-there"]) == ["4711"]
    else:
        assert device_groups([str(device)]) == [str(os.getgid())]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), False),
        (("--user", "root"), True),
        (("--user=root",), True),
        (("-u", "0"), True),
        (("-uroot",), True),
        (("--userns=host",), False),
        (("--ulimit", "x"), False),
    ],
)
def test_options_that_choose_the_user_are_seen(options: tuple[str, ...], expected: bool) -> None:
    assert sets_user(options) is expected


def test_a_build_names_its_arguments_and_secrets_without_values() -> None:
    wanted = BuildRequest(
        tag="t",
        dockerfile=Path("/d/x.Dockerfile"),
        context=Path("/d"),
        build_args={"A": "hidden-a", "HTTP_PROXY": "http://u:hidden@h", "PATH": "/shown"},
        secrets={"MAD_SECRETS_T": "hidden-t"},
        contexts={"tools": Path("/d/common")},
        pull=True,
        no_cache=True,
    )
    words = build_words(DOCKER, wanted, buildkit=True)
    assert after(words, "--build-arg") == ["A", "HTTP_PROXY", "PATH=/shown", "MAD_SECRETS_T"]
    assert after(words, "--secret") == ['"id=MAD_SECRETS_T","env=MAD_SECRETS_T"'.replace('"', "")]
    assert after(words, "--build-context") == ["tools=/d/common"]
    assert after(words, "--network") == ["host"]
    assert {"--pull", "--no-cache"} <= set(words)
    assert words[-1] == "/d"
    assert not any("hidden" in word for word in words)


def test_the_old_builder_and_podman_are_spared_what_they_do_not_know() -> None:
    wanted = BuildRequest("t", Path("/d/x"), Path("/d"), secrets={"S": "v"})
    assert "--secret" not in build_words(DOCKER, wanted, buildkit=False)
    assert "--progress" not in build_words(PODMAN, wanted, buildkit=True)


@given(st.lists(st.text(st.characters(exclude_characters="\0"), min_size=1), min_size=1, max_size=4))
def test_a_csv_record_reads_back_as_its_fields(fields: list[str]) -> None:
    plain = [re.sub(r"[\r\n]+", "\n", field) for field in fields]
    assert next(csv.reader(io.StringIO(csv_record(*plain), newline=""))) == plain


@pytest.mark.parametrize("text", HOSTILE[::7])
def test_a_hostile_path_stays_one_field_of_a_mount(text: str) -> None:
    words = run_words(DOCKER, request(workspace=Path("/w") / text.lstrip("/")), (), CID)
    record = after(words, "--mount")[0]
    fields = next(csv.reader(io.StringIO(record, newline=""), strict=True))
    assert fields[0] == "type=bind"
    assert fields[2] == "target=/myworkspace"


@pytest.mark.parametrize(
    "name",
    ["HOME", "PATH", "DOCKER_HOST", "http_proxy", "HTTPS_PROXY", "LD_PRELOAD", "XDG_RUNTIME_DIR", "GODEBUG", "LANG"],
)
def test_what_the_client_reads_itself_is_carried(name: str) -> None:
    assert is_the_clients(name)
    sorted_out = passing({name: "v", "A": "w"})
    assert sorted_out.plain == {"A": "w"}
    assert sorted_out.renames == (name, CARRIER + name)
    assert sorted_out.client({"PATH": "/bin", "HOME": "/me"}) == {
        "PATH": "/bin",
        "HOME": "/me",
        "A": "w",
        CARRIER + name: "v",
    }


@pytest.mark.parametrize("name", ["MAD_MODEL_NAME", "HF_HOME", "NCCL_DEBUG", "PYTHONPATH", "HOMEPAGE", "GOOGLE_X"])
def test_other_variables_keep_their_names(name: str) -> None:
    assert not is_the_clients(name)


def test_a_proxy_of_a_build_is_not_stated() -> None:
    assert not is_stated("HTTPS_PROXY")
    assert is_stated("DOCKER_CONFIG")


@pytest.mark.parametrize(("name", "value"), [("", "x"), ("A=B", "x"), ("A\0", "x"), ("A", "x\0"), ("A*", "x")])
def test_what_can_be_no_variable_is_an_error(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError):
        passing({name: value})
