"""KIP-714: subscriptions by what clients are, pushes in their interval, and each error that a client can get."""

import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.broker.server.metrics import registry
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from sluice.protocol.apis.push_telemetry import PushTelemetryRequest
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.compression import GZIP, NAMES, NONE, compress
from sluice.protocol.types import ZERO_UUID
from sluice.protocol.uuids import printed_uuid, random_uuid
from tests.support.virtual_broker import Client, VirtualBroker

INTERVAL_MS = 1000
ID = bytes(range(16))
METRICS = b"metrics of a client " * 100


def broker_with(**subscriptions: dict[str, str]) -> VirtualBroker:
    """A broker that takes metrics, with these subscriptions by name."""
    broker = VirtualBroker("sluice.telemetry=true", "telemetry.max.bytes=5000")
    for name, own in subscriptions.items():
        broker.broker.configs.client_metrics.configure(name, own)
    return broker


def subscribed() -> tuple[VirtualBroker, Client, Any]:
    """A client that has asked for its subscription, and the answer."""
    broker = broker_with(all={"metrics": "*", "interval.ms": str(INTERVAL_MS)})
    client = broker.client("c")
    return broker, client, get(client)


def get(client: Client, client_instance_id: bytes = ID) -> Any:
    return client.ask(GetTelemetrySubscriptionsRequest(client_instance_id=client_instance_id), 0)


def push(
    client: Client,
    subscription_id: int,
    metrics: bytes = METRICS,
    *,
    compression: int = NONE,
    client_instance_id: bytes = ID,
    terminating: bool = False,
) -> int:
    """The error code of the answer."""
    request = PushTelemetryRequest(
        client_instance_id=client_instance_id,
        subscription_id=subscription_id,
        terminating=terminating,
        compression_type=compression,
        metrics=metrics,
    )
    code = client.ask(request, 0).error_code
    assert isinstance(code, int)
    return code


def counted(broker: VirtualBroker) -> tuple[int, int]:
    return broker.broker.telemetry.pushes, broker.broker.telemetry.pushed_bytes


def test_a_client_without_an_id_gets_one() -> None:
    client = broker_with().client()
    ids = {get(client, ZERO_UUID).client_instance_id for _ in range(10)}
    assert len(ids) == 10
    assert {uuid.UUID(bytes=one).version for one in ids} == {4}


def test_a_client_that_nobody_subscribed_to_sends_nothing_every_five_minutes() -> None:
    answer = get(broker_with(others={"metrics": "a.", "match": "client_id=somebody"}).client("c"))
    assert (answer.client_instance_id, answer.requested_metrics, answer.push_interval_ms) == (ID, [], 300_000)
    assert (answer.telemetry_max_bytes, answer.delta_temporality) == (5000, True)
    assert [NAMES[codec] for codec in answer.accepted_compression_types] == ["zstd", "lz4", "gzip", "snappy"]


@pytest.mark.parametrize(
    ("match", "matches"),
    [
        pytest.param("client_id=c.*", True, id="its client id"),
        pytest.param("client_id=lient", False, id="a part of its client id"),
        pytest.param("client_software_name=tester,client_software_version=1\\..*", True, id="its software"),
        pytest.param("client_software_name=tester,client_id=nobody", False, id="one of two"),
        pytest.param("client_source_address=127\\.0\\.0\\.1,client_source_port=40001", True, id="where it is"),
        pytest.param(f"client_instance_id={printed_uuid(ID)}", True, id="its instance id"),
    ],
)
def test_a_subscription_is_for_those_that_match(match: str, matches: bool) -> None:
    client = broker_with(some={"metrics": "a.", "match": match}).client("client")
    client.ask(ApiVersionsRequest(client_software_name="tester", client_software_version="1.2"), 3)
    assert get(client).requested_metrics == (["a."] if matches else [])


def test_of_several_subscriptions_all_metrics_and_the_shortest_interval_hold() -> None:
    answer = get(
        broker_with(
            one={"metrics": "b.,a.", "interval.ms": "500"},
            two={"metrics": "a.,c.", "interval.ms": "200"},
            three={"metrics": "*", "interval.ms": "100", "match": "client_id=nobody"},
        ).client()
    )
    assert (answer.requested_metrics, answer.push_interval_ms) == (["a.", "b.", "c."], 200)


def test_all_metrics_are_all_metrics() -> None:
    answer = get(broker_with(one={"metrics": "b."}, two={"metrics": "*"}).client())
    assert answer.requested_metrics == ["*"]


@pytest.mark.parametrize("codec", range(5), ids=NAMES)
def test_a_push_is_unpacked_and_counted(codec: int) -> None:
    broker, client, subscription = subscribed()
    assert push(client, subscription.subscription_id, compress(codec, METRICS, 2), compression=codec) == 0
    assert counted(broker) == (1, len(METRICS))


def test_metrics_tell_how_much_was_accepted() -> None:
    broker, client, subscription = subscribed()
    metrics = registry(broker.cluster_server)

    def told() -> list[float | None]:
        return [metrics.get_sample_value(f"sluice_telemetry_{what}_total") for what in ("pushes", "bytes")]

    assert push(client, subscription.subscription_id) == 0
    assert told() == [1, len(METRICS)]


