"""Which variables a run's script is given, and which of them are secrets.

Later layers beat earlier ones: facts of the machine, the launcher, tools, the card's ``env_vars``, the context's
``docker_env_vars``, ``deployment_config.env_vars``. Values that a person configured may hold ``$NAME`` and
``${NAME}``; exactly these are expanded, from the env file and the inherited environment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from madengine.config.context import SECRET_PREFIX
from madengine.core.redact import is_maskable, is_secret_name, secret_values
from madengine.core.shell import expand
from madengine.execution.spec import GpuGrant

PASSED_ON = ("BUILD_NUMBER", "pipeline", "MAD_JENKINS_PIPELINE", "MAD_MODEL_BATCH_SIZE", "MAD_MODEL_NUM_EPOCHS")
"""Inherited variables that scripts read when they are set."""


@dataclass(frozen=True)
class RunEnvironment:
    """Variables for the script. ``secrets`` are given besides ``plain`` and never written anywhere.

    ``unset`` are ``(variable, name)`` pairs: a name that ``variable`` refers to and that is not set here.
    """

    plain: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    unset: tuple[tuple[str, str], ...] = ()


def machine_facts(model: str, gpus: GpuGrant, guest_os: str) -> dict[str, str]:
    """What scripts ask about the machine; a fact that is not known is absent, not empty."""
    facts = {
        "MAD_MODEL_NAME": model,
        "MAD_GPU_VENDOR": gpus.vendor,
        "MAD_GUEST_OS": guest_os,
        "MAD_SYSTEM_NGPUS": str(gpus.total),
        "MAD_RUNTIME_NGPUS": str(len(gpus.indices)),
        "MAD_SYSTEM_GPU_ARCHITECTURE": gpus.architecture,
        "MAD_SYSTEM_GPU_PRODUCT_NAME": gpus.product,
        "MAD_SYSTEM_HIP_VERSION": gpus.hip_version,
    }
    return {name: value for name, value in facts.items() if value}


def rocm_path(context: Mapping[str, Any]) -> dict[str, str]:
    """Where ROCm lies in the image, when the context says so with ``MAD_ROCM_PATH``; scripts read ``ROCM_PATH``."""
    path = context.get("MAD_ROCM_PATH")
    return {"ROCM_PATH": str(path)} if path else {}


def assemble(
    facts: Sequence[Mapping[str, str]], configured: Sequence[Mapping[str, str]], inherited: Mapping[str, str]
) -> RunEnvironment:
    """Merge the layers, expand references, and set secrets apart.

    Later layers win, and ``configured`` ones win over ``facts``; only in what a person configured are references
    expanded. ``inherited`` is the environment with the env file on top; its ``MAD_SECRETS_*`` reach the run. A value
    that contains a secret is a secret itself, whatever its name.
    """
    values: dict[str, str] = {name: inherited[name] for name in PASSED_ON if inherited.get(name)}
    for layer in facts:
        values.update(layer)
    unset: dict[tuple[str, str], None] = {}
    for name, value in {name: value for layer in configured for name, value in layer.items()}.items():
        values[name], missing = expand(value, inherited)
        unset.update({(name, reference): None for reference in missing})
    secrets = {name: value for name, value in inherited.items() if name.startswith(SECRET_PREFIX) and value}
    told = (*secrets.values(), *secret_values(values), *secret_values(inherited))
    known = [value for value in told if is_maskable(value)]
    hidden = {n: v for n, v in values.items() if is_secret_name(n) or any(secret in v for secret in known)}
    plain = {name: value for name, value in values.items() if name not in hidden}
    return RunEnvironment(plain, {**secrets, **hidden}, tuple(unset))
