"""``cancelled.json``: that a run was ended by one of us, and why. Slurm would only say "CANCELLED by" a number."""

from __future__ import annotations

import getpass
import json
import os
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path

from madengine.core.documents import load_json
from madengine.core.errors import MADEngineError
from madengine.core.files import write_atomic
from madengine.deployment.slurm.layout import CANCELLED
from madengine.verdict.evidence import Interruption, InterruptionKind


def note_cancellation(run_dir: Path, interruption: Interruption) -> None:
    """Write it down; the first reason stands. Raises ``MADEngineError`` when it cannot be written."""
    if read_cancellation(run_dir) is None:
        document = {"kind": interruption.kind.value, "detail": interruption.detail}
        write_atomic(run_dir / CANCELLED, json.dumps(document, indent=1) + "\n")


def read_cancellation(run_dir: Path) -> Interruption | None:
    """Why one of us ended the run, None when nobody did."""
    if not os.path.lexists(run_dir / CANCELLED):
        return None
    with suppress(MADEngineError, KeyError, TypeError, ValueError):
        document = load_json(run_dir / CANCELLED, what="note of a cancellation")
        return Interruption(InterruptionKind(document["kind"]), str(document["detail"]))
    return Interruption(InterruptionKind.CANCELLED, "")


def by_this_user() -> Interruption:
    """A cancellation by the person who gives this command."""
    moment = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return Interruption(InterruptionKind.CANCELLED, f"cancelled by {_user()} on {os.uname().nodename} at {moment}")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"
