"""What a package's ``get_models_json.py`` imports: the class of the models it generates.

::

    from madengine.utils.discover_models import CustomModel

    def list_models():
        return [CustomModel(name="llama", scripts="run.sh", tags=["llm"], args=f"--size {size}") for size in SIZES]

The script runs in a process of its own, so whatever it imports, prints or breaks stays there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class CustomModel:
    """A generated model card; ``dockerfile`` and ``scripts`` are relative to the folder of the script.

    A subclass may add fields, and may fill any of them in :meth:`update_model`. Further card keys (``env_vars``,
    ``distributed``, ``slurm``, ...) can be set as attributes.
    """

    name: str
    dockerfile: str = ""
    dockercontext: str = ""
    scripts: str = ""
    url: str = ""
    cred: str = ""
    owner: str = ""
    data: str = ""
    n_gpus: str = "-1"
    timeout: int = 7200
    training_precision: str = ""
    tags: list[str] = field(default_factory=list)
    args: str = ""
    multiple_results: str = ""
    skip_gpu_arch: str = ""

    def update_model(self) -> None:
        """Called once the model has been selected, with ``name`` in its full form ``<folder>/<name>``.

        The place for what is too costly to do for every model that is only listed.
        """

    def to_dict(self) -> dict[str, Any]:
        """The card as a document: every public attribute."""
        return {key: value for key, value in vars(self).items() if not key.startswith("_")}
