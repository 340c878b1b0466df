"""The story of the runs of one command: submit, wait, collect, judge, record.

Each run's rows are written as soon as it is judged, so that whatever happens later takes nothing away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from madengine.core.errors import ConfigurationError
from madengine.core.interruptions import IMPATIENT, Interruptions
from madengine.deployment.base import Target
from madengine.execution.spec import RunSpec
from madengine.orchestration.flight import Flight
from madengine.orchestration.report import FinishedRun, Narrator, Recorder, RunReport
from madengine.verdict.evidence import Evidence, Interruption
from madengine.verdict.judge import judge

PATIENCE = 0.5  # seconds between two looks at the runs
GIVE_UP = IMPATIENT  # times Ctrl-C after which runs that do not end are left behind


def check_all(target: Target, specs: Sequence[RunSpec]) -> None:
    """Raise ``ConfigurationError`` with every problem that would make these runs fail; nothing was started."""
    problems = target.check(specs)
    if problems:
        lines = [f"{problem.message} ({problem.remedy})" if problem.remedy else problem.message for problem in problems]
        raise ConfigurationError(
            lines[0] if len(lines) == 1 else "\n  ".join([f"{len(lines)} things are in the way:", *lines])
        )


def run_all(
    specs: Sequence[RunSpec],
    target: Target,
    recorder: Recorder,
    narrator: Narrator,
    interruptions: Interruptions,
    *,
    in_flight: int = 1,
) -> RunReport:
    """Run the specs, begun in their order, up to ``in_flight`` of them at a time.

    The caller counts ``interruptions``: one ends the runs that are under way, which are recorded, and leaves the rest
    untouched.
    """
    flight = Flight(specs, target, recorder, narrator)
    while True:
        while not interruptions.count and flight.under_way < in_flight and flight.begin():
            pass
        if not flight.under_way:
            return flight.report(interrupted=interruptions.count > 0)
        flight.look(PATIENCE)
        if interruptions.count:
            flight.cancel()
        if interruptions.impatience >= GIVE_UP:
            flight.leave()


def submit_all(
    specs: Sequence[RunSpec],
    target: Target,
    recorder: Recorder,
    narrator: Narrator,
    interruptions: Interruptions,
    *,
    in_flight: int,
) -> RunReport:
    """Submit the specs and leave them to a remote target, which is told to run ``in_flight`` of them at a time.

    Each begins after the one that is ``in_flight`` before it among those that go on. What cannot be submitted is
    recorded at once. An interruption ends the submitting; what was submitted stays.
    """
    flight = Flight(specs, target, recorder, narrator)
    while not interruptions.count and flight.begin(behind=in_flight):
        flight.look(0.0)
    flight.leave()
    return flight.report(interrupted=interruptions.count > 0)


def record_broken_off(
    specs: Sequence[RunSpec], fates: Mapping[str, Interruption], recorder: Recorder, narrator: Narrator
) -> RunReport:
    """What is left when the builds before the runs were interrupted: nothing runs.

    ``fates`` are, by key, the models whose build came to a bad end, by the interruption or before it. They leave rows;
    the others were not started.
    """
    finished: list[FinishedRun] = []
    for number, spec in enumerate(specs, start=1):
        if spec.key in fates:
            recorder.opened(spec)
            evidence = Evidence(spec.run_id, interruption=fates[spec.key])
            finished.append(recorder.closed(spec, evidence, judge(evidence)))
            narrator.ended(number, len(specs), finished[-1])
    rest = dict.fromkeys(spec.card.name for spec in specs if spec.key not in fates)
    return RunReport(tuple(finished), tuple(rest), interrupted=True)
