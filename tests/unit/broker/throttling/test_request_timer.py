"""Request quotas (KIP-124): charges, exemptions, and the combination with byte quotas.

With a quota of 10 %, a request of 1,000 + x ms is x ms above the quota of ten windows: throttle time 10 x ms, at most
1 s. With a quota of 1,000 bytes/s, a request of 10,000 + x bytes has a throttle time of x ms.
"""

import pytest

from sluice.broker.requests.context import RequestContext
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.join_group import JoinGroupRequest
from sluice.protocol.apis.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.quotas.manager import ClientUsage
from tests.support.groups import protocol
from tests.support.records import batch_of, fetch, fetched_bytes, produce, produce_of
from tests.support.slow_handlers import slow_handlers
from tests.support.virtual_broker import Client, VirtualBroker, broker_with_topic

QUOTA = {"request_percentage": 10.0}
EVERYONE = {"client-id": None}
WORK_MS = 1_030  # a throttle time of 300 ms


def broker_with_quota(monkeypatch: pytest.MonkeyPatch, profile: str, *overrides: str) -> VirtualBroker:
    """Return a broker with a request quota; every request takes WORK_MS."""
    broker = broker_with_topic(f"quota.profile={profile}", *overrides)
    broker.broker.cluster.client_quotas.alter(EVERYONE, QUOTA)
    slow_handlers(monkeypatch, broker, WORK_MS)
    return broker


def request_usages(broker: VirtualBroker) -> list[ClientUsage]:
    assert broker.broker.quotas.request is not None
    return broker.broker.quotas.request.snapshot(broker.clock.wall_ms())


def charged_ms(broker: VirtualBroker) -> float:
    (usage,) = request_usages(broker)
    return round(usage.rate * usage.window_size_ms / 100, 3)


def throttled_by(broker: VirtualBroker) -> dict[str, int]:
    """Return the total throttle time (ms) by kind of quota."""
    usages = {manager.kind: manager.snapshot(broker.clock.wall_ms()) for manager in broker.broker.quotas}
    totals = {kind: sum(usage.throttle_time_total_ms for usage in found) for kind, found in usages.items()}
    return {kind: total for kind, total in totals.items() if total}


def responses(client: Client) -> list[tuple[str, float, int]]:
    """Return API, time (ms) and throttle time of each response."""
    return [(response.api, response.at_ms, response.throttle_time_ms) for response in client.take_responses()]


def is_read(client: Client) -> bool:
    return client.transport.reading


MUTED = [("ApiVersions", WORK_MS, 300)]
HELD = [("ApiVersions", WORK_MS + 300, 300)]


MODES = [
    ("kafka-4.4", 1, MUTED),
    ("kafka-2.0", 3, MUTED),
    ("by-version", 2, MUTED),
    ("by-version", 1, HELD),
    ("kip-13", 3, HELD),
    ("kafka-1.1", 3, HELD),
]


@pytest.mark.parametrize(("profile", "version", "expected"), MODES)
def test_request_above_the_request_quota_is_throttled_by_the_mode_of_the_profile(
    monkeypatch: pytest.MonkeyPatch, profile: str, version: int, expected: list[tuple[str, float, int]]
) -> None:
    broker = broker_with_quota(monkeypatch, profile)
    client = broker.client()
    client.send(ApiVersionsRequest(client_software_name="t", client_software_version="1"), version)
    broker.advance(299)
    assert responses(client) == (MUTED if expected == MUTED else [])
    assert not is_read(client)
    broker.advance(1)
    assert responses(client) == ([] if expected == MUTED else HELD)
    assert is_read(client)
    assert throttled_by(broker) == {"Request": 300}


def test_request_time_is_not_measured_without_a_request_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = VirtualBroker()
    slow_handlers(monkeypatch, broker, WORK_MS)
    assert broker.client().call(ApiVersionsRequest(), 1).throttle_time_ms == 0
    assert broker.broker.quotas.request is None


