"""Tools that wrap a model's command, and the scripts that travel into the workspace for them.

``tools.json`` defines the tools, ``scripts/`` is what a run finds at ``/myworkspace/scripts/common``. Commands stand in
front of ``bash run.sh``, whose working directory lies beside ``scripts``: hence ``../scripts/common``.
"""

from __future__ import annotations

from pathlib import Path

TOOLS_FILE = Path(__file__).parent / "tools.json"
SCRIPTS = Path(__file__).parent / "scripts"
ENVIRONMENT_SCRIPT = "scripts/common/pre_scripts/system_environment.sh"
"""The pre-script behind ``--sys-env-details``: it writes ``<model>_env.csv``, an artefact."""
