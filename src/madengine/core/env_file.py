"""An environment file (``mad.env``) is a bash script: it is sourced by bash, and what it changed is read back.

A parser is not enough: real files hold conditions, command substitutions, ``${X:-default}`` and variables that only
later lines use. So bash sources the file with ``set -a``, an empty standard input and a time limit. The environment
before and after travels through memory, not through the output, so that the file may print what it likes; and no
value is ever shown: bash's own messages may quote a line, they are masked.

The text is looked at first, see :mod:`madengine.core.env_text`: what would make bash do something else than the author
meant (an unfilled ``<FILL_...>`` is a redirection) is an error before anything is executed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from pathlib import Path

from madengine.core.env_text import check_text, masked_message, read_env_text
from madengine.core.errors import ConfigurationError

DEFAULT_TIMEOUT = 60.0
"""Seconds. A token may be read from slow shared storage; whoever waits longer waits for input."""

_OF_THE_SHELL = frozenset({"_", "PWD", "OLDPWD", "SHLVL", "OPTIND", "SHELLOPTS", "BASHOPTS"})
_FIRST_DESCRIPTOR = 200  # below it the file itself, and bash, may use any

# $0 is the file: so bash's messages name it, and the file sees no arguments. A last empty record says that the end
# was reached: a file that calls `exit 0` never gets there.
_SCRIPT = """
__madengine_environment() {{
    local name
    while IFS= builtin read -r name; do builtin printf '%s=%s\\0' "$name" "${{!name}}"; done < <(builtin compgen -e)
    builtin printf '\\0'
}}
__madengine_environment >&{before}
builtin set -a
builtin source "$0" 1>&2
{{ builtin set -- "$?"; builtin set +aeux; }} 2>/dev/null
(( $1 == 0 )) || builtin exit "$1"
__madengine_environment >&{after}
"""


def load_env_file(
    env_file: str | os.PathLike[str],
    base_dir: str | os.PathLike[str] | None = None,
    *,
    timeout: float = DEFAULT_TIMEOUT,
    environment: Mapping[str, str] | None = None,
    notice: Callable[[str], None] | None = None,
) -> dict[str, str]:
    """Sources an environment file and returns the variables that it adds or changes (name -> value).

    A relative ``env_file`` lies in ``base_dir`` (None: the current folder). ``environment`` is what the file inherits
    (None: this process's own). ``timeout`` is in seconds. ``notice`` is called with what the file printed, secrets
    masked (None: it goes to standard error). Functions, and what the shell itself keeps (``PWD``, ``SHLVL``...), are
    left out; that the file unsets a variable is not told.

    Raises :class:`ConfigurationError`, naming the resolved path, when the file is missing, no regular text file, not
    filled in, has Windows line ends or a syntax error, ends with another status than 0, or does not end in time.
    """
    path = env_file_path(env_file, base_dir)
    text = read_env_text(path)
    check_text(text, path)
    inherited = dict(os.environ if environment is None else environment)
    changed, messages = _source(path, text, inherited, timeout)
    if messages:
        tell = notice or _to_standard_error
        tell(masked_message(messages, text, {**inherited, **changed}))
    return changed


def apply_env_file(
    env_file: str | os.PathLike[str],
    base_dir: str | os.PathLike[str] | None = None,
    *,
    timeout: float = DEFAULT_TIMEOUT,
    environment: MutableMapping[str, str] | None = None,
    notice: Callable[[str], None] | None = None,
) -> dict[str, str]:
    """As :func:`load_env_file`, and puts what it returns into ``environment`` (None: ``os.environ``)."""
    target = os.environ if environment is None else environment
    changed = load_env_file(env_file, base_dir, timeout=timeout, environment=target, notice=notice)
    target.update(changed)
    return changed


def env_file_path(env_file: str | os.PathLike[str], base_dir: str | os.PathLike[str] | None) -> Path:
    """The absolute path of an env file: ``~`` is expanded, a relative one is relative to ``base_dir`` (else to here).

    Raises ``ConfigurationError`` for what names no file.
    """
    if not os.fspath(env_file) or "\0" in os.fspath(env_file):
        raise ConfigurationError("env_file names no file", hint="give the path of a shell file, or leave it out")
    base = Path.cwd() if base_dir is None else Path(base_dir).absolute()
    return Path(os.path.normpath(base / Path(env_file).expanduser()))


def _source(path: Path, text: str, inherited: Mapping[str, str], timeout: float) -> tuple[dict[str, str], str]:
    """Runs bash; returns what has changed, and what was printed."""
    from madengine.core.process import NOT_FOUND, run

    with _memory() as before, _memory() as after:
        script = _SCRIPT.format(before=before, after=after)
        argv = ["bash", "--noprofile", "--norc", "-c", script, str(path)]
        done = run(argv, timeout=timeout, env=inherited, pass_fds=(before, after))
        old, new = _records(before), _records(after)
    if done.exit_code == NOT_FOUND and old is None:
        raise ConfigurationError("bash is needed to read the env_file, and it is not there", where=str(path))
    if done.timed_out:
        raise _failed(path, f"did not end within {timeout:g} seconds", "does it wait for input, or for a network?")
    said = masked_message(done.stderr, text, inherited)
    if done.exit_code != 0:
        raise _failed(path, f"ended with status {done.exit_code}{_reason(said)}", _hint(said))
    if old is None or new is None:
        raise _failed(path, f"left the shell before its end{_reason(said)}", "take out its `exit` or `exec`")
    return {name: new[name] for name in new if _is_change(name, old, new)}, done.stderr


def _is_change(name: str, old: Mapping[str, str], new: Mapping[str, str]) -> bool:
    return name not in _OF_THE_SHELL and not name.startswith("BASH_FUNC_") and old.get(name) != new[name]


def _failed(path: Path, what: str, hint: str) -> ConfigurationError:
    return ConfigurationError(f"the env_file {what}", where=str(path), hint=hint)


def _reason(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return f": {'; '.join(lines)[:2000]}" if lines else ""


def _hint(said: str) -> str:
    if "syntax error" in said or "unexpected EOF" in said:
        return "correct its syntax; `bash -n FILE` checks it"
    return "its last command decides the status; end the file with `true` when that one may fail"


@contextmanager
def _memory() -> Iterator[int]:
    """A file in memory, under a descriptor that nobody uses by habit."""
    import fcntl

    low = os.memfd_create("madengine-environment")
    try:
        high = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, _FIRST_DESCRIPTOR)
    finally:
        os.close(low)
    try:
        yield high
    finally:
        os.close(high)


def _records(descriptor: int) -> dict[str, str] | None:
    """The variables that bash wrote; None when it did not get to the end."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    with os.fdopen(descriptor, "rb", closefd=False) as file:
        content = file.read()
    if not content.endswith(b"\0\0") and content != b"\0":
        return None
    pairs = (record.partition(b"=") for record in content.split(b"\0") if record)
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}


def _to_standard_error(text: str) -> None:
    sys.stderr.write(text if text.endswith("\n") else f"{text}\n")
