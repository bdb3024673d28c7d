"""Client metrics (KIP-714): subscriptions, and the order of the checks of what clients push."""

from typing import Any

from sluice.broker.controller.configs.resource import CLIENT_METRICS
from tests.support.messages import request
from tests.support.wire import error_codes
from tools.differential.case import case
from tools.differential.session import Session, until

_ANY_ID, _RESERVED_ID = bytes(16), bytes(15) + b"\1"
_MAX_BYTES = 1024 * 1024
_INTERVAL_MS = 3_600_000  # longer than the case


def _id(number: int) -> bytes:
    return b"telemetry" + bytes(6) + number.to_bytes(1)


def _get(session: Session, instance: bytes) -> Any:
    """Compare all but the ids, which are random."""
    known = ["error_code", "push_interval_ms", "requested_metrics", "accepted_compression_types"]
    known += ["telemetry_max_bytes", "delta_temporality"]
    found = request("GetTelemetrySubscriptions", client_instance_id=instance)
    return session.call(found, only=known, unordered=["requested_metrics"])


def _push(session: Session, instance: bytes, subscription: int, **fields: Any) -> None:
    session.call(
        request("PushTelemetry", client_instance_id=instance, subscription_id=subscription, **{"metrics": b""} | fields)
    )


@case()
def subscriptions_and_pushes(session: Session) -> None:
    values = {"metrics": "org.apache.a,org.apache.b", "interval.ms": str(_INTERVAL_MS), "match": "client_id=differ.*"}
    configs = [{"name": name, "value": value} for name, value in values.items()]
    resources = [{"resource_type": CLIENT_METRICS, "resource_name": "telemetry", "configs": configs}]
    assert not error_codes(session.request(request("IncrementalAlterConfigs", resources=resources)))
    numbers = iter(range(100, 200))

    def get_new() -> Any:
        return session.request(request("GetTelemetrySubscriptions", client_instance_id=_id(next(numbers))))

    until(get_new, lambda found: found.requested_metrics)
    for instance in (_ANY_ID, _RESERVED_ID):
        _get(session, instance)
        _push(session, instance, 0)
    _get(session, _id(1))
    subscribed = _get(session, _id(2)).subscription_id
    _get(session, _id(2))
    _push(session, _id(2), subscribed + 1)
    _get(session, _id(2))
    _push(session, _id(2), subscribed)
    _push(session, _id(2), subscribed, terminating=True, compression_type=9)
    _get(session, _id(2))
    _push(session, _id(2), subscribed, terminating=True)
    _push(session, _id(2), subscribed)
    _push(session, _id(2), subscribed)
    pushes: list[dict[str, Any]] = [
        {"compression_type": 9},
        {"compression_type": -1, "metrics": bytes(_MAX_BYTES + 1)},
        {"metrics": bytes(_MAX_BYTES + 1)},
        {"terminating": True},
        {},
    ]
    for number, fields in enumerate(pushes, 3):
        subscribed = _get(session, _id(number)).subscription_id
        _push(session, _id(number), subscribed, **fields)
        _get(session, _id(number))
        _push(session, _id(number), subscribed)
    _push(session, _id(20), 1)