def test_removed_request_quota_throttles_no_client(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = broker_with_quota(monkeypatch, "kafka-4.4")
    broker.broker.cluster.client_quotas.alter(EVERYONE, {"request_percentage": None})
    assert broker.client().call(ApiVersionsRequest(), 1).throttle_time_ms == 0


def test_requests_of_one_read_are_charged_separately(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = broker_with_quota(monkeypatch, "kafka-4.4")
    broker.broker.cluster.client_quotas.alter(EVERYONE, {"request_percentage": 50.0})
    client = broker.client()
    client.send_together(*[(ApiVersionsRequest(), 0)] * 3)
    broker.advance(2 * WORK_MS)  # each of them is longer than a turn
    assert charged_ms(broker) == 3 * WORK_MS


def test_time_in_purgatory_is_not_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = broker_with_quota(monkeypatch, "kafka-4.4")
    client = broker.client()
    client.send(fetch(0, max_wait_ms=20_000), 11)
    broker.advance(20_000)
    response = client.response()
    assert (response.at_ms, response.throttle_time_ms) == (WORK_MS + 20_000, 300)
    assert charged_ms(broker) == WORK_MS, "the wait for records is not charged"


def test_requests_of_other_clients_during_the_wait_are_not_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = broker_with_quota(monkeypatch, "kafka-4.4", "group.initial.rebalance.delay.ms=5000")
    broker.broker.cluster.client_quotas.alter(EVERYONE, {"request_percentage": 1_000.0})
    joining, other = broker.client("joining"), broker.client("other")
    joining.send(
        JoinGroupRequest(group_id="group", session_timeout_ms=30_000, protocol_type="consumer", protocols=[protocol()]),
        2,
    )
    other.send(ApiVersionsRequest(), 0)
    broker.advance(5_000)
    by_client = {usage.client_id: usage.rate * usage.window_size_ms / 100 for usage in request_usages(broker)}
    assert by_client == pytest.approx({"joining": WORK_MS, "other": WORK_MS})


# -- together with other quotas ----------------------------------------------------------------------------------------

BYTES = "quota.producer.default=1000", "quota.consumer.default=1000"


TWO_QUOTAS = {
    "request time has the longer throttle time": (200, 300, {"Request": 300}),
    "equal throttle times count as request time": (300, 300, {"Request": 300}),
    "bytes have the longer throttle time": (400, 400, {"Produce": 400}),
}


@pytest.mark.parametrize(("byte_ms", "expected", "throttled_ms_by_quota"), TWO_QUOTAS.values(), ids=TWO_QUOTAS)
@pytest.mark.parametrize("profile", ["kafka-4.4", "kip-13"])
def test_produce_above_two_quotas_has_the_longer_throttle_time(
    monkeypatch: pytest.MonkeyPatch, profile: str, byte_ms: int, expected: int, throttled_ms_by_quota: dict[str, int]
) -> None:
    broker = broker_with_quota(monkeypatch, profile, *BYTES)
    client = broker.client()
    client.send(produce_of(10_000 + byte_ms, 9, "client"), 9)
    broker.advance(5_000)
    held_ms = 0 if profile == "kafka-4.4" else expected
    assert responses(client) == [("Produce", WORK_MS + held_ms, expected)]
    assert throttled_by(broker) == throttled_ms_by_quota


@pytest.mark.parametrize("byte_ms", [0, 200])
def test_kafka_1_1_adds_both_throttle_times_of_a_produce(monkeypatch: pytest.MonkeyPatch, byte_ms: int) -> None:
    broker = broker_with_quota(monkeypatch, "kafka-1.1", *BYTES)
    client = broker.client()
    client.send(produce_of(10_000 + byte_ms, 3, "client"), 3)
    broker.advance(byte_ms + 299)
    assert responses(client) == []
    broker.advance(1)
    both_ms = byte_ms + 300
    assert responses(client) == [("Produce", WORK_MS + both_ms, both_ms)]
    assert throttled_by(broker) == ({"Produce": byte_ms} if byte_ms else {}) | {"Request": 300}


def test_kafka_1_1_holds_a_fetch_that_exceeds_only_the_request_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = broker_with_topic("quota.profile=kafka-1.1", *BYTES)
    broker.client("producer").call(produce(9, batch_of(9_000)), 9)
    broker.broker.cluster.client_quotas.alter(EVERYONE, QUOTA)
    slow_handlers(monkeypatch, broker, WORK_MS)
    client = broker.client()
    client.send(fetch(0), 4)
    broker.advance(5_000)
    response = client.response()
    assert (response.at_ms, response.throttle_time_ms) == (WORK_MS + 300, 300)
    assert len(fetched_bytes(response.message)) == 9_000


def broker_with_records(monkeypatch: pytest.MonkeyPatch, profile: str, *overrides: str) -> VirtualBroker:
    broker = broker_with_quota(monkeypatch, profile, *overrides)
    topic = broker.broker.cluster.topics["t"]
    topic.partitions[0].log.append(memoryview(batch_of(9_000)), broker.clock.wall_ms(), 0)
    return broker


def test_fetch_above_only_the_request_quota_returns_no_records_and_charges_no_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = broker_with_records(monkeypatch, "kafka-4.4", "quota.consumer.default=1000000")
    client = broker.client()
    response = client.exchange(fetch(0), 11)
    assert (response.at_ms, response.throttle_time_ms, response.message.responses) == (WORK_MS, 300, [])
    (usage,) = broker.broker.quotas.fetch.snapshot(broker.clock.wall_ms())
    assert usage.rate == 0.0
    assert throttled_by(broker) == {"Request": 300}


def test_throttled_fetch_without_a_byte_quota_leaves_no_negative_byte_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    # Kafka subtracts the bytes from a sensor that was never charged, so its byte-rate becomes negative.
    broker = broker_with_records(monkeypatch, "kafka-4.4")
    client = broker.client()
    assert client.exchange(fetch(0), 11).throttle_time_ms == 300
    assert broker.broker.quotas.fetch.snapshot(broker.clock.wall_ms()) == []


def test_held_fetch_reads_after_the_longer_of_two_throttle_times(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = broker_with_records(monkeypatch, "kip-13", "quota.consumer.default=1000000")
    client = broker.client()
    client.send(fetch(0), 4)
    broker.advance(299)
    assert client.take_responses() == []
    assert broker.partition().traffic.bytes_out == 0
    broker.advance(1)
    response = client.response()
    assert (response.at_ms, response.throttle_time_ms) == (WORK_MS + 300, 300)
    assert len(fetched_bytes(response.message)) == 9_000


# -- exempt requests ---------------------------------------------------------------------------------------------------


def exempt_ms(broker: VirtualBroker) -> float:
    assert broker.broker.quotas.request is not None
    rate = broker.broker.quotas.request.exempt_request_time(broker.clock.wall_ms())
    return round(rate * (30_000 + WORK_MS) / 100, 3)  # recorded at the start of the request


def test_produce_with_acks_0_is_exempt(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = broker_with_quota(monkeypatch, "kafka-4.4")
    client = broker.client()
    client.send(produce(9, acks=0), 9)
    assert client.transport.reading
    assert (request_usages(broker), exempt_ms(broker)) == ([], WORK_MS)


@pytest.mark.parametrize("profile", ["by-version", "kip-13", "kafka-1.1", "kafka-4.4"])
def test_fetch_of_a_follower_is_exempt(monkeypatch: pytest.MonkeyPatch, profile: str) -> None:
    broker = broker_with_quota(monkeypatch, profile)
    request = fetch(0)
    request.replica_id = 2
    client = broker.client()
    assert client.exchange(request, 11).throttle_time_ms == 0
    assert (request_usages(broker), exempt_ms(broker)) == ([], WORK_MS)


EXEMPTIONS = {
    "authorized: exempt": (ErrorCode.NONE, True),
    "not authorized: throttled": (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, False),
}


@pytest.mark.parametrize(("code", "reading"), EXEMPTIONS.values(), ids=EXEMPTIONS)
def test_request_between_brokers_is_exempt_if_authorized(
    monkeypatch: pytest.MonkeyPatch, code: ErrorCode, reading: bool
) -> None:
    broker = broker_with_quota(monkeypatch, "kafka-4.4")
    client = broker.client()
    client.call(WriteTxnMarkersRequest(), 1)
    (route,) = broker.server.exchange.routes

    def handle(ctx: RequestContext, request: Message, services: object) -> WriteTxnMarkersResponse:
        broker.clock.advance(WORK_MS)
        ctx.error_code = code
        return WriteTxnMarkersResponse()

    monkeypatch.setattr(route, "handle", handle)
    client.call(WriteTxnMarkersRequest(), 1)
    assert client.transport.reading == reading
