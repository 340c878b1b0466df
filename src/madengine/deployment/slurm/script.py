"""The job script and the nodes' script of a run, rendered from templates; every value is quoted.

Directives stand in the script, so that what is submitted is what a dry run shows, and ``sbatch job.sh`` does it again.
sbatch reads their values as a shell does words, but for a backslash, which it takes away within single quotes, too
(seen on Slurm 22.05).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from madengine.core.shell import quote
from madengine.deployment.base import Rendering
from madengine.deployment.describe import PLAN, as_text, describe
from madengine.deployment.slurm.layout import JOB_LOG, JOB_SCRIPT, NODE_SCRIPT
from madengine.deployment.slurm.options import SlurmOptions
from madengine.execution.spec import RunSpec
from madengine.launchers.registry import drives_allocation

LEAD = 60  # seconds of notice before the time limit
SHORT_LEAD = 10
SHORT_JOB = 300  # seconds; a minute's notice would be a large part of a shorter job
DEFAULT_PORT = 29500
BACKSLASH = "\\"
_PLACEHOLDER = re.compile(r"@([A-Z_]+)@")


@dataclass(frozen=True)
class Shape:
    """What a run's scripts depend on besides its options.

    ``reporters`` is the number of ranks that report: one where the model's own script drives the whole allocation.
    """

    nodes: int
    reporters: int
    processes: int
    master_port: int
    drives_allocation: bool

    @classmethod
    def of(cls, spec: RunSpec, options: SlurmOptions) -> Shape:
        """The shape of a planned run; what its launcher was told says how many processes a node has."""
        drives = drives_allocation(spec.launcher)
        told = spec.environment
        return cls(
            nodes=options.nodes,
            reporters=1 if drives else options.nodes,
            processes=int(told.get("NPROC_PER_NODE") or options.gpus_per_node or 1),
            master_port=int(told.get("MASTER_PORT") or DEFAULT_PORT),
            drives_allocation=drives,
        )


def render(spec: RunSpec, options: SlurmOptions, *, madengine: str) -> Rendering:
    """Both scripts, and the run in words. ``madengine`` is the submitting command's path."""
    plan = describe(spec)
    facts = {**plan.facts, **_facts(options)}
    values = _values(spec, options, Shape.of(spec, options), madengine)
    return Rendering(
        files={
            PLAN: as_text(facts),
            JOB_SCRIPT: _filled("slurm_job.sh", values),
            NODE_SCRIPT: _filled("slurm_node.sh", values),
        },
        facts=facts,
    )


def directives(spec: RunSpec, options: SlurmOptions) -> Iterator[str]:
    """The options of ``sbatch`` (see its manual page), one each."""
    yield _option("job-name", spec.run_id)
    yield _option("chdir", str(spec.run_dir))
    yield _option("output", str(spec.run_dir / JOB_LOG).replace("%", "%%"))
    yield "--open-mode=append"
    yield _option("nodes", str(options.nodes))
    yield "--ntasks-per-node=1"
    for name in ("partition", "account", "qos", "reservation", "nodelist", "exclude", "constraint", "time", "mem"):
        if value := getattr(options, name):
            yield _option(name, value)
    if options.gpus_per_node and not options.skip_gpus_directive:
        yield _option("gpus-per-node", str(options.gpus_per_node))
    if options.exclusive:
        yield "--exclusive"
    if options.requeue is not None:
        yield "--requeue" if options.requeue else "--no-requeue"
    for name in ("mail_user", "mail_type"):
        if value := getattr(options, name):
            yield _option(name.replace("_", "-"), value)
    yield f"--signal=B:TERM@{notice(options.time)}"


def notice(limit: str) -> int:
    """How many seconds before its time limit a job is told to end: Slurm's notice of a minute would be all of a short
    job."""
    seconds = limit_seconds(limit)
    return SHORT_LEAD if seconds is not None and seconds < SHORT_JOB else LEAD


def limit_seconds(limit: str) -> float | None:
    """A time limit as sbatch(1) reads it, in seconds; None for one without an end or that it would refuse.

    Forms: minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes, days-hours:minutes:seconds.
    """
    match = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", limit.strip())
    if match is None:
        return None
    days, *parts = match.groups()
    numbers = [int(part) for part in parts if part is not None]
    if days is not None:
        hours, minutes, seconds = (*numbers, 0, 0)[:3]
        return float(((int(days) * 24 + hours) * 60 + minutes) * 60 + seconds)
    if len(numbers) == 3:
        return float((numbers[0] * 60 + numbers[1]) * 60 + numbers[2])
    return float(numbers[0] * 60 + (numbers[1] if len(numbers) == 2 else 0)) or None  # 0 asks for no limit


def _option(name: str, value: str) -> str:
    return f"--{name}={quote(value.replace(BACKSLASH, BACKSLASH * 2))}"


def _values(spec: RunSpec, options: SlurmOptions, shape: Shape, madengine: str) -> Mapping[str, str]:
    return {
        "DIRECTIVES": "\n".join(f"#SBATCH {option}" for option in directives(spec, options)),
        "RUN_DIR": quote(str(spec.run_dir)),
        "RUN_ID": quote(spec.run_id),
        "MADENGINE": quote(madengine),
        "NODES": str(shape.nodes),
        "GPUS_PER_NODE": str(options.gpus_per_node),
        "PROCESSES": str(shape.processes),
        "MASTER_PORT": str(shape.master_port),
        "KILL_ON_BAD_EXIT": str(int(options.kill_on_bad_exit)),
        "DRIVES_ALLOCATION": str(int(shape.drives_allocation)),
        "HAS_IMAGE": str(int(bool(spec.image.docker_image))),
        "MODULES": " ".join(quote(module) for module in options.modules),
    }


def _filled(template: str, values: Mapping[str, str]) -> str:
    """A template with its placeholders filled, in one pass: what a value holds is never taken for a placeholder."""
    return _PLACEHOLDER.sub(lambda match: values[match.group(1)], _template(template))


@cache
def _template(name: str) -> str:
    return (files("madengine.deployment") / "templates" / name).read_text(encoding="utf-8")


def _facts(options: SlurmOptions) -> dict[str, object]:
    """What the job asks for and which variables presets give, each with its origin."""
    asked = [f"{name}={_shown(getattr(options, name))} ({origin})" for name, origin in _origins(options, env=False)]
    variables = [f"{name}={options.environment[name]} ({origin})" for name, origin in _origins(options, env=True)]
    return {"slurm": asked, "preset_variables": variables}


def _origins(options: SlurmOptions, *, env: bool) -> Iterator[tuple[str, str]]:
    for key, origin in options.origins.items():
        if key.startswith("env:") == env:
            yield key.removeprefix("env:"), origin


def _shown(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
