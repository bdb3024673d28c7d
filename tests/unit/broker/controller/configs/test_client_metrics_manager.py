"""KIP-714: subscriptions matched to clients, push intervals, and each error that a client can get."""

import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.broker.broker import Broker
from sluice.broker.server.metrics import registry
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from sluice.protocol.apis.push_telemetry import PushTelemetryRequest
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.compression import GZIP, NAMES, NONE, ZSTD, compress
from sluice.protocol.types import ZERO_UUID
from sluice.protocol.uuids import printed_uuid, random_uuid
from tests.support.held_worker import HeldWorker
from tests.support.virtual_broker import Client, VirtualBroker

INTERVAL_MS = 1000
ID = bytes(range(16))
METRICS = b"metrics of a client " * 100


def broker_with(**subscriptions: dict[str, str]) -> VirtualBroker:
    """Return a broker that accepts metrics and has these subscriptions by name."""
    broker = VirtualBroker("sluice.telemetry=true", "telemetry.max.bytes=5000")
    for name, own in subscriptions.items():
        broker.broker.configs.client_metrics.configure(name, own)
    return broker


def subscribed() -> tuple[VirtualBroker, Client, Any]:
    """Return a broker, a client and its telemetry subscription."""
    broker = broker_with(all={"metrics": "*", "interval.ms": str(INTERVAL_MS)})
    client = broker.client("c")
    return broker, client, get(client)


def get(client: Client, client_instance_id: bytes = ID) -> Any:
    return client.call(GetTelemetrySubscriptionsRequest(client_instance_id=client_instance_id), 0)


def push(
    client: Client,
    subscription_id: int,
    metrics: bytes = METRICS,
    *,
    compression: int = NONE,
    client_instance_id: bytes = ID,
    terminating: bool = False,
) -> int:
    """Push metrics and return the error code."""
    request = PushTelemetryRequest(
        client_instance_id=client_instance_id,
        subscription_id=subscription_id,
        terminating=terminating,
        compression_type=compression,
        metrics=metrics,
    )
    code = client.call(request, 0).error_code
    assert isinstance(code, int)
    return code


def counters(broker: VirtualBroker) -> tuple[int, int]:
    return broker.broker.telemetry.pushes, broker.broker.telemetry.pushed_bytes


def test_client_without_an_id_gets_a_random_one() -> None:
    client = broker_with().client()
    ids = {get(client, ZERO_UUID).client_instance_id for _ in range(10)}
    assert len(ids) == 10
    assert {uuid.UUID(bytes=one).version for one in ids} == {4}


def test_client_without_subscription_gets_no_metrics_and_a_five_minute_interval() -> None:
    response = get(broker_with(others={"metrics": "a.", "match": "client_id=other"}).client("c"))
    assert (response.client_instance_id, response.requested_metrics, response.push_interval_ms) == (ID, [], 300_000)
    assert (response.telemetry_max_bytes, response.delta_temporality) == (5000, True)
    assert [NAMES[codec] for codec in response.accepted_compression_types] == ["zstd", "lz4", "gzip", "snappy"]


MATCHES = {
    "client id": ("client_id=c.*", True),
    "part of the client id": ("client_id=lient", False),
    "software name and version": ("client_software_name=tester,client_software_version=1\\..*", True),
    "one of two conditions": ("client_software_name=tester,client_id=other", False),
    "source address and port": ("client_source_address=127\\.0\\.0\\.1,client_source_port=40001", True),
    "client instance id": (f"client_instance_id={printed_uuid(ID)}", True),
}


@pytest.mark.parametrize(("match", "matches"), MATCHES.values(), ids=MATCHES)
def test_subscription_applies_to_clients_that_match(match: str, matches: bool) -> None:
    client = broker_with(some={"metrics": "a.", "match": match}).client("client")
    client.call(ApiVersionsRequest(client_software_name="tester", client_software_version="1.2"), 3)
    assert get(client).requested_metrics == (["a."] if matches else [])


