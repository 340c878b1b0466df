"""Secrets inside frozen values."""

from __future__ import annotations

from madengine.core.redact import Redactor
from madengine.core.redact_values import without_secrets_in
from madengine.verdict.evidence import Evidence, Interruption, InterruptionKind, LogFinding, Measurement

HIDDEN = Redactor(["hf_secret_value"])


def test_every_text_is_cleaned_and_everything_else_stays() -> None:
    seen = Evidence(
        "run",
        measurements=(Measurement(1.5, "x", name="a hf_secret_value", extra=(("k", "hf_secret_value"),)),),
        log_findings=(LogFinding("run.log", 3, "ValueError:", "ValueError: hf_secret_value"),),
        interruption=Interruption(InterruptionKind.TIMEOUT, "hf_secret_value"),
        notes=("hf_secret_value",),
    )
    clean = without_secrets_in(seen, HIDDEN)
    assert clean.measurements == (Measurement(1.5, "x", name="a ***", extra=(("k", "***"),)),)
    assert clean.log_findings[0].text == "ValueError: ***"
    assert clean.interruption == Interruption(InterruptionKind.TIMEOUT, "***")
    assert clean.notes == ("***",)


def test_a_value_without_secrets_is_itself() -> None:
    seen = Evidence("run", notes=("nothing",))
    assert without_secrets_in(seen, HIDDEN) is seen
