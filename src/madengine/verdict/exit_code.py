"""From outcomes to the exit code of a command.

The numbers are the contract of the command line (``madengine.cli.constants.ExitCode`` names them for its readers).
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

from madengine.verdict.evidence import Outcome, Verdict

SUCCESS = 0
UNEXPECTED = 1
BUILD_FAILURE = 2
RUN_FAILURE = 3
INVALID_ARGUMENTS = 4
NO_METRIC = 5
INTERRUPTED = 130

# A command ends with the worst of what it did, in this order; the numbers themselves say nothing about how bad it is.
WORST_FIRST = (INVALID_ARGUMENTS, BUILD_FAILURE, RUN_FAILURE, NO_METRIC, UNEXPECTED, SUCCESS)

# Outcome -> its own exit code, and the one under --strict.
OUTCOME_CODES = MappingProxyType(
    {
        Outcome.SKIPPED: (SUCCESS, SUCCESS),
        Outcome.SUCCESS: (SUCCESS, SUCCESS),
        Outcome.INCOMPLETE: (SUCCESS, RUN_FAILURE),
        Outcome.FAILURE: (RUN_FAILURE, RUN_FAILURE),
        Outcome.NO_METRIC: (NO_METRIC, NO_METRIC),
    }
)


def exit_code_for(
    verdicts: Sequence[Verdict],
    *,
    strict: bool,
    build_failed: bool = False,
    interrupted: bool = False,
    goes_on: bool = False,
) -> int:
    """The exit code of a command that ended with these verdicts.

    No verdict at all is never a success: nothing ran, so the run failed, unless a failed build explains it,
    and unless something ``goes_on`` without the command, which has no verdict yet.
    ``interrupted`` (Ctrl-C) outranks everything. A code that the table does not know counts as unexpected.
    """
    if interrupted:
        return INTERRUPTED
    codes = [verdict.strict_exit_code if strict else verdict.exit_code for verdict in verdicts]
    if build_failed:
        codes.append(BUILD_FAILURE)
    return worst_of(codes or [SUCCESS if goes_on else RUN_FAILURE])


def worst_of(codes: Sequence[int]) -> int:
    """The worst of several exit codes; at least one must be given."""
    return min((code if code in WORST_FIRST else UNEXPECTED for code in codes), key=WORST_FIRST.index)