def test_subscriptions_merge_their_metrics_and_use_the_shortest_interval() -> None:
    response = get(
        broker_with(
            one={"metrics": "b.,a.", "interval.ms": "500"},
            two={"metrics": "a.,c.", "interval.ms": "200"},
            three={"metrics": "*", "interval.ms": "100", "match": "client_id=other"},
        ).client()
    )
    assert (response.requested_metrics, response.push_interval_ms) == (["a.", "b.", "c."], 200)


def test_subscription_to_all_metrics_replaces_prefixes() -> None:
    response = get(broker_with(one={"metrics": "b."}, two={"metrics": "*"}).client())
    assert response.requested_metrics == ["*"]


@pytest.mark.parametrize("codec", range(5), ids=NAMES)
def test_push_is_decompressed_and_counted(codec: int) -> None:
    broker, client, subscription = subscribed()
    assert push(client, subscription.subscription_id, compress(codec, METRICS, 2), compression=codec) == 0
    assert counters(broker) == (1, len(METRICS))


def test_telemetry_metrics_count_accepted_pushes_and_bytes() -> None:
    broker, client, subscription = subscribed()
    metrics = registry(broker.cluster_server)

    def samples() -> list[float | None]:
        return [metrics.get_sample_value(f"sluice_telemetry_{what}_total") for what in ("pushes", "bytes")]

    assert push(client, subscription.subscription_id) == 0
    assert samples() == [1, len(METRICS)]


def test_telemetry_metrics_are_zero_without_pushes(broker: VirtualBroker) -> None:
    assert registry(broker.cluster_server).get_sample_value("sluice_telemetry_pushes_total") == 0
    assert Broker.telemetry.if_made(broker.broker) is None


def test_push_without_metrics_is_accepted_and_not_counted() -> None:
    broker, client, subscription = subscribed()
    assert push(client, subscription.subscription_id, b"") == 0
    assert counters(broker) == (0, 0)


def test_push_after_the_first_is_throttled_until_its_interval_has_passed() -> None:
    broker, client, subscription = subscribed()
    broker.advance(1)  # clients put a jitter on their first push
    codes = []
    for wait_ms in (0, INTERVAL_MS - 1, 1, INTERVAL_MS):
        broker.advance(wait_ms)
        codes.append(push(client, subscription.subscription_id))
    early = ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert codes == [0, early, 0, 0]


def test_subscription_request_is_throttled_until_the_interval_has_passed() -> None:
    broker, client, _ = subscribed()
    broker.advance(INTERVAL_MS - 1)
    early = get(client)
    assert (early.error_code, early.client_instance_id) == (ErrorCode.THROTTLING_QUOTA_EXCEEDED, ZERO_UUID)
    broker.advance(1)
    assert get(client).error_code == 0


def test_push_fails_after_a_subscription_change_and_client_can_resubscribe() -> None:
    broker, client, before = subscribed()
    assert push(client, before.subscription_id) == 0
    broker.broker.configs.client_metrics.configure("more", {"interval.ms": "200"})
    assert push(client, before.subscription_id) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    after = get(client)
    assert (after.error_code, after.push_interval_ms) == (0, 200)
    assert after.subscription_id != before.subscription_id
    broker.advance(200)
    assert push(client, after.subscription_id) == 0


def test_client_can_resubscribe_after_an_unsupported_compression() -> None:
    _, client, subscription = subscribed()
    unknown = push(client, subscription.subscription_id, compression=5)
    assert unknown == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert get(client).error_code == 0


@pytest.mark.parametrize("last", [b"", METRICS], ids=["without metrics", "with metrics"])
def test_terminating_push_is_accepted_at_any_time_but_only_once(last: bytes) -> None:
    broker, client, subscription = subscribed()
    broker.advance(1)
    assert push(client, subscription.subscription_id) == 0
    assert push(client, subscription.subscription_id, last, terminating=True) == 0
    broker.advance(INTERVAL_MS)
    assert push(client, subscription.subscription_id, terminating=True) == ErrorCode.INVALID_REQUEST


