"""Model cards in the shapes of a real package, as many as a benchmark needs."""

from __future__ import annotations

import random
from typing import Any

PRECISIONS = ("", "", "", "fp16", "bf16", "fp8", "fp4", "fp32")
FAMILIES = ("deepseek-r1", "llama-3.1-8b", "llama-3.3-70b", "gpt-oss-120b", "qwen3-235b", "mixtral-8x22b", "kimi-k2")


def cards(count: int) -> list[dict[str, Any]]:
    """``count`` cards, the same ones every time.

    Mixed as in the public MAD package: nearly every card has a timeout and args, four in five a results file, one in
    six a ``distributed`` block, variables or an architecture to be skipped.
    """
    chance = random.Random(7)
    return [_card(chance, number) for number in range(count)]


def _card(chance: random.Random, number: int) -> dict[str, Any]:
    family, precision = chance.choice(FAMILIES), chance.choice(PRECISIONS)
    engine = chance.choice(("vllm", "sglang", "primus_megatron-lm", "jax-maxtext", "huggingface"))
    card: dict[str, Any] = {
        "name": f"pyt_{engine}_{family}_{precision or 'default'}_{number}",
        "url": "",
        "dockerfile": f"docker/pyt_{engine}",
        "scripts": f"scripts/{engine}/run.sh",
        "data": "huggingface",
        "n_gpus": chance.choice(("-1", "-1", "1", "8")),
        "owner": "mad.support@example.com",
        "training_precision": precision,
        "tags": ["pyt", engine, family, chance.choice(("inference", "training", "pretrain"))],
        "args": f"--model_repo example/{family} --config configs/default.yaml --seed {number}",
    }
    if chance.random() < 0.9:
        card["timeout"] = chance.choice((-1, 14400, 21600))
    if chance.random() < 0.8:
        card["multiple_results"] = f"perf_{family}.csv"
    if chance.random() < 0.16:
        card["skip_gpu_arch"] = chance.choice(("gfx942", "gfx90a,gfx942", "A100"))
    if chance.random() < 0.17:
        card["distributed"] = {"launcher": "torchrun", "nnodes": chance.choice((1, 2, 4)), "nproc_per_node": 8}
        card["env_vars"] = {"NCCL_DEBUG": "WARN", "HSA_NO_SCRATCH_RECLAIM": "1"}
    return card
