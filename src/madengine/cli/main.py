"""The entry point of the command line.

Start-up is kept cheap on purpose: ``--version`` imports nothing, ``--help`` imports click and this file, and a command
imports what it needs when it is called. A test holds the list of modules that ``--help`` may import.
"""

from __future__ import annotations

import errno
import os
import sys

TYPE_CHECKING = False  # typing is not loaded: the less is loaded before main(), the less a Ctrl-C can hit there
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

    import click

    from madengine.core.interruptions import Interruptions


COMMANDS: dict[str, tuple[str, str]] = {
    "discover": ("madengine.cli.discover:discover", "List the model cards of a package."),
    "build": ("madengine.cli.build:build", "Build the images of the selected models and write a build manifest."),
    "run": ("madengine.cli.run:run", "Run models and say honestly what happened."),
    "collect": ("madengine.cli.collect:collect", "Finish the story of runs that were submitted before."),
    "cancel": ("madengine.cli.cancel:cancel", "End runs that were submitted before."),
    "validate": ("madengine.cli.validate:validate", "Check manifests, cards, contexts, env files and results."),
    "schema": ("madengine.cli.schema:schema", "Print one of the JSON Schemas that files are checked against."),
    "doctor": ("madengine.cli.doctor:doctor", "Say what works on this machine and what to do about the rest."),
}
"""Command name -> (module:attribute, one line of help), imported on use."""

HIDDEN: dict[str, str] = {"node": "madengine.cli.node:node"}
"""Commands that madengine's own job scripts give; ``--help`` does not show them."""

OUTPUT_LOST = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
"""What a full disk and a terminal that was closed answer to who writes to them."""

GONE = "the current directory is not there any more: go to another one"

EPILOG = """\b
Examples:
  madengine discover                            what does this package offer?
  madengine run --tags primes --engine host     run without a container
  madengine build --tags pyt --manifest-output build_manifest.json
  madengine run --manifest-file build_manifest.json
  madengine validate build_manifest.json        every problem, with its line

\b
Exit codes: 0 success, 1 unexpected, 2 a build failed, 3 a run failed,
4 invalid arguments or files (nothing was started), 5 nothing was measured, 130 interrupted.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code (see ``cli.constants.ExitCode``)."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words == ["--version"]:
        from madengine import __version__

        sys.stdout.write(f"madengine {__version__}\n")
        return 0
    from madengine.core.interruptions import raised_interruptions

    with raised_interruptions() as interruptions:
        return _guarded(words, interruptions)


def console() -> NoReturn:
    """What the installed ``madengine`` command calls: :func:`main`, then out.

    The interpreter is not torn down piece by piece: after ten thousand cards that alone would take as long as starting
    it. Nor does it look for garbage after every few hundred objects: what is imported and read stays until the end.
    """
    try:
        _prepared()
        code = main()
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:
                code = code or 1
    except KeyboardInterrupt:  # before main() listens, or while a reader takes its time over the last lines
        code = _interrupted()
    os._exit(code)


def _prepared() -> None:
    """What must be loaded before main() can listen, with signals held back: an import that is torn prints a traceback.

    One that came meanwhile is raised at the end, by Python's own handler. ``_signal`` is built into the interpreter
    and loaded already, while ``signal`` would be an import itself.
    """
    import _signal  # type: ignore[import-not-found]

    held = _signal.pthread_sigmask(_signal.SIG_BLOCK, (_signal.SIGINT,))
    try:
        import gc

        gc.set_threshold(100_000)
        if sys.argv[1:] != ["--version"]:  # which does not listen
            import madengine.core.interruptions  # noqa: F401
    finally:
        _signal.pthread_sigmask(_signal.SIG_SETMASK, held)


def _guarded(words: list[str], interruptions: Interruptions) -> int:
    """Run the click group and turn every error into a sentence and an exit code."""
    try:
        return _carried_out(words)
    except BaseException as error:
        interruptions.only_count()
        if interruptions.count or _stems_from_interruption(error):
            return _interrupted()
        if isinstance(error, Exception):
            return _explained(error)
        raise


def _carried_out(words: list[str]) -> int:
    from madengine.core.errors import ConfigurationError

    if not _has_folder():
        raise ConfigurationError(GONE)
    result = _group().main(words, prog_name="madengine", standalone_mode=False)
    sys.stdout.flush()
    return int(result or 0)


def _stems_from_interruption(error: BaseException | None) -> bool:
    """Also what was raised in answer to a Ctrl-C, such as click's ``Abort``."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _interrupted() -> int:
    from madengine.cli import views
    from madengine.cli.constants import ExitCode

    views.fail("interrupted")
    return ExitCode.INTERRUPTED


