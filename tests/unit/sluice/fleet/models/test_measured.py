"""Tests of models from audit reports."""

from pathlib import Path

import msgspec
import numpy as np
import pytest

from sluice.audit.judge.model.attempts import Kind
from sluice.audit.judge.model.observation import Role, SubjectInfo
from sluice.audit.judge.model.verdict import AuditResult, Fit, MeasuredBackoff, SubjectResult
from sluice.errors import ConfigError
from sluice.fleet.models.client_model import ClientModel
from sluice.fleet.models.mix import parse_mix
from sluice.fleet.simulation.parameters import Parameters, lanes_of


def _fit(model: str, base_ms: float, cap_ms: float | None, jitter: float = 0.0) -> Fit:
    multiplier = 2.0 if model == "exponential" else 1.0
    return Fit(
        model=model, base_ms=base_ms, multiplier=multiplier, cap_ms=cap_ms, jitter=jitter, confidence=1, waits=50
    )


CONSTANT, GROWING, LINEAR = _fit("constant", 100, 100), _fit("exponential", 50, 30_000, 0.2), _fit("linear", 10, 90)


def _report(folder: Path, **fits: Fit) -> Path:
    settings: dict[str, float | str | bool] = {
        "acks": 1, "request.timeout.ms": 7000, "max.in.flight.requests.per.connection": 1.0,
    }  # fmt: skip
    subject = SubjectInfo(name="mine", role=Role.PRODUCER, settings=settings)
    backoffs = [
        MeasuredBackoff(kind=Kind(kind), probe="x", fit=fit, is_shared=kind == "connect") for kind, fit in fits.items()
    ]
    result = AuditResult(
        sluice="1", began="", machine="", subjects=[SubjectResult(subject=subject, verdicts=[], backoffs=backoffs)]
    )
    path = folder / "report.json"
    path.write_bytes(msgspec.json.encode(result))
    return path


def test_a_model_has_the_measured_backoffs_and_the_clients_settings(tmp_path: Path) -> None:
    path = _report(tmp_path, produce=CONSTANT, connect=GROWING)
    ((name, model, clients),) = parse_mix("mine:5", ["mine.requests.per.s=2"], [f"{path}#mine"])
    assert (name, clients) == ("mine", 5)
    assert model == ClientModel(
        acks="1", request_timeout_ms=7000, requests_per_s=2, retry_backoff_redraws=False, retry_backoff_ms=100,
        retry_backoff_max_ms=100 + 1e-6, retry_backoff_multiplier=1, retry_backoff_jitter=0, reconnect_backoff_ms=50,
        reconnect_backoff_max_ms=30_000, reconnect_backoff_jitter=0.2, reconnect_backoff_scope="client",
        max_in_flight_requests_per_connection=1,
    )  # fmt: skip
    zero = np.zeros(1, dtype=np.int64)
    assert Parameters(lanes_of(model)).retry.wait_us(zero, zero + 9, np.zeros(1)).tolist() == [100_000]


UNUSABLE = [
    ("report.json", "--model report.json: expected REPORT#CLIENT, such as report.json#kafka-python"),
    ("/missing.json#a", "--model /missing.json#a: No such file or directory"),
    (f"{__file__}#mine", "expected the report.json of `sluice audit run`; "),
    ("{path}#other", "unknown client; expected one of mine"),
    ("{path}#mine", "the report has no measured backoff of connect attempts"),
    ("{linear}#mine", "expected a constant or exponential backoff of connect attempts, got linear"),
]


@pytest.mark.parametrize(("reference", "problem"), UNUSABLE)
def test_an_unusable_report_is_refused(reference: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "linear").mkdir()
    paths = {
        "path": _report(tmp_path, produce=CONSTANT),
        "linear": _report(tmp_path / "linear", produce=GROWING, connect=LINEAR),
    }
    with pytest.raises(ConfigError) as raised:
        parse_mix("mine:5", [], [reference.format(**paths)])
    assert problem in str(raised.value)
