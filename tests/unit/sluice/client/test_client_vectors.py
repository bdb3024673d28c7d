"""The public client vectors, made with Apache Kafka's own classes, and tests that the checks can fail."""

import pytest

from tests.support.vectors import vectors
from tests.vectors import Vector
from tests.vectors.client import KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_vector_is_reproduced(kind: str) -> None:
    failures = [f"{vector.get('id')}: {failure}" for vector in vectors(f"{kind}*") for failure in KINDS[kind](vector)]
    assert failures == []


BACKOFF, STATES, CONFIG = "exponential_backoff", "connection_states", "producer_config"
EXACT: Vector = {"kind": "exact", "initial": 100, "multiplier": 2, "max": 1000, "jitter": 0.0, "attempts": [0, 4]}
FACTORS: Vector = {"kind": "factors", "initial": 100, "multiplier": 2, "max": 1000, "jitter": 0.2}
CONNECTIONS: Vector = {
    "reconnect_backoff_ms": 50,
    "reconnect_backoff_max_ms": 1000,
    "connection_setup_timeout_ms": 10_000,
    "connection_setup_timeout_max_ms": 30_000,
}
CONNECTING = {"t": 5, "id": "0", "op": "connecting", "host": "b", "random_factors": [0.9, 1.1]}


ACCEPTED: Vector = {"config": {}, "accepted": True, "effective": {}, "warnings": []}
REJECTED: Vector = {"config": {"acks": "2"}, "accepted": False, "exception": "ConfigException"}


def range_from(least: int, mean: float) -> Vector:
    return FACTORS | {"kind": "range", "ranges": [{"attempt": 0, "min": least, "max": 119, "mean": mean}]}


CORRECT_VECTORS = {
    "a backoff": (BACKOFF, EXACT | {"backoff": [100, 1000]}),
    "a refusal": (BACKOFF, EXACT | {"jitter": 1.1, "exception": "IllegalArgumentException"}),
    "factors": (BACKOFF, FACTORS | {"draws": [[0, 1.1, 110], [9, 1.1, 1000]]}),
    "a range": (BACKOFF, range_from(80, mean=99.5)),
    "an event": (STATES, CONNECTIONS | {"events": [CONNECTING | {"reconnect_backoff_ms": 45}]}),
    "a config": (CONFIG, ACCEPTED | {"config": {"linger.ms": "7"}, "effective": {"linger.ms": 7}}),
    "a rejected config": (CONFIG, REJECTED),
}


@pytest.mark.parametrize(("kind", "vector"), CORRECT_VECTORS.values(), ids=CORRECT_VECTORS)
def test_check_accepts_a_correct_vector(kind: str, vector: Vector) -> None:
    assert KINDS[kind](vector) == []


INCORRECT_VECTORS = {
    "another backoff": (BACKOFF, EXACT | {"backoff": [100, 999]}),
    "a missing rejection": (BACKOFF, EXACT | {"exception": "IllegalArgumentException"}),
    "an unexpected rejection of a backoff": (BACKOFF, EXACT | {"jitter": 1.1, "backoff": [100]}),
    "another value": (BACKOFF, FACTORS | {"draws": [[0, 1.1, 111]]}),
    "a missing draw": (BACKOFF, FACTORS | {"max": 100, "draws": [[0, 1.1, 100]]}),
    "a value below the minimum": (BACKOFF, range_from(79, mean=99.5)),
    "another mean": (BACKOFF, range_from(80, mean=104.0)),
    "an event": (STATES, CONNECTIONS | {"events": [CONNECTING | {"reconnect_backoff_ms": 44}]}),
    "an extra draw": (STATES, CONNECTIONS | {"events": [CONNECTING | {"random_factors": [0.9, 1.1, 1.0]}]}),
    "another default": (CONFIG, ACCEPTED | {"effective": {"linger.ms": 0}}),
    "a missing warning": (CONFIG, ACCEPTED | {"warnings": ["static_retry_backoff"]}),
    "an unexpected rejection of a config": (CONFIG, {"config": {"acks": "2"}, "accepted": True}),
    "a missing value": (CONFIG, REJECTED | {"config": {}}),
}


@pytest.mark.parametrize(("kind", "vector"), INCORRECT_VECTORS.values(), ids=INCORRECT_VECTORS)
def test_check_rejects(kind: str, vector: Vector) -> None:
    assert len(KINDS[kind](vector)) == 1