def _explained(error: Exception) -> int:
    """Say what went wrong in a sentence; returns the exit code that goes with it."""
    import click

    from madengine.cli import views
    from madengine.cli.constants import ExitCode
    from madengine.core.errors import MADEngineError

    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        sys.stdout.write(error.format_message() + "\n")
        return ExitCode.SUCCESS
    if isinstance(error, click.ClickException):
        _show_usage_error(error)
        return ExitCode.INVALID_ARGS
    if isinstance(error, MADEngineError):
        views.fail(str(error))
        return error.exit_code
    if isinstance(error, click.Abort):
        return _interrupted()
    if not (isinstance(error, OSError) and _explained_by_system(error)):
        _show_unexpected(error)
    return ExitCode.FAILURE


def _explained_by_system(error: OSError) -> bool:
    """What is no defect: output that nobody reads or that finds no room, a folder that somebody took away."""
    from madengine.cli import views

    if isinstance(error, BrokenPipeError):  # a reader such as head has seen enough
        views.silence(sys.stdout)
    elif error.errno in OUTPUT_LOST and error.filename is None:
        views.fail(f"the output cannot be written: {error.strerror}")
    elif isinstance(error, FileNotFoundError) and not _has_folder():
        views.fail(GONE)
    else:
        return False
    return True


def _has_folder() -> bool:
    """Whether the current directory still exists: somebody may have removed it, and then no path means anything."""
    try:
        return bool(os.getcwd())  # noqa: PTH109 - pathlib is not loaded for --help
    except FileNotFoundError:
        return False


def _show_usage_error(error: click.ClickException) -> None:
    from madengine.cli import views

    context = getattr(error, "ctx", None)
    if context is not None:
        views.say(context.get_usage())
        views.say(f"Try '{context.command_path} --help' for help.\n")
    views.fail(error.format_message())


def _show_unexpected(error: Exception) -> None:
    """A defect of the product: one line, and the traceback only for who asks for it (values may be secrets)."""
    from madengine.cli import views
    from madengine.core.redact import mask_text, secret_values

    secrets = secret_values(os.environ)
    if os.environ.get("MAD_DEBUG"):
        import traceback

        views.say(mask_text("".join(traceback.format_exception(error)), secrets))
    views.fail(
        mask_text(f"unexpected {type(error).__name__}: {error}", secrets)
        + " - this is a defect of madengine; set MAD_DEBUG=1 to see where it happened"
    )


def _group() -> click.Group:
    import click

    from madengine import __version__

    class LazyGroup(click.Group):
        """Knows its commands by name and imports one when it is called."""

        def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
            return list(COMMANDS)

        def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
            target = COMMANDS[cmd_name][0] if cmd_name in COMMANDS else HIDDEN.get(cmd_name)
            return _load(target) if target else None

        def resolve_command(
            self, ctx: click.Context, args: list[str]
        ) -> tuple[str | None, click.Command | None, list[str]]:
            if args and args[0] not in (*COMMANDS, *HIDDEN) and not args[0].startswith("-"):
                raise click.UsageError(_unknown_command(args[0]), ctx=ctx)
            return super().resolve_command(ctx, args)

        def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
            with formatter.section("Commands"):
                formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])

    @click.group(
        cls=LazyGroup,
        epilog=EPILOG,
        context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "MAD"},
    )
    @click.version_option(__version__, message="madengine %(version)s")
    def madengine() -> None:
        """Run AI model benchmarks and say honestly what happened."""

    return madengine


def _load(target: str) -> Any:
    from importlib import import_module

    module, attribute = target.split(":")
    return getattr(import_module(module), attribute)


def _unknown_command(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, COMMANDS, n=1)
    return f"no command named '{name}'" + (f" - did you mean '{close[0]}'?" if close else "")


if __name__ == "__main__":
    console()
