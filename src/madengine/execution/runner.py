"""One model, once: prepare its workspace, start its container, run its scripts in order, gather what was seen.

It hands back evidence and never decides success. What goes wrong after the model's script has ended takes no
measurement away: a post-script that fails is a trouble that the verdict names, a container that cannot be removed a
note.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Protocol

from madengine.core.errors import ConfigurationError, ExecutionError
from madengine.core.files import remove_tree, safe_name
from madengine.core.redact import Redactor, secret_values
from madengine.core.redact_values import without_secrets_in
from madengine.core.shell import split_words
from madengine.execution import devices
from madengine.execution.docker_words import WORKSPACE, sets_user
from madengine.execution.engine import Container, ContainerEngine, ContainerRequest, ExecResult
from madengine.execution.readings import OUTPUT_VARIABLE, Readings
from madengine.execution.runlog import recording
from madengine.execution.spec import HookScript, RunSpec
from madengine.execution.workspace import Workspace, open_to_everyone, prepare
from madengine.reporting.freshness import is_bare_name
from madengine.verdict.evidence import Evidence, Interruption, InterruptionKind, NodeReport

HOOK_LIMIT = 1800.0  # seconds for all post-scripts, and for pre-scripts of a run without a time limit
PYTHON_SUFFIX = ".py"


class Observer(Protocol):
    """Watches a run."""

    def phase(self, name: str) -> None:
        """What begins: ``workspace``, ``container``, ``pre-script X``, ``model``, ``post-script X``, ``results``."""

    def output(self, data: bytes) -> None:
        """Output of a script, redacted."""

    def note(self, text: str) -> None:
        """A remark for people."""


def run_model(spec: RunSpec, engine: ContainerEngine, *, observer: Observer, cancel: threading.Event) -> Evidence:
    """Run one model to its end and tell what was seen. Setting ``cancel`` ends it."""
    if spec.skip:
        return Evidence(spec.run_id, skipped=spec.skip)
    if spec.refusal:
        return _interrupted(spec, InterruptionKind.REFUSED, spec.refusal)
    if cancel.is_set():
        return _interrupted(spec, InterruptionKind.CANCELLED, "cancelled before it began")
    run = _Run(spec, engine, observer, cancel)
    try:
        run.prepare()
    except (ExecutionError, ConfigurationError) as error:
        run.abandon()
        return _interrupted(spec, InterruptionKind.REFUSED, run.redactor.text(str(error)), run.notes)
    try:
        run.work()
    finally:
        run.leave()
    return run.evidence()


class _Run:
    """The state of one run on its way from workspace to evidence."""

    def __init__(self, spec: RunSpec, engine: ContainerEngine, observer: Observer, cancel: threading.Event) -> None:
        self._spec, self._engine, self._observer, self._cancel = spec, engine, observer, cancel
        # Without a container the script has this process's environment, too.
        inherited = () if engine.needs_image else secret_values(os.environ)
        self.redactor = Redactor((*spec.hidden, *inherited))
        self.notes: list[str] = []
        self._troubles: list[str] = []
        self._argv: tuple[str, ...] = ()
        self._workspace: Workspace | None = None
        self._container: Container | None = None
        self._readings: Readings | None = None
        self._result = ExecResult(1, 0.0)
        self._failed_hook = ""
        self._deadline: float | None = None

    def prepare(self) -> None:
        """Everything that must be there before a script can run. Raises what a refusal says."""
        spec = self._spec
        self._argv = model_argv(spec)
        self._observer.phase("workspace")
        self._workspace = prepare(spec, note=self._note)
        if self._engine.needs_image and sets_user(spec.run_options):
            open_to_everyone(self._workspace)
        self._observer.phase("container")
        self._container = self._engine.start(_request(spec, self._engine))
        self._readings = Readings(spec, self._workspace, results_variable(spec), self.redactor)
        for note in self._container.notes:
            self._note(note)

    def work(self) -> None:
        """Pre-scripts, the model's script, post-scripts."""
        limit = self._spec.timeout
        self._deadline = None if limit is None else time.monotonic() + limit
        if self._hooks_before():
            self._model()
        if not self._cancel.is_set():
            self._hooks_after()

    def leave(self) -> None:
        """End the container while the log is read, read the results, keep the artefacts.

        The workspace stays: whether anyone wants a second look at it depends on the verdict.
        """
        assert self._readings is not None
        self._observer.phase("results")
        ending = threading.Thread(target=self._stop, name="stop", daemon=True)
        ending.start()
        self._readings.read_log()
        ending.join()
        self._readings.read_files()

    def abandon(self) -> None:
        """Leave nothing of a run that could not be prepared, unless a container still uses it."""
        if self._container is not None:
            self._stop()
            if self._spec.keep_alive:
                return
        left = remove_tree(self._spec.workspace)
        if left:
            self._note(f"{len(left)} files of the workspace could not be removed, the first is {left[0]}")

    def evidence(self) -> Evidence:
        """All that was seen."""
        assert self._readings is not None
        result = self._result
        node = NodeReport(
            self._spec.place.rank,
            os.uname().nodename,
            result.exit_code,
            self._detail(),
            result.out_of_memory,
            script=True,
        )
        seen = self._readings.evidence(node, self._interruption(), self._troubles, self.notes)
        return without_secrets_in(seen, self.redactor)

    def _hooks_before(self) -> bool:
        """Whether all pre-scripts went well; the model is not run otherwise."""
        for hook in self._spec.pre_scripts:
            result = self._hook(hook, "pre-script", self._time_left())
            if result.exit_code:
                self._result = result
                self._failed_hook = f"pre-script {hook.path} {_fate(result)}, the model's script was not run"
                self._observer.note(self._failed_hook)
                return False
        return True

    def _hooks_after(self) -> None:
        deadline = time.monotonic() + HOOK_LIMIT
        for hook in self._spec.post_scripts:
            result = self._hook(hook, "post-script", max(0.0, deadline - time.monotonic()))
            if result.exit_code:
                self._troubles.append(self.redactor.text(f"post-script {hook.path} {_fate(result)}"))
                self._observer.note(self._troubles[-1])

    def _hook(self, hook: HookScript, kind: str, limit: float) -> ExecResult:
        """Run one hook; its output goes to a log of its own, since a metric comes only from the model's output."""
        self._observer.phase(f"{kind} {hook.path}")
        path = hook_path(hook)
        interpreter = "python3" if path.endswith(PYTHON_SUFFIX) else "bash"
        argv = [interpreter, self._there.path(path), *split_words(hook.args)]
        return self._exec(argv, self._spec.run_dir / "logs" / f"{kind}s.log", limit)

    def _model(self) -> None:
        assert self._readings is not None
        self._observer.phase("model")
        self._readings.begin()
        limit = None if self._deadline is None else self._time_left()
        self._result = self._exec(self._argv, self._spec.log, limit)
        if self._result.detail:
            self._observer.note(self._result.detail)

    def _exec(self, argv: Sequence[str], log: Path, limit: float | None) -> ExecResult:
        assert self._workspace is not None and self._readings is not None
        with recording(log, self.redactor, self._observer.output) as output:
            return self._there.exec(
                argv,
                cwd=self._workspace.inside,
                output=output,
                timeout=limit,
                environment=self._readings.given,
                cancel=self._cancel,
            )

    @property
    def _there(self) -> Container:
        assert self._container is not None
        return self._container

    def _time_left(self) -> float:
        return HOOK_LIMIT if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    def _stop(self) -> None:
        if self._spec.keep_alive:
            self._note(f"{self._there.name} is left as it is (--keep-alive); enter it: {' '.join(self._there.entry)}")
            return
        try:
            self._there.stop()
        except ExecutionError as error:
            self._note(self.redactor.text(str(error)))

    def _interruption(self) -> Interruption | None:
        if self._result.timed_out:
            limit = self._spec.timeout if self._spec.timeout is not None else HOOK_LIMIT
            return Interruption(InterruptionKind.TIMEOUT, f"timed out after {limit:g} s")
        if self._result.cancelled or self._cancel.is_set():
            return Interruption(InterruptionKind.CANCELLED, f"cancelled after {self._result.duration:.0f} s")
        return None

    def _detail(self) -> str:
        return self._failed_hook or self._result.detail

    def _note(self, text: str) -> None:
        safe = self.redactor.text(text)
        self.notes.append(safe)
        self._observer.note(safe)