def test_metrics_tell_of_nothing_where_nobody_pushed() -> None:
    broker = VirtualBroker()
    assert registry(broker.cluster_server).get_sample_value("sluice_telemetry_pushes_total") == 0
    assert broker.broker.telemetry_in_use is None


def test_a_push_of_nothing_is_accepted() -> None:
    broker, client, subscription = subscribed()
    assert push(client, subscription.subscription_id, b"") == 0
    assert counted(broker) == (0, 0)


def test_after_its_first_a_client_may_push_when_its_interval_is_over() -> None:
    broker, client, subscription = subscribed()
    broker.advance(1)  # clients put a jitter on their first push
    codes = []
    for wait_ms in (0, INTERVAL_MS - 1, 1, INTERVAL_MS):
        broker.advance(wait_ms)
        codes.append(push(client, subscription.subscription_id))
    early = ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert codes == [0, early, 0, 0]


def test_a_client_may_ask_again_when_its_interval_is_over() -> None:
    broker, client, _ = subscribed()
    broker.advance(INTERVAL_MS - 1)
    early = get(client)
    assert (early.error_code, early.client_instance_id) == (ErrorCode.THROTTLING_QUOTA_EXCEEDED, ZERO_UUID)
    broker.advance(1)
    assert get(client).error_code == 0


def test_a_client_whose_subscription_changed_learns_it_with_its_next_push_and_may_ask_at_once() -> None:
    broker, client, before = subscribed()
    assert push(client, before.subscription_id) == 0
    broker.broker.configs.client_metrics.configure("more", {"interval.ms": "200"})
    assert push(client, before.subscription_id) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    after = get(client)
    assert (after.error_code, after.push_interval_ms) == (0, 200)
    assert after.subscription_id != before.subscription_id
    broker.advance(200)
    assert push(client, after.subscription_id) == 0


def test_a_client_may_ask_at_once_after_a_compression_that_nobody_knows() -> None:
    _, client, subscription = subscribed()
    unknown = push(client, subscription.subscription_id, compression=5)
    assert unknown == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert get(client).error_code == 0


@pytest.mark.parametrize("last", [b"", METRICS], ids=["without metrics", "with metrics"])
def test_a_client_that_ends_may_push_at_any_time_and_never_again(last: bytes) -> None:
    broker, client, subscription = subscribed()
    broker.advance(1)
    assert push(client, subscription.subscription_id) == 0
    assert push(client, subscription.subscription_id, last, terminating=True) == 0
    broker.advance(INTERVAL_MS)
    assert push(client, subscription.subscription_id, terminating=True) == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("change", "code"),
    [
        pytest.param({"client_instance_id": ZERO_UUID}, ErrorCode.INVALID_REQUEST, id="no id: 42"),
        pytest.param(
            {"client_instance_id": bytes(15) + b"\1"}, ErrorCode.INVALID_REQUEST, id="an id that is Kafka's own: 42"
        ),
        pytest.param({"subscription_id": 1}, ErrorCode.UNKNOWN_SUBSCRIPTION_ID, id="an unknown subscription: 117"),
        pytest.param({"compression": -1}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, id="no codec: 76"),
        pytest.param({"metrics": bytes(5001)}, ErrorCode.TELEMETRY_TOO_LARGE, id="more than it may: 118"),
        pytest.param({"compression": GZIP}, ErrorCode.INVALID_RECORD, id="what cannot be unpacked: 87"),
        pytest.param(
            {"compression": GZIP, "metrics": compress(GZIP, METRICS, 2)[:-9]}, ErrorCode.INVALID_RECORD, id="a part: 87"
        ),
    ],
)
def test_a_push_that_is_wrong_is_refused_and_not_counted(change: dict[str, Any], code: ErrorCode) -> None:
    broker, client, subscription = subscribed()
    assert push(client, **({"subscription_id": subscription.subscription_id} | change)) == code
    assert counted(broker) == (0, 0)


def test_a_client_that_was_silent_for_long_begins_anew() -> None:
    broker, client, subscription = subscribed()
    assert push(client, subscription.subscription_id, terminating=True) == 0
    broker.advance(60_001)
    assert push(client, subscription.subscription_id) == 0


def test_of_very_many_clients_the_longest_silent_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluice.broker.controller.configs.client_metrics_manager._MOST_INSTANCES", 2)
    client = broker_with().client()
    ids = [bytes([n]) * 16 for n in (1, 2, 3)]
    for one in (ids[0], ids[1], ids[0], ids[2]):
        get(client, one)
    assert [get(client, one).error_code for one in (ids[0], ids[1])] == [ErrorCode.THROTTLING_QUOTA_EXCEEDED, 0]


@given(st.randoms(use_true_random=False))
def test_a_random_id_never_reads_as_an_option(random: Any) -> None:
    made = random_uuid(random.randbytes)
    assert uuid.UUID(bytes=made).version == 4
    assert not printed_uuid(made).startswith("-")
    assert len(printed_uuid(made)) == 22
