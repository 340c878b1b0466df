"""Files that a run reads besides its manifest: definitions of tools and of data sources."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from madengine.config.data import load_data_config
from madengine.config.tools import load_tools
from madengine.profiling import TOOLS_FILE

PACKAGE_TOOLS = "tools.json"
PACKAGE_DATA = "data.json"


def tools_for(package: Path, named: Path | None) -> Mapping[str, Mapping[str, Any]]:
    """All tools: madengine's own, the package's where it has some, and those of the file that was ``named``."""
    own = package / PACKAGE_TOOLS
    return load_tools([TOOLS_FILE, *([own] if os.path.lexists(own) else []), *([named] if named else [])])


def data_for(package: Path, named: Path | None) -> Mapping[str, Any] | None:
    """The data sources of the file that was ``named``, else the package's own; None when there are none."""
    own = package / PACKAGE_DATA
    path = named or (own if os.path.lexists(own) else None)
    return load_data_config(path) if path else None
