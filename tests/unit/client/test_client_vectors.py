"""The public client vectors, made with Apache Kafka's own classes, and tests that the checks can fail."""

import pytest

from tests.support.vectors import vectors
from tests.vectors import Vector
from tests.vectors.client import KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_vector_is_reproduced(kind: str) -> None:
    failures = [
        f"{vector.get('id')}: {failure}" for vector in vectors(f"{kind}*.jsonl*") for failure in KINDS[kind](vector)
    ]
    assert failures == []


EXACT: Vector = {"kind": "exact", "initial": 100, "multiplier": 2, "max": 1000, "jitter": 0.0, "attempts": [0, 4]}
FACTORS: Vector = {"kind": "factors", "initial": 100, "multiplier": 2, "max": 1000, "jitter": 0.2}
RANGE: Vector = FACTORS | {"kind": "range"}
CONNECTIONS: Vector = {
    "reconnect_backoff_ms": 50,
    "reconnect_backoff_max_ms": 1000,
    "connection_setup_timeout_ms": 10_000,
    "connection_setup_timeout_max_ms": 30_000,
}
CONNECTING = {"t": 5, "id": "0", "op": "connecting", "host": "b", "random_factors": [0.9, 1.1]}


CORRECT_VECTORS = {
    "a backoff": ("exponential_backoff", EXACT | {"backoff": [100, 1000]}),
    "a refusal": ("exponential_backoff", EXACT | {"jitter": 1.1, "exception": "IllegalArgumentException"}),
    "factors": ("exponential_backoff", FACTORS | {"draws": [[0, 1.1, 110], [9, 1.1, 1000]]}),
    "a range": ("exponential_backoff", RANGE | {"ranges": [{"attempt": 0, "min": 80, "max": 119, "mean": 99.5}]}),
    "an event": ("connection_states", CONNECTIONS | {"events": [CONNECTING | {"reconnect_backoff_ms": 45}]}),
    "a config": (
        "producer_config",
        {"config": {"linger.ms": "7"}, "accepted": True, "effective": {"linger.ms": 7}, "warnings": []},
    ),
    "a rejected config": (
        "producer_config",
        {"config": {"acks": "2"}, "accepted": False, "exception": "ConfigException"},
    ),
}


@pytest.mark.parametrize(("kind", "vector"), CORRECT_VECTORS.values(), ids=CORRECT_VECTORS)
def test_check_accepts_a_correct_vector(kind: str, vector: Vector) -> None:
    assert KINDS[kind](vector) == []


@pytest.mark.parametrize(
    ("kind", "vector"),
    [
        pytest.param("exponential_backoff", EXACT | {"backoff": [100, 999]}, id="another backoff"),
        pytest.param(
            "exponential_backoff", EXACT | {"exception": "IllegalArgumentException"}, id="a missing rejection"
        ),
        pytest.param("exponential_backoff", EXACT | {"jitter": 1.1, "backoff": [100]}, id="an unexpected rejection"),
        pytest.param("exponential_backoff", FACTORS | {"draws": [[0, 1.1, 111]]}, id="another value"),
        pytest.param("exponential_backoff", FACTORS | {"max": 100, "draws": [[0, 1.1, 100]]}, id="a missing draw"),
        pytest.param(
            "exponential_backoff",
            RANGE | {"ranges": [{"attempt": 0, "min": 79, "max": 119, "mean": 99.5}]},
            id="a value below the minimum",
        ),
        pytest.param(
            "exponential_backoff",
            RANGE | {"ranges": [{"attempt": 0, "min": 80, "max": 119, "mean": 104.0}]},
            id="another mean",
        ),
        pytest.param(
            "connection_states", CONNECTIONS | {"events": [CONNECTING | {"reconnect_backoff_ms": 44}]}, id="an event"
        ),
        pytest.param(
            "connection_states",
            CONNECTIONS | {"events": [CONNECTING | {"random_factors": [0.9, 1.1, 1.0]}]},
            id="an extra draw",
        ),
        pytest.param(
            "producer_config",
            {"config": {}, "accepted": True, "effective": {"linger.ms": 0}, "warnings": []},
            id="another default",
        ),
        pytest.param(
            "producer_config",
            {"config": {}, "accepted": True, "effective": {}, "warnings": ["static_retry_backoff"]},
            id="a missing warning",
        ),
        pytest.param("producer_config", {"config": {"acks": "2"}, "accepted": True}, id="an unexpected rejection"),
        pytest.param(
            "producer_config", {"config": {}, "accepted": False, "exception": "ConfigException"}, id="a missing value"
        ),
    ],
)
def test_check_rejects(kind: str, vector: Vector) -> None:
    assert len(KINDS[kind](vector)) == 1
