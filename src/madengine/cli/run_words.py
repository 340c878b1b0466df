"""The options of ``madengine run`` as they were typed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from madengine.orchestration.plan import RunOptions


@dataclass(frozen=True)
class RunWords:
    """The options of ``madengine run`` as they were typed; see their help texts."""

    model_dir: Path
    tags: Sequence[str]
    ignore_deprecated: bool
    manifest_file: Path | None
    manifest_output: Path | None
    additional_context: Sequence[str] = field(repr=False)
    additional_context_file: Sequence[Path]
    engine: str | None
    registry: str | None
    clean_docker_cache: bool
    target_archs: Sequence[str]
    use_image: str | None
    batch_manifest: Path | None
    timeout: float | None
    keep_alive: bool
    keep_model_dir: bool
    skip_model_run: bool
    disable_skip_gpu_arch: bool
    data_config: Path | None
    tools_config: Path | None
    output: Path
    summary_output: Path | None
    cleanup_perf: bool
    sys_env_details: bool
    max_jobs: int
    detach: bool
    skip_preflight: bool
    dry_run: bool
    strict: bool
    live_output: bool
    as_json: bool
    verbose: bool

    def run_options(self) -> RunOptions:
        """The part that concerns running."""
        return RunOptions(
            self.timeout,
            self.keep_alive,
            self.keep_model_dir,
            self.skip_model_run,
            self.disable_skip_gpu_arch,
            self.sys_env_details,
        )
