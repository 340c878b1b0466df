"""What checking a document costs beside parsing it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from madengine.core.documents import parse_json
from madengine.schemas import unfilled_values, validate_build_manifest, validate_model_cards


def _card(number: int) -> dict[str, Any]:
    return {
        "name": f"pyt_model_{number}",
        "dockerfile": "docker/pyt_model",
        "scripts": "scripts/pyt_model/run.sh",
        "n_gpus": "-1",
        "owner": "somebody@example.com",
        "training_precision": "",
        "tags": ["pyt", "training", f"group{number % 7}"],
        "timeout": 14400,
        "args": "--model_repo pyt_model --config 'a;b' --precision fp8",
        "env_vars": {"MODEL_NAME": f"model {number}", "TP_SIZE": "8"},
    }


def _fastest(work: Callable[[], object]) -> float:
    seconds = []
    for _ in range(9):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def test_reading_and_checking_a_manifest_of_1000_models_costs_at_most_five_times_parsing_it() -> None:
    cards = {f"key{number}": _card(number) for number in range(1000)}
    images = {key: {"docker_image": f"ci-{key}", "dockerfile": "docker/x", "local_image": True} for key in cards}
    text = json.dumps({"built_images": images, "built_models": cards, "context": {}}, indent=2)

    def read() -> None:
        assert validate_build_manifest(parse_json(text, source="m.json", what="manifest"), "m.json") == []

    manifest = json.loads(text)
    parsing = _fastest(lambda: json.loads(text))
    assert _fastest(read) < 5 * parsing
    assert _fastest(lambda: unfilled_values(manifest)) < 5 * parsing


def test_checking_ten_thousand_cards_costs_less_than_parsing_them() -> None:
    text = json.dumps([_card(number) for number in range(10_000)])
    cards = json.loads(text)
    assert _fastest(lambda: validate_model_cards(cards)) < _fastest(lambda: json.loads(text))
