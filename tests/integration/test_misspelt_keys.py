"""A misspelt key is said before anything starts, whichever file it stands in and whichever command reads it."""

from __future__ import annotations

import pytest
from tests.integration.packages import Outcome, Place, card, make_package, manifest, place, write_json

here = pytest.fixture(place)

CONTEXT = '{"gpu_vendro": "CPU"}'
SAID_OF_CONTEXT = 'warning: --additional-context#/gpu_vendro: unknown key "gpu_vendro" (did you mean "gpu_vendor"?)'


def warnings(outcome: Outcome) -> list[str]:
    return [line for line in outcome.err.splitlines() if "did you mean" in line]


def test_run_warns_of_the_context_and_of_the_selected_cards_only(here: Place) -> None:
    make_package(here.package, [card(n_gpu="0"), card("other", timeouts=5)])
    outcome = here.madengine("run", "--tags", "m", "--engine", "host", "--dry-run", "--additional-context", CONTEXT)
    assert outcome.code == 0
    context, model = warnings(outcome)
    assert context == SAID_OF_CONTEXT
    assert model.endswith('models.json[0].n_gpu (line 1): unknown key "n_gpu" (did you mean "n_gpus"?)')


def test_run_warns_of_a_manifest(here: Place) -> None:
    document = manifest([card(mutliple_results="x.csv")], deployment_config={"target": "local", "slrum": {}})
    file = write_json(here.work / "m.json", document)
    outcome = here.madengine("run", "--manifest-file", file, "--engine", "host", "--dry-run", "--json")
    assert outcome.code == 0
    assert warnings(outcome) == [
        f'warning: {file}#/built_models/k0/mutliple_results: unknown key "mutliple_results" '
        '(did you mean "multiple_results"?)',
        f'warning: {file}#/deployment_config/slrum: unknown key "slrum" (did you mean "slurm"?)',
    ]


def test_build_warns_of_the_context_and_of_the_cards_and_writes_a_manifest_without_more_of_them(here: Place) -> None:
    make_package(here.package, [card(n_gpu="0")])
    words = ("--use-image", "x:1", "--additional-context", CONTEXT)
    outcome = here.madengine("build", "--tags", "m", *words)
    assert outcome.code == 0
    context, model = warnings(outcome)
    assert context == SAID_OF_CONTEXT
    assert "models.json[0].n_gpu" in model
    written = here.madengine("validate", here.work / "build_manifest.json")
    assert [line.rsplit(":", 1)[1] for line in written.out.splitlines() if "misspelt-key" in line] == [
        ' unknown key "n_gpu" [misspelt-key]',
        ' unknown key "gpu_vendro" [misspelt-key]',
    ]
