"""Evidence survives the way to JSON and back; anything else is refused in a sentence."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from madengine.core.errors import ValidationError
from madengine.verdict.evidence import (
    ContractProblem,
    EmptyRow,
    Evidence,
    Interruption,
    InterruptionKind,
    LogFinding,
    Measurement,
    NodeReport,
    SchedulerReport,
)
from madengine.verdict.evidence_json import from_json, to_json
from madengine.verdict.judge import judge

FULL = Evidence(
    "run-1",
    skipped="on purpose",
    measurements=(Measurement(1.5, "tok/s", "a", "x.csv:2", "1.50", 1, (("mode", "eval"),)),),
    empty_rows=(EmptyRow("b", "tok/s", "empty", "x.csv:3", 1, (("mode", "train"),)),),
    expected_results=2,
    nodes=(NodeReport(0, "h", 0), NodeReport(1, detail="no marker", out_of_memory=True)),
    scheduler=SchedulerReport("Slurm", "FAILED", False, "0:9", "why"),
    log_findings=(LogFinding("run.log", 3, "FAILED", "FAILED test"),),
    contract_problems=(ContractProblem("no x.csv", ("/w/x.csv",), ("MAD_OUTPUT_CSV=x.csv",), ("y.csv",), "write it"),),
    interruption=Interruption(InterruptionKind.TIMEOUT, "after 60 s"),
    notes=("a note",),
)

texts = st.text(max_size=8)
whole = st.integers(1 - 2**63, 2**63 - 1)
pairs = st.lists(st.tuples(texts, texts), max_size=2).map(tuple)
numbers = st.floats(allow_nan=False)


def several(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(strategy, max_size=2).map(tuple)


evidence_values = st.builds(
    Evidence,
    texts,
    skipped=st.none() | texts,
    measurements=several(st.builds(Measurement, numbers, texts, texts, texts, texts, whole, pairs)),
    empty_rows=several(st.builds(EmptyRow, texts, texts, texts, texts, whole, pairs)),
    expected_results=st.none() | whole,
    nodes=several(st.builds(NodeReport, whole, texts, st.none() | whole, texts, st.booleans())),
    scheduler=st.none() | st.builds(SchedulerReport, texts, texts, st.booleans(), texts, texts),
    log_findings=several(st.builds(LogFinding, texts, whole, texts, texts)),
    contract_problems=several(st.builds(ContractProblem, texts, several(texts), several(texts), several(texts), texts)),
    interruption=st.none() | st.builds(Interruption, st.sampled_from(InterruptionKind), texts),
    notes=several(texts),
)


@given(evidence_values)
def test_any_evidence_comes_back_equal(evidence: Evidence) -> None:
    text = json.dumps(to_json(evidence), allow_nan=False)
    assert from_json(json.loads(text)) == evidence


@given(evidence_values)
def test_any_evidence_can_be_judged(evidence: Evidence) -> None:
    verdict = judge(evidence)
    assert verdict.reason
    assert judge(from_json(to_json(evidence))) == verdict


def test_the_document_is_plain_and_says_what_it_is() -> None:
    document = to_json(FULL)
    assert (document["kind"], document["version"]) == ("madengine-evidence", 2)
    assert document["interruption"] == {"kind": "timed out", "detail": "after 60 s"}
    assert document["nodes"][1]["exit_code"] is None
    assert document["measurements"][0]["extra"] == [["mode", "eval"]]
    assert from_json(document) == FULL


@pytest.mark.parametrize(("value", "text"), [(math.nan, "nan"), (math.inf, "inf"), (-math.inf, "-inf")])
def test_numbers_that_json_lacks_travel_as_text(value: float, text: str) -> None:
    document = to_json(Evidence("r", measurements=(Measurement(value, "m"),)))
    assert document["measurements"][0]["value"] == text
    assert repr(from_json(document).measurements[0].value) == repr(value)


def test_an_integer_is_a_number() -> None:
    document = to_json(FULL)
    document["measurements"][0]["value"] = 3
    value = from_json(document).measurements[0].value
    assert (value, type(value)) == (3.0, float)


def changed(pointer: str, value: object) -> dict[str, Any]:
    document = copy.deepcopy(to_json(FULL))
    *path, last = [int(part) if part.isdecimal() else part for part in pointer.split("/")[1:]]
    place: Any = document
    for part in path:
        place = place[part]
    place[last] = value
    return document


@pytest.mark.parametrize(
    ("pointer", "value", "found", "allowed"),
    [
        ("/kind", "something else", "'something else'", "'madengine-evidence'"),
        ("/kind", None, "nothing", "'madengine-evidence'"),
        ("/version", 1, "1", "2"),
        ("/version", True, "True", "2"),
        ("/run_id", 7, "7", "a string"),
        ("/run_id", None, "nothing", "a string"),
        ("/skipped", False, "False", "a string"),
        ("/expected_results", "2", "'2'", "an integer"),
        ("/expected_results", True, "True", "an integer"),
        ("/expected_results", 2**63, "a huge integer", "an integer"),
        ("/expected_results", 2.0, "2.0", "an integer"),
        ("/nodes", {}, "an object", "an array"),
        ("/nodes", None, "nothing", "an array"),
        ("/nodes/0", [1, 2], "an array of 2", "an object"),
        ("/nodes/1/out_of_memory", 1, "1", "true or false"),
        ("/scheduler", "FAILED", "'FAILED'", "an object"),
        ("/measurements/0/value", "1.5", "'1.5'", "a finite number, or 'nan', 'inf', '-inf'"),
        ("/measurements/0/value", math.nan, "nan", "a finite number, or 'nan', 'inf', '-inf'"),
        ("/measurements/0/value", True, "True", "a finite number, or 'nan', 'inf', '-inf'"),
        ("/measurements/0/value", 10**400, "a huge integer", "a finite number, or 'nan', 'inf', '-inf'"),
        ("/measurements/0/extra/0", ["mode"], "an array of 1", "an array of 2"),
        ("/measurements/0/extra/0/1", 1, "1", "a string"),
        ("/interruption/kind", "exploded", "'exploded'", "'timed out' or 'cancelled' or 'refused'"),
        ("/notes/0", "x" * 500, "", ""),
        ("/notes/0", list("x" * 500), "an array of 500", "a string"),
        ("/run_id", 10**4000, "a huge integer", "a string"),
        ("/expected_results", "x" * 500, "'" + "x" * 56 + "...", "an integer"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_where_it_stands(
    pointer: str, value: object, found: str, allowed: str
) -> None:
    document = changed(pointer, value)
    if not allowed:
        assert from_json(document).notes == (value,)
        return
    with pytest.raises(ValidationError) as caught:
        from_json(document, source="evidence.json")
    error = caught.value
    assert (error.pointer, error.found, error.allowed, error.source) == (pointer, found, allowed, "evidence.json")
    assert f"evidence.json#{pointer}: found {found} where {allowed} belongs" in str(error)


@pytest.mark.parametrize("document", [None, [], "text", 3, [{"kind": "madengine-evidence"}]])
def test_what_is_no_object_is_refused(document: object) -> None:
    with pytest.raises(ValidationError, match="where an object belongs") as caught:
        from_json(document, source="evidence.json")
    assert (caught.value.pointer, caught.value.source) == ("", "evidence.json")
    assert caught.value.hint == "this is not evidence that this version of madengine wrote; run the model again"


@pytest.mark.parametrize(
    "pointer", ["/run_id", "/nodes", "/scheduler", "/nodes/0/exit_code", "/interruption/detail", "/notes"]
)
def test_a_document_that_lost_a_part_is_refused(pointer: str) -> None:
    document = to_json(FULL)
    *path, last = pointer.split("/")[1:]
    place: Any = document
    for part in path:
        place = place[int(part) if part.isdecimal() else part]
    del place[last]
    with pytest.raises(ValidationError, match=f"'{last}' is missing") as caught:
        from_json(document, source="evidence.json")
    assert (caught.value.pointer, caught.value.found, caught.value.source) == (pointer, "nothing", "evidence.json")


@pytest.mark.parametrize("pointer", ["/surprise", "/nodes/0/surprise"])
def test_a_key_that_evidence_does_not_have_is_refused(pointer: str) -> None:
    with pytest.raises(ValidationError, match="'surprise' is no field of evidence") as caught:
        from_json(changed(pointer, 1))
    assert caught.value.pointer == pointer.removesuffix("/surprise")
    assert caught.value.found == "'surprise'"
    assert "exit_code" in caught.value.allowed or "run_id" in caught.value.allowed


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(sorted(to_json(FULL))), json_values)
def test_any_foreign_value_is_read_or_refused_but_never_crashes(key: str, value: object) -> None:
    document = to_json(FULL) | {key: value}
    try:
        evidence = from_json(document)
    except ValidationError as error:
        assert error.pointer.startswith(f"/{key}")
    else:
        assert judge(evidence).reason
