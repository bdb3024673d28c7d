"""Quotas of request time (KIP-124): what is charged to whom, and how that wait goes together with others.

The arithmetic of the tests: with a quota of 10 %, a request of 1,000 + x ms is x ms more than ten windows hold, and
waits 10 x ms, but a second at most. With 1,000 bytes/s, one of 10,000 + x bytes waits x ms.
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
from tests.support.virtual_broker import Client, VirtualBroker

QUOTA = {"request_percentage": 10.0}
EVERYONE = {"client-id": None}
WORK_MS = 1_030  # waits 300 ms


def broker_with_quota(monkeypatch: pytest.MonkeyPatch, profile: str, *overrides: str) -> VirtualBroker:
    """Each API takes WORK_MS from its first request on."""
    broker = VirtualBroker(f"quota.profile={profile}", *overrides)
    broker.topic()
    broker.broker.cluster.client_quotas.alter(EVERYONE, QUOTA)
    slow_handlers(monkeypatch, broker, WORK_MS)
    return broker


def used(broker: VirtualBroker) -> list[ClientUsage]:
    assert broker.broker.quotas.request is not None
    return broker.broker.quotas.request.snapshot(broker.clock.wall_ms())


def worked_ms(broker: VirtualBroker) -> float:
    (usage,) = used(broker)
    return round(usage.rate * usage.window_size_ms / 100, 3)


def throttled_by(broker: VirtualBroker) -> dict[str, int]:
    """Throttle time by the kind of quota that demanded it."""
    usages = {manager.kind: manager.snapshot(broker.clock.wall_ms()) for manager in broker.broker.quotas}
    totals = {kind: sum(usage.throttle_time_total_ms for usage in found) for kind, found in usages.items()}
    return {kind: total for kind, total in totals.items() if total}


def times(client: Client) -> list[tuple[str, float, int]]:
    """API, moment and throttle time of each answer."""
    return [(answer.api, answer.at_ms, answer.throttle_time_ms) for answer in client.take_answers()]


def reads(client: Client) -> bool:
    """Whether what the client sends is looked at."""
    return client.transport.reading


MUTED = [("ApiVersions", WORK_MS, 300)]
HELD = [("ApiVersions", WORK_MS + 300, 300)]


@pytest.mark.parametrize(
    ("profile", "version", "expected"),
    [
        ("kafka-4.4", 1, MUTED),
        ("kafka-2.0", 3, MUTED),
        ("by-version", 2, MUTED),
        ("by-version", 1, HELD),
        ("kip-13", 3, HELD),
        ("kafka-1.1", 3, HELD),
    ],
)
def test_any_request_over_its_quota_waits_as_the_profile_says(
    monkeypatch: pytest.MonkeyPatch, profile: str, version: int, expected: list[tuple[str, float, int]]
) -> None:
    broker = broker_with_quota(monkeypatch, profile)
    client = broker.client()
    client.send(ApiVersionsRequest(client_software_name="t", client_software_version="1"), version)
    broker.advance(299)
    assert times(client) == (MUTED if expected == MUTED else [])
    assert not reads(client)
    broker.advance(1)
    assert times(client) == ([] if expected == MUTED else HELD)
    assert reads(client)
    assert throttled_by(broker) == {"Request": 300}


def test_without_such_a_quota_no_time_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = VirtualBroker()
    slow_handlers(monkeypatch, broker, WORK_MS)
    assert broker.client().ask(ApiVersionsRequest(), 1).throttle_time_ms == 0
    assert broker.broker.quotas.request is None


def test_a_quota_that_was_removed_holds_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = broker_with_quota(monkeypatch, "kafka-4.4")
    broker.broker.cluster.client_quotas.alter(EVERYONE, {"request_percentage": None})
    assert broker.client().ask(ApiVersionsRequest(), 1).throttle_time_ms == 0


def test_requests_of_one_read_are_charged_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = broker_with_quota(monkeypatch, "kafka-4.4")
    broker.broker.cluster.client_quotas.alter(EVERYONE, {"request_percentage": 50.0})
    client = broker.client()
    client.send_together(*[(ApiVersionsRequest(), 0)] * 3)
    assert worked_ms(broker) == 3 * WORK_MS


def test_what_a_request_waits_is_not_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = broker_with_quota(monkeypatch, "kafka-4.4")
    client = broker.client()
    client.send(fetch(0, max_wait_ms=20_000), 11)
    broker.advance(20_000)
    answer = client.answer()
    assert (answer.at_ms, answer.throttle_time_ms) == (WORK_MS + 20_000, 300)
    assert worked_ms(broker) == WORK_MS, "handling, not the wait for records"


def test_what_another_client_worked_meanwhile_is_not_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = broker_with_quota(monkeypatch, "kafka-4.4", "group.initial.rebalance.delay.ms=5000")
    broker.broker.cluster.client_quotas.alter(EVERYONE, {"request_percentage": 1_000.0})
    joining, other = broker.client("joining"), broker.client("other")
    joining.send(
        JoinGroupRequest(group_id="group", session_timeout_ms=30_000, protocol_type="consumer", protocols=[protocol()]),
        2,
    )
    other.send(ApiVersionsRequest(), 0)
    broker.advance(5_000)
    by_client = {usage.client_id: usage.rate * usage.window_size_ms / 100 for usage in used(broker)}
    assert by_client == pytest.approx({"joining": WORK_MS, "other": WORK_MS})


# -- together with other quotas ----------------------------------------------------------------------------------------

BYTES = "quota.producer.default=1000", "quota.consumer.default=1000"


@pytest.mark.parametrize(
    ("byte_ms", "expected", "by"),
    [
        pytest.param(200, 300, {"Request": 300}, id="time is the longer wait"),
        pytest.param(300, 300, {"Request": 300}, id="of two equal waits it is that of time"),
        pytest.param(400, 400, {"Produce": 400}, id="bytes are the longer wait"),
    ],
)
@pytest.mark.parametrize("profile", ["kafka-4.4", "kip-13"])
def test_a_produce_waits_once_for_the_longer_of_two_times(
    monkeypatch: pytest.MonkeyPatch, profile: str, byte_ms: int, expected: int, by: dict[str, int]
) -> None:
    broker = broker_with_quota(monkeypatch, profile, *BYTES)
    client = broker.client()
    client.send(produce_of(10_000 + byte_ms, 9, "client"), 9)
    broker.advance(5_000)
    held_ms = 0 if profile == "kafka-4.4" else expected
    assert times(client) == [("Produce", WORK_MS + held_ms, expected)]
    assert throttled_by(broker) == by


@pytest.mark.parametrize("byte_ms", [0, 200])
def test_up_to_kafka_1_1_a_produce_waits_for_one_after_the_other(monkeypatch: pytest.MonkeyPatch, byte_ms: int) -> None:
    broker = broker_with_quota(monkeypatch, "kafka-1.1", *BYTES)
    client = broker.client()
    client.send(produce_of(10_000 + byte_ms, 3, "client"), 3)
    broker.advance(byte_ms + 299)
    assert times(client) == []
    broker.advance(1)
    both_ms = byte_ms + 300
    assert times(client) == [("Produce", WORK_MS + both_ms, both_ms)]
    assert throttled_by(broker) == ({"Produce": byte_ms} if byte_ms else {}) | {"Request": 300}


def test_up_to_kafka_1_1_a_fetch_waits_for_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = VirtualBroker("quota.profile=kafka-1.1", *BYTES)
    broker.topic()
    broker.client("producer").ask(produce(9, batch_of(9_000)), 9)
    broker.broker.cluster.client_quotas.alter(EVERYONE, QUOTA)
    slow_handlers(monkeypatch, broker, WORK_MS)
    client = broker.client()
    client.send(fetch(0), 4)
    broker.advance(5_000)
    answer = client.answer()
    assert (answer.at_ms, answer.throttle_time_ms) == (WORK_MS + 300, 300)
    assert len(fetched_bytes(answer.message)) == 9_000


def filled(monkeypatch: pytest.MonkeyPatch, profile: str, *overrides: str) -> VirtualBroker:
    broker = broker_with_quota(monkeypatch, profile, *overrides)
    topic = broker.broker.cluster.topics["t"]
    topic.partitions[0].log.append(memoryview(batch_of(9_000)), broker.clock.wall_ms(), 0)
    return broker


def test_a_fetch_over_its_time_alone_brings_nothing_and_is_not_charged_its_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = filled(monkeypatch, "kafka-4.4", "quota.consumer.default=1000000")
    client = broker.client()
    client.send(fetch(0), 11)
    answer = client.answer()
    assert (answer.at_ms, answer.throttle_time_ms, answer.message.responses) == (WORK_MS, 300, [])
    (usage,) = broker.broker.quotas.fetch.snapshot(broker.clock.wall_ms())
    assert usage.rate == 0.0
    assert throttled_by(broker) == {"Request": 300}


def test_without_a_quota_of_bytes_a_throttled_fetch_leaves_no_negative_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    # Kafka takes the bytes off a sensor that was never charged; its byte-rate goes below zero.
    broker = filled(monkeypatch, "kafka-4.4")
    client = broker.client()
    client.send(fetch(0), 11)
    assert client.answer().throttle_time_ms == 300
    assert broker.broker.quotas.fetch.snapshot(broker.clock.wall_ms()) == []


def test_a_held_fetch_waits_for_the_longer_of_two_times_and_then_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = filled(monkeypatch, "kip-13", "quota.consumer.default=1000000")
    client = broker.client()
    client.send(fetch(0), 4)
    broker.advance(299)
    assert client.take_answers() == []
    assert broker.partition().traffic.bytes_out == 0
    broker.advance(1)
    answer = client.answer()
    assert (answer.at_ms, answer.throttle_time_ms) == (WORK_MS + 300, 300)
    assert len(fetched_bytes(answer.message)) == 9_000


# -- what is exempt ----------------------------------------------------------------------------------------------------


def exempt_ms(broker: VirtualBroker) -> float:
    assert broker.broker.quotas.request is not None
    rate = broker.broker.quotas.request.exempt_request_time(broker.clock.wall_ms())
    return round(rate * (30_000 + WORK_MS) / 100, 3)  # recorded when its turn began


def test_produce_without_an_answer_is_exempt(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = broker_with_quota(monkeypatch, "kafka-4.4")
    client = broker.client()
    client.send(produce(9, acks=0), 9)
    assert client.transport.reading
    assert (used(broker), exempt_ms(broker)) == ([], WORK_MS)


@pytest.mark.parametrize("profile", ["by-version", "kip-13", "kafka-1.1", "kafka-4.4"])
def test_a_fetch_of_a_follower_is_exempt(monkeypatch: pytest.MonkeyPatch, profile: str) -> None:
    broker = broker_with_quota(monkeypatch, profile)
    request = fetch(0)
    request.replica_id = 2
    client = broker.client()
    client.send(request, 11)
    assert client.answer().throttle_time_ms == 0
    assert (used(broker), exempt_ms(broker)) == ([], WORK_MS)


@pytest.mark.parametrize(
    ("code", "reading"),
    [
        pytest.param(ErrorCode.NONE, True, id="is exempt"),
        pytest.param(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, False, id="unless it was no broker's"),
    ],
)
def test_what_only_brokers_ask(monkeypatch: pytest.MonkeyPatch, code: ErrorCode, reading: bool) -> None:
    broker = broker_with_quota(monkeypatch, "kafka-4.4")
    client = broker.client()
    client.ask(WriteTxnMarkersRequest(), 1)
    (route,) = broker.broker.dispatcher.routes

    def refuse(ctx: RequestContext, request: Message, services: object) -> WriteTxnMarkersResponse:
        broker.clock.advance(WORK_MS)
        ctx.error_code = code
        return WriteTxnMarkersResponse()

    monkeypatch.setattr(route, "handle", refuse)
    client.ask(WriteTxnMarkersRequest(), 1)
    assert client.transport.reading == reading
