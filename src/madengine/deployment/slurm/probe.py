"""A short step on a compute node that looks at what a run needs there: folders, madengine, a container engine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from madengine.deployment.base import Finding
from madengine.deployment.slurm.client import Ask, ask_program
from madengine.deployment.slurm.options import SlurmOptions

PATIENCE = 20  # seconds for a free node
LIMIT = 90.0  # seconds for the whole step
WHERE = "compute node"


@dataclass(frozen=True)
class ProbeContext:
    """What a node has to see. ``engine`` is empty when each node chooses one; ``archives`` is ``MAD_DOCKER_BUILDS``."""

    output_dir: Path
    package: Path
    madengine: str
    version: str
    engine: str = ""
    archives: str = ""


def probe_findings(options: SlurmOptions, context: ProbeContext, ask: Ask = ask_program) -> Iterator[Finding]:
    """Start one task on one node and judge its answers. A cluster without a free node is no problem, only unknown."""
    token = context.output_dir / f".probe-{os.getpid()}-{os.urandom(3).hex()}"
    try:
        context.output_dir.mkdir(parents=True, exist_ok=True)
        token.touch()
    except OSError as error:
        detail = f"{context.output_dir} cannot be written: {error.strerror}"
        yield Finding("output_dir", "problem", detail, "set slurm.output_dir to a folder on shared storage")
        return
    try:
        done = ask(_argv(options, context, token), None, LIMIT)
    finally:
        token.unlink(missing_ok=True)
    answers = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    if "host" not in answers:
        said = " ".join(done.stderr.split())[-200:] or f"srun exited {done.exit_code}"
        yield Finding(WHERE, "warning", f"no node was free to be looked at: {said}", "the job may start all the same")
        return
    yield from _judged(answers, context)


def _argv(options: SlurmOptions, context: ProbeContext, token: Path) -> list[str]:
    chosen = ("partition", "account", "qos", "reservation", "constraint", "exclude")
    given = [f"--{name}={value}" for name in chosen if (value := getattr(options, name))]
    first = [f"--nodelist={options.nodelist}"] if options.nodelist and options.nodes == 1 else []
    words = (token, context.output_dir, context.package, context.madengine, context.engine, context.archives)
    return [
        *("srun", f"--immediate={PATIENCE}", "--nodes=1", "--ntasks=1", "--time=2", "--job-name=madengine-probe"),
        *(*given, *first, "--chdir=/", "bash", "-c", _script(), "probe"),
        *map(str, words),
        *options.modules,
    ]


@cache
def _script() -> str:
    return (files("madengine.deployment") / "templates" / "slurm_probe.sh").read_text(encoding="utf-8")


def _asked(context: ProbeContext) -> list[str]:
    """What a node was asked to tell of."""
    named = ["output_dir", "output_dir_writable", "package", "madengine", "engine"]
    return [*named, "archives"] if context.archives else named


def _judged(answers: dict[str, str], context: ProbeContext) -> Iterator[Finding]:
    host = answers["host"]
    shared = "it has to be on storage that all nodes see"
    problems = {
        "output_dir": (answers.get("output_dir") != "seen", f"{context.output_dir} is another folder there", shared),
        "output_dir_writable": (
            answers.get("output_dir_writable") != "yes",
            f"{context.output_dir} cannot be written there",
            "check its permissions and how it is mounted",
        ),
        "package": (answers.get("package") != "seen", f"the package {context.package} is not there", shared),
        "madengine": (
            answers.get("madengine") == "missing",
            f"madengine is not there: neither {context.madengine} nor one on PATH",
            "install it on shared storage, or on every node, or load it by slurm.modules",
        ),
        "engine": (
            answers.get("engine") == "none",
            f"{context.engine} does not work there" if context.engine else "neither docker nor podman works there",
            "start it on the nodes, or run with --engine host",
        ),
        "archives": (
            answers.get("archives") == "missing",
            f"MAD_DOCKER_BUILDS ({context.archives}) is not there",
            shared,
        ),
    }
    bad = [(detail, remedy) for is_bad, detail, remedy in problems.values() if is_bad]
    for detail, remedy in bad:
        yield Finding(f"{WHERE} {host}", "problem", detail, remedy)
    told = answers.get("madengine", "missing")
    if told not in ("missing", f"madengine {context.version}"):
        detail = f"{told or 'madengine'} is there, and this is {context.version}"
        yield Finding(f"{WHERE} {host}", "problem", detail, "install the same version on the nodes")
    elif not bad and (silent := [name for name in _asked(context) if name not in answers]):
        yield Finding(
            f"{WHERE} {host}", "warning", f"it did not say anything of: {', '.join(silent)}", "look there by hand"
        )
    elif not bad:
        yield Finding(f"{WHERE} {host}", "ok", "sees the same folders and the same madengine")