def model_argv(spec: RunSpec) -> tuple[str, ...]:
    """The words of the model's command: prefix, interpreter, script, args. Nothing in them is expanded.

    Raises ``ConfigurationError`` when the card's args are no shell words.
    """
    script = f"./{spec.script.file}" if spec.script.file.startswith(("-", "+")) else spec.script.file
    return (*spec.prefix, *spec.script.interpreter, script, *split_words(spec.script.args))


def results_variable(spec: RunSpec) -> dict[str, str]:
    """The variable that tells a script how its results file is called: a bare name, as scripts put ``../`` before it.

    A value that the user gives stands; without a declared file there is no variable, nor for a path that would lead
    the script out of its workspace.
    """
    if not is_bare_name(spec.results_file):
        return {}
    return {OUTPUT_VARIABLE: spec.environment.get(OUTPUT_VARIABLE) or spec.results_file}


def hook_path(hook: HookScript) -> str:
    """A hook's path as the script sees it. Raises ``ConfigurationError`` when it leads out of the workspace."""
    path = PurePosixPath(hook.path)
    if path.is_absolute() or ".." in path.parts:
        raise ConfigurationError(
            f"the pre- or post-script {hook.path!r} lies outside the workspace",
            hint="its path is relative to the package, such as scripts/common/pre_scripts/x.sh",
        )
    return f"{WORKSPACE}/{path}"