INVALID_PUSHES = {
    "all-zero client instance id": ({"client_instance_id": ZERO_UUID}, ErrorCode.INVALID_REQUEST),
    "reserved client instance id": ({"client_instance_id": bytes(15) + b"\1"}, ErrorCode.INVALID_REQUEST),
    "unknown subscription": ({"subscription_id": 1}, ErrorCode.UNKNOWN_SUBSCRIPTION_ID),
    "unsupported compression": ({"compression": -1}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    "metrics too large": ({"metrics": bytes(5001)}, ErrorCode.TELEMETRY_TOO_LARGE),
    "data that is not compressed": ({"compression": GZIP}, ErrorCode.INVALID_RECORD),
    "truncated compressed data": (
        {"compression": GZIP, "metrics": compress(GZIP, METRICS, 2)[:-9]},
        ErrorCode.INVALID_RECORD,
    ),
}


@pytest.mark.parametrize(("change", "code"), INVALID_PUSHES.values(), ids=INVALID_PUSHES)
def test_invalid_push_is_rejected_and_not_counted(change: dict[str, Any], code: ErrorCode) -> None:
    broker, client, subscription = subscribed()
    assert push(client, **({"subscription_id": subscription.subscription_id} | change)) == code
    assert counters(broker) == (0, 0)


LARGE_PUSHES = {
    "valid": (1024 * 1024 + 1, False, ErrorCode.NONE),
    "broken at the end": (4 * 1024 * 1024, True, ErrorCode.INVALID_RECORD),
    "too large": (100 * 1024 * 1024 + 1, False, ErrorCode.INVALID_RECORD),
}


@pytest.mark.parametrize(("size", "broken", "code"), LARGE_PUSHES.values(), ids=LARGE_PUSHES)
def test_large_metrics_are_decompressed_in_the_worker(size: int, broken: bool, code: ErrorCode) -> None:
    """A few KB can become 100 MB, which would hold the event loop for 0.1 s."""
    broker, client, subscription = subscribed()
    worker = broker.cluster.runtime.worker = HeldWorker()
    metrics = compress(ZSTD, bytes(size), 2)
    request = PushTelemetryRequest(
        client_instance_id=ID,
        subscription_id=subscription.subscription_id,
        compression_type=ZSTD,
        metrics=metrics[:-1] if broken else metrics,
    )
    client.send(request, 0)
    assert (len(worker), client.responses) == (1, [])
    worker.work()
    assert client.response().message.error_code == code
    assert counters(broker) == ((0, 0) if code else (1, size))


def test_client_state_expires_after_long_silence() -> None:
    broker, client, subscription = subscribed()
    assert push(client, subscription.subscription_id, terminating=True) == 0
    broker.advance(60_001)
    assert push(client, subscription.subscription_id) == 0


def test_client_state_outlives_a_connection_that_the_broker_closes() -> None:
    broker = broker_with()
    client = broker.client()
    get(client)
    client.send_bytes(b"\0\0\0\4\x7f\xff\0\0")  # an unknown API key
    assert not client.is_open
    assert get(broker.client()).error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_newest_client_state_of_a_connection_ends_when_the_client_closes_it() -> None:
    broker = broker_with()
    client, other = broker.client(), broker.client()
    older, newest, elsewhere = (bytes([n]) * 16 for n in (1, 2, 3))
    for one, where in ((older, client), (newest, client), (elsewhere, other)):
        get(where, one)
    client.leave()
    early = ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert [get(other, one).error_code for one in (older, newest, elsewhere)] == [early, 0, early]


def test_least_recently_active_client_is_evicted_above_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluice.broker.controller.configs.client_metrics_manager._MOST_INSTANCES", 2)
    client = broker_with().client()
    ids = [bytes([n]) * 16 for n in (1, 2, 3)]
    for one in (ids[0], ids[1], ids[0], ids[2]):
        get(client, one)
    assert [get(client, one).error_code for one in (ids[0], ids[1])] == [ErrorCode.THROTTLING_QUOTA_EXCEEDED, 0]


@given(st.randoms(use_true_random=False))
def test_random_uuid_never_starts_with_a_hyphen(random: Any) -> None:
    made = random_uuid(random.randbytes)
    assert uuid.UUID(bytes=made).version == 4
    assert not printed_uuid(made).startswith("-")
    assert len(printed_uuid(made)) == 22
