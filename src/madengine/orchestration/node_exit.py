"""The exit code that a node's madengine ends with: what stands in the node's marker when nothing else is left."""

from __future__ import annotations

from madengine.verdict.evidence import Evidence, Interruption, InterruptionKind, NodeReport, Outcome, Verdict

CLEAN = 0
FAILED = 1
INVALID = 4
NO_METRIC = 5
TIMED_OUT = 124
CANNOT_RUN = 125  # what docker run(1) says when the engine itself failed
KILLED = 137
TERMINATED = 143


def node_exit_code(evidence: Evidence, verdict: Verdict, *, terminated: bool = False, prepared: bool = True) -> int:
    """The code of one rank.

    Ours come first: 143 when we were told to end (``terminated``), 124 at the time limit, 125 for what the engine could
    not do, 4 for what was refused before an engine was asked (``prepared`` False). Then the script's own, except 5,
    which means "clean, and measured nothing" in a marker. A clean script without a measurement is 5, since on several
    nodes one rank measures for all.
    """
    ours = _interrupted(evidence.interruption, terminated, prepared)
    if ours:
        return ours
    scripts = next((code for code in map(_script_code, evidence.nodes) if code), CLEAN)
    return scripts or (CLEAN if verdict.outcome in _MEASURED else FAILED if evidence.troubles else NO_METRIC)


_MEASURED = (Outcome.SUCCESS, Outcome.INCOMPLETE, Outcome.SKIPPED)


def _interrupted(interruption: Interruption | None, terminated: bool, prepared: bool) -> int:
    if terminated:
        return TERMINATED
    if interruption is None:
        return CLEAN
    refused = CANNOT_RUN if prepared else INVALID
    return {InterruptionKind.TIMEOUT: TIMED_OUT, InterruptionKind.CANCELLED: TERMINATED}.get(interruption.kind, refused)


def _script_code(node: NodeReport) -> int:
    """The script's code as a shell would tell it; 0 for a clean script."""
    if node.exit_code is None:
        return FAILED
    code = node.exit_code if node.exit_code >= 0 else 128 - node.exit_code
    if code == NO_METRIC:
        return FAILED
    if code == CLEAN and node.out_of_memory:
        return KILLED
    return code if code <= 255 else FAILED