def container_name(run_id: str, part: str = "") -> str:
    """A name that no other run's container has, nor another part's of the same run (two nodes may be one machine)."""
    return f"madengine-{safe_name(f'{run_id}-{part}' if part else run_id, 200)}"


def _request(spec: RunSpec, engine: ContainerEngine) -> ContainerRequest:
    for hook in (*spec.pre_scripts, *spec.post_scripts):
        hook_path(hook)
        split_words(hook.args)
    options = (*devices.vendor_options(spec.gpus, spec.run_options), *spec.run_options)
    visible = {} if engine.needs_image else devices.visible_devices(spec.gpus)
    return ContainerRequest(
        name=container_name(spec.run_id, spec.part),
        image=spec.image.docker_image,
        workspace=spec.workspace,
        environment={**visible, **spec.environment},
        secrets=spec.secrets,
        mounts=spec.mounts,
        devices=devices.devices(spec.gpus),
        gpus=devices.nvidia_indices(spec.gpus),
        cpus=spec.cpus,
        user="" if sets_user(spec.run_options) else spec.user or f"{os.getuid()}:{os.getgid()}",
        options=options if engine.needs_image else spec.run_options,
        labels={
            "madengine.run": spec.run_id,
            "madengine.model": spec.card.name,
            "madengine.directory": str(spec.run_dir),
        },
    )


def _fate(result: ExecResult) -> str:
    if result.timed_out:
        return "did not end in time"
    if result.cancelled:
        return "was cancelled"
    return f"exited {result.exit_code}{f' ({result.detail})' if result.detail else ''}"


def _interrupted(spec: RunSpec, kind: InterruptionKind, detail: str, notes: Sequence[str] = ()) -> Evidence:
    return Evidence(spec.run_id, interruption=Interruption(kind, detail), notes=tuple(notes))
