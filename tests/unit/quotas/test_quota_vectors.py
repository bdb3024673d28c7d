"""The public quota vectors, made with Apache Kafka's own classes, and a test that the check can fail."""

from math import nextafter

import pytest

from tests.support.vectors import vectors
from tests.vectors.quotas import KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_vector_is_reproduced_bit_for_bit(kind: str) -> None:
    failures = [f"{vector['id']}: {failure}" for vector in vectors(f"{kind}") for failure in KINDS[kind](vector)]
    assert failures == []


EVENT = {"t": 0, "op": "record", "client_id": "c", "value": 20.0}
QUOTA = {"t": 0, "op": "set_quota", "user": None, "client_id": "<default>", "bound": 1.0}
EXPECTED = {"throttle_ms": 10_000, "rate": 2.0, "bound": 1.0, "window_ms": 10_000}


def test_check_accepts_a_correct_vector() -> None:
    assert KINDS["quotas"]({"num_samples": 11, "window_s": 1, "events": [QUOTA, EVENT | EXPECTED]}) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("throttle_ms", 10_001),
        ("rate", nextafter(2.0, 3.0)),
        ("rate", -2.0),
        ("rate", None),
        ("rate", "NaN"),
        ("window_ms", 9999),
        ("throttle_time_avg", 0.0),
        ("unheard_of", 1),
        ("tags", {"user": "ANONYMOUS", "client-id": "c"}),
    ],
    ids=str,
)
def test_check_rejects(field: str, value: object) -> None:
    event = EVENT | EXPECTED | {field: value}
    failures = KINDS["quotas"]({"num_samples": 11, "window_s": 1, "events": [QUOTA, event]})
    assert len(failures) == 1
    assert field in failures[0]
