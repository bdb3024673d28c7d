"""Throttling of Produce and Fetch by quota profile and request version, with exact virtual times.

With a quota of 1,000 bytes/s and an idle client, a request of 10,000 + x bytes is x bytes above the quota of ten
windows: its throttle time is x ms.
"""

import pytest

from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from sluice.quotas.manager import ClientQuotaManager
from sluice.quotas.sensor import Rate, RateUpTo37
from tests.support.records import batch_of, fetch, fetched, fetched_bytes, produce, produce_of
from tests.support.virtual_broker import Client, ReceivedResponse, VirtualBroker, broker_with_topic

QUOTA = 1_000
PRODUCE_VERSIONS = range(14)
FETCH_VERSIONS = range(19)
PROFILES = ["by-version", "kip-13", "kafka-1.1", "kafka-2.0", "kafka-4.4"]
UNCUT = ["kafka-1.1", "kafka-2.0"]
PRODUCE, FETCH = "producer", "consumer"

# The first version that is muted; earlier versions are held.
FIRST_MUTED = {
    ("kip-13", PRODUCE): 99,
    ("kip-13", FETCH): 99,
    ("by-version", PRODUCE): 6,
    ("by-version", FETCH): 8,
    ("kafka-1.1", PRODUCE): 99,
    ("kafka-1.1", FETCH): None,  # neither: the fetch reads first, then its response is held
    ("kafka-2.0", PRODUCE): 0,
    ("kafka-2.0", FETCH): 0,
    ("kafka-4.4", PRODUCE): 0,
    ("kafka-4.4", FETCH): 0,
}


def cases(kind: str, versions: range, held: bool) -> list[object]:
    return [
        pytest.param(profile, version, id=f"{profile} v{version}")
        for profile in PROFILES
        for version in versions
        if (first_muted := FIRST_MUTED[profile, kind]) is not None and (version < first_muted) == held
    ]


def broker_with_quota(profile: str, kind: str, *overrides: str) -> VirtualBroker:
    return broker_with_topic(f"quota.profile={profile}", f"quota.{kind}.default={QUOTA}", *overrides)


@pytest.fixture
def broker() -> VirtualBroker:
    return broker_with_quota("by-version", PRODUCE)


def topic_id(broker: VirtualBroker) -> bytes:
    return broker.broker.cluster.topics["t"].topic_id


def send_above_quota(
    broker: VirtualBroker, client: Client, version: int, throttle_ms: int = 2_000, acks: int = 1
) -> None:
    """Send a Produce that gives an idle client a throttle time of `throttle_ms`."""
    size = 10 * QUOTA + throttle_ms
    client.send(produce_of(size, version, client.client_id, topic_id=topic_id(broker), acks=acks), version)


def reported_ms(version: int, throttle_ms: int) -> int:
    """Return the throttle time in a response of this version; version 0 has no field for it."""
    return throttle_ms if version >= 1 else 0


def apis_and_times(responses: list[ReceivedResponse]) -> list[tuple[str, float]]:
    return [(response.api, response.at_ms) for response in responses]


def charged(manager: ClientQuotaManager, broker: VirtualBroker, client_id: str = "client") -> float:
    usage = manager.measure("ANONYMOUS", client_id, broker.clock.wall_ms())
    assert usage is not None, f"{client_id} was charged"
    return round(usage.rate * usage.window_size_ms / 1000, 6)


# -- produce -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("profile", "version"), cases(PRODUCE, PRODUCE_VERSIONS, held=True))
def test_held_produce_is_appended_at_once_and_answered_after_the_throttle_time(profile: str, version: int) -> None:
    broker = broker_with_quota(profile, PRODUCE)
    client = broker.client()
    send_above_quota(broker, client, version)
    assert broker.partition().log.log_end_offset == 1, "a request above the quota is appended (KIP-13)"
    client.send(ApiVersionsRequest(), 0)
    broker.advance(1_999)
    assert client.take_responses() == [], "the response is held for the throttle time"
    broker.advance(1)
    first, second = client.take_responses()
    assert apis_and_times([first, second]) == [("Produce", 2_000), ("ApiVersions", 2_000)]
    assert first.throttle_time_ms == reported_ms(version, 2_000)
    assert first.message.responses[0].partition_responses[0].error_code == 0, "throttling is not an error"


@pytest.mark.parametrize(("profile", "version"), cases(PRODUCE, PRODUCE_VERSIONS, held=False))
def test_muted_produce_gets_its_response_at_once_and_the_next_request_waits(profile: str, version: int) -> None:
    broker = broker_with_quota(profile, PRODUCE)
    client = broker.client()
    send_above_quota(broker, client, version)
    response = client.response()
    assert (response.at_ms, response.throttle_time_ms) == (0, reported_ms(version, 2_000))
    assert broker.partition().log.log_end_offset == 1
    client.send(ApiVersionsRequest(), 0)
    assert not client.transport.reading, "a muted connection is not read"
    assert client.unread_bytes > 0
    broker.advance(1_999)
    assert client.take_responses() == [], "a muted connection is not read during the throttle time"
    broker.advance(1)
    assert apis_and_times(client.take_responses()) == [("ApiVersions", 2_000)]


@pytest.mark.parametrize("version", [1, 5, 6, 13])
@pytest.mark.parametrize("profile", PROFILES)
def test_produce_within_the_quota_is_not_throttled(profile: str, version: int) -> None:
    broker = broker_with_quota(profile, PRODUCE)
    client = broker.client()
    send_above_quota(broker, client, version, throttle_ms=0)
    response = client.response()
    assert (response.at_ms, response.throttle_time_ms) == (0, 0)
    assert client.call(ApiVersionsRequest(), 0)


@pytest.mark.parametrize("version", [3, 9])
@pytest.mark.parametrize("profile", PROFILES)
def test_produce_with_acks_0_above_the_quota_mutes_the_connection(profile: str, version: int) -> None:
    broker = broker_with_quota(profile, PRODUCE)
    client = broker.client()
    send_above_quota(broker, client, version, acks=0)
    client.send(ApiVersionsRequest(), 0)
    broker.advance(1_999)
    assert client.take_responses() == []
    assert broker.partition().log.log_end_offset == 1
    broker.advance(1)
    assert apis_and_times(client.take_responses()) == [("ApiVersions", 2_000)]


def test_produce_is_charged_its_request_size_without_the_size_prefix(broker: VirtualBroker) -> None:
    client = broker.client()
    data = client.frame(produce(9), 9)
    client.send_bytes(data)
    assert charged(broker.broker.quotas.produce, broker) == len(data) - 4


@pytest.mark.parametrize("acks", [1, 0, -1])
def test_failed_produce_is_charged(broker: VirtualBroker, acks: int) -> None:
    client = broker.client()
    data = client.frame(produce(9, topic="nowhere", acks=acks), 9)
    client.send_bytes(data)
    assert charged(broker.broker.quotas.produce, broker) == len(data) - 4


def test_throttle_times_of_pipelined_produces_add_up() -> None:
    # Each request is charged when it is read, so the throttle times add up (reference 6.4).
    broker = broker_with_quota("kafka-4.4", PRODUCE)
    client = broker.client()
    request = produce_of(11_000, 9, "client")
    client.send_together((request, 9), (request, 9), (ApiVersionsRequest(), 0))
    broker.advance(60_000)
    first, second, third = client.take_responses()
    assert (first.at_ms, first.throttle_time_ms) == (0, 1_000)
    assert second.at_ms == 1_000, "the second request is read after the throttle time of the first"
    assert second.throttle_time_ms == 12_000  # 22,000 bytes in 10 s
    assert third.at_ms == 13_000


def test_produce_with_acks_all_is_charged_after_its_replication() -> None:
    broker = broker_with_quota("by-version", PRODUCE, "sluice.replication.delay.ms=500")
    client = broker.client()
    send_above_quota(broker, client, 9, acks=-1)
    broker.advance(499)
    assert broker.broker.quotas.produce.measure("ANONYMOUS", "client", broker.clock.wall_ms()) is None
    broker.advance(1)
    usage = broker.broker.quotas.produce.measure("ANONYMOUS", "client", broker.clock.wall_ms())
    assert usage is not None
    assert usage.window_size_ms == 10_000, "the window starts at the charge, not when the request was sent"
    response = client.response()
    assert (response.at_ms, response.throttle_time_ms) == (500, 2_000)
    client.send(ApiVersionsRequest(), 0)
    broker.advance(5_000)
    assert client.response().at_ms == 2_500


@pytest.mark.parametrize("version", [1, 9])
def test_the_example_of_kip_13_waits_2000_ms(version: int) -> None:
    # "quota 5 MB/s, 10 windows of 1 s, 5 MB/s for 9 s, then 15 MB: 2 seconds"; here in kilobytes.
    broker = broker_with_topic("quota.profile=kip-13", "quota.producer.default=5000")
    client = broker.client()
    for second in range(9):
        response = client.exchange(produce_of(5_000, version, "client"), version)
        assert (response.at_ms, response.throttle_time_ms) == (second * 1000, 0)
        broker.advance(1000)
    client.send(produce_of(15_000, version, "client"), version)
    broker.advance(60_000)
    response = client.response()
    assert (response.throttle_time_ms, response.at_ms) == (2_000, 9_000 + 2_000)


# -- fetch -------------------------------------------------------------------------------------------------------------


def broker_with_records(profile: str, *sizes: int) -> VirtualBroker:
    """Return a broker with a fetch quota and batches of these sizes, one record each."""
    broker = broker_with_quota(profile, FETCH)
    for size in sizes:
        append(broker, size)
    return broker


def append(broker: VirtualBroker, size: int) -> None:
    broker.client("producer").call(produce(9, batch_of(size)), 9)


def charged_size(response: ReceivedResponse) -> int:
    """Return Kafka's FetchResponse.sizeOf: the body plus 4 bytes for the size prefix."""
    header = 4 + (response.version >= 12)  # correlation id, and the count of tagged fields
    return 4 + response.size - header


@pytest.mark.parametrize(("profile", "version"), cases(FETCH, FETCH_VERSIONS, held=True))
def test_held_fetch_reads_after_its_throttle_time(profile: str, version: int) -> None:
    broker = broker_with_records(profile, 12_000)
    client = broker.client()
    client.send(fetch(topic_id=topic_id(broker), max_wait_ms=100), version)
    assert broker.broker.quotas.fetch.measure("ANONYMOUS", "client", broker.clock.wall_ms()) is not None
    client.send(ApiVersionsRequest(), 0)
    broker.advance(1_999)
    assert client.take_responses() == []
    assert broker.broker.cluster.topics["t"].traffic[1].bytes_out == 0, "a held fetch reads after its throttle time"
    broker.advance(1)
    first, second = client.take_responses()
    assert apis_and_times([first, second]) == [("Fetch", 2_000), ("ApiVersions", 2_000)]
    assert first.throttle_time_ms == reported_ms(version, 2_000)
    assert len(fetched_bytes(first.message)) > 11_000


@pytest.mark.parametrize(("profile", "version"), cases(FETCH, FETCH_VERSIONS, held=False))
def test_muted_fetch_returns_no_records_at_once_and_is_not_charged(profile: str, version: int) -> None:
    broker = broker_with_records(profile, 12_000)
    unlimited = broker_with_topic()
    append(unlimited, 12_000)
    other = unlimited.client()
    throttle_ms = charged_size(other.exchange(fetch(topic_id=topic_id(unlimited)), version)) - 10 * QUOTA

    client = broker.client()
    response = client.exchange(fetch(topic_id=topic_id(broker), max_wait_ms=100), version)
    assert (response.at_ms, response.throttle_time_ms) == (0, reported_ms(version, throttle_ms))
    assert response.message.responses == [], "a throttled fetch returns no topics"
    assert (response.message.error_code, response.message.session_id) == (0, 0)
    assert charged(broker.broker.quotas.fetch, broker) == 0, "records that are not sent are not charged"
    client.send(ApiVersionsRequest(), 0)
    broker.advance(throttle_ms - 1)
    assert client.take_responses() == []
    broker.advance(1)
    assert apis_and_times(client.take_responses()) == [("ApiVersions", throttle_ms)]


@pytest.mark.parametrize("version", [1, 7])
def test_held_fetch_returns_records_appended_during_its_throttle_time(version: int) -> None:
    broker = broker_with_records("kip-13", 8_000, 5_000)
    client = broker.client()
    first = client.exchange(fetch(0, partition_max_bytes=8_000), version)
    client.send(fetch(1), version)
    broker.advance(1_000)
    assert client.take_responses() == []
    append(broker, 1_000)
    broker.advance(60_000)
    second = client.response()
    # Charged before the read, from the index and without 4 bytes of framing: 5,000 bytes of records.
    assert second.throttle_time_ms == reported_ms(version, charged_size(first) + 5_000 - 10 * QUOTA)
    assert second.at_ms == second.throttle_time_ms
    if version >= 4:
        assert len(fetched_bytes(second.message)) == 6_000


@pytest.mark.parametrize("version", [1, 4, 7, 18])
def test_charge_of_a_held_fetch_is_corrected_to_its_response_size(version: int) -> None:
    broker = broker_with_records("kip-13", 8_000, 5_000)
    client = broker.client()
    first = client.exchange(fetch(0, partition_max_bytes=8_000, topic_id=topic_id(broker)), version)
    assert first.at_ms == 0
    assert charged(broker.broker.quotas.fetch, broker) == charged_size(first)
    client.send(fetch(1, topic_id=topic_id(broker)), version)
    append(broker, 1_000)
    broker.advance(charged_size(first) + 5_000 - 10 * QUOTA)
    second = client.response()
    assert charged(broker.broker.quotas.fetch, broker) == charged_size(first) + charged_size(second)


@pytest.mark.parametrize("version", [4, 11], ids=["held", "muted"])
def test_throttle_time_of_a_fetch_is_recorded(version: int) -> None:
    broker = broker_with_records("by-version", 12_000)
    client = broker.client()
    client.send(fetch(0), version)
    broker.advance(3_000)
    (usage,) = broker.broker.quotas.fetch.snapshot(broker.clock.wall_ms())
    assert usage.throttle_time_total_ms == client.response().throttle_time_ms >= 2_000


def test_charge_of_a_held_fetch_is_limited_to_its_max_bytes() -> None:
    broker = broker_with_quota("kip-13", FETCH)
    broker.topic("two", partitions=2)
    producer = broker.client("producer")
    for index in (0, 1):
        producer.call(produce(9, batch_of(8_000), topic="two", partition=index), 9)
    partitions = [FetchPartition(partition=index, partition_max_bytes=1 << 20) for index in (0, 1)]
    client = broker.client()
    client.send(FetchRequest(max_bytes=8_000, topics=[FetchTopic(topic="two", partitions=partitions)]), 4)
    response = client.response()
    assert (response.at_ms, response.throttle_time_ms) == (0, 0)
    assert [len(data.records) for data in response.message.responses[0].partitions] == [8_000, 0]


@pytest.mark.parametrize("version", [8, 18])
def test_muted_fetch_gets_the_same_records_when_retried(version: int) -> None:
    broker = broker_with_records("by-version", 8_000, 5_000)
    client = broker.client()
    first = client.exchange(fetch(0, partition_max_bytes=8_000, topic_id=topic_id(broker)), version)
    assert client.exchange(fetch(1, topic_id=topic_id(broker)), version).throttle_time_ms > 0
    assert charged(broker.broker.quotas.fetch, broker) == charged_size(first)
    broker.advance(12_000)  # the first response is no longer in the windows
    response = client.exchange(fetch(1, topic_id=topic_id(broker)), version)
    assert (len(fetched_bytes(response.message)), response.throttle_time_ms) == (5_000, 0)


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_kafka_1_1_fetch_reads_first_and_is_then_held_and_charged(version: int) -> None:
    broker = broker_with_records("kafka-1.1", 12_000)
    client = broker.client()
    client.send(fetch(topic_id=topic_id(broker), max_wait_ms=100), version)
    assert broker.broker.cluster.topics["t"].traffic[1].bytes_out > 11_000, "the fetch reads before its throttle time"
    client.send(ApiVersionsRequest(), 0)
    before = charged(broker.broker.quotas.fetch, broker)
    throttle_ms = before - 10 * QUOTA
    broker.advance(throttle_ms - 1)
    assert client.take_responses() == []
    broker.advance(1)
    first, second = client.take_responses()
    assert apis_and_times([first, second]) == [("Fetch", throttle_ms), ("ApiVersions", throttle_ms)]
    assert first.throttle_time_ms == reported_ms(version, int(throttle_ms))
    assert len(fetched_bytes(first.message)) > 11_000
    assert charged_size(first) == before


@pytest.mark.parametrize(
    ("profile", "is_limited"), [("kafka-1.1", False), ("kafka-2.4", False), ("kafka-2.5", True), ("kafka-3.7", True)]
)
def test_fetch_size_is_limited_to_the_quota_of_an_idle_client_since_kafka_2_5(profile: str, is_limited: bool) -> None:
    broker = broker_with_records(profile, *[1_000] * 30)
    client = broker.client()
    client.call(ApiVersionsRequest(), 0)  # the first request sets the client id
    assert (
        broker.broker.throttler.largest_fetch("ANONYMOUS", client.connection.ctx.session.client_id) == 10 * QUOTA
    ) == is_limited


@pytest.mark.parametrize(
    ("profile", "rate"),
    [("kafka-0.9", RateUpTo37), ("kafka-3.7", RateUpTo37), ("kafka-3.8", Rate), ("kip-13", Rate), ("by-version", Rate)],
)
def test_rate_is_computed_differently_since_kafka_3_8(profile: str, rate: type[Rate]) -> None:
    broker = broker_with_quota(profile, PRODUCE).broker
    for at_ms in (0, 900, 11_500):
        broker.quotas.produce.record("ANONYMOUS", "client", 1e6, broker.clock.wall_ms() + at_ms)
    usage = broker.quotas.produce.measure("ANONYMOUS", "client", broker.clock.wall_ms() + 11_500)
    assert usage is not None
    assert usage.rate == (100_000.0 if rate is RateUpTo37 else 260869.5652173913)


@pytest.mark.parametrize("profile", [p for p in PROFILES if p not in UNCUT])
def test_fetch_returns_no_more_than_the_quota_of_an_idle_client(profile: str) -> None:
    # Otherwise a client that requests more than the quota of ten seconds would be throttled without end.
    broker = broker_with_records(profile, *[1_000] * 30)
    client = broker.client()
    client.send(fetch(topic_id=topic_id(broker)), 13)
    broker.advance(100)  # framing adds some bytes above the quota: as many ms of throttle time
    response = client.response()
    if not response.message.responses:
        response = client.exchange(fetch(topic_id=topic_id(broker)), 13)
    assert 8_000 <= len(fetched_bytes(response.message)) <= 10 * QUOTA


def test_delayed_fetch_is_throttled_when_its_bytes_are_available() -> None:
    broker = broker_with_records("kip-13")
    client = broker.client()
    client.send(fetch(0, max_wait_ms=60_000), 4)
    broker.advance(700)
    assert broker.broker.quotas.fetch.measure("ANONYMOUS", "client", broker.clock.wall_ms()) is None
    append(broker, 12_000)
    broker.advance(60_000)
    response = client.response()
    assert (response.at_ms, response.throttle_time_ms) == (2_700, 2_000)


@pytest.mark.parametrize("version", [4, 11])
def test_wait_of_a_delayed_fetch_is_not_throttle_time(version: int) -> None:
    broker = broker_with_records("by-version")
    client = broker.client()
    client.send(fetch(0, max_wait_ms=5_000), version)
    broker.advance(5_000)
    response = client.response()
    assert (response.at_ms, response.throttle_time_ms) == (5_000, 0)


@pytest.mark.parametrize("profile", PROFILES)
def test_fetch_response_without_records_is_charged_its_size(profile: str) -> None:
    broker = broker_with_records(profile)
    client = broker.client()
    response = client.exchange(fetch(0), 11)
    assert charged(broker.broker.quotas.fetch, broker) == charged_size(response)


@pytest.mark.parametrize("profile", PROFILES)
def test_fetch_response_with_a_top_level_error_is_charged_its_size(profile: str) -> None:
    broker = broker_with_records(profile, 5_000)
    client = broker.client()
    before = charged_size(client.exchange(fetch(0), 11))
    request = fetch(0)
    request.session_id, request.session_epoch = 77, 5
    response = client.exchange(request, 11)
    assert response.message.error_code == 70
    assert charged(broker.broker.quotas.fetch, broker) == before + charged_size(response)


def test_topic_deleted_during_the_throttle_time_of_a_held_fetch_is_unknown() -> None:
    broker = broker_with_records("kip-13", 12_000)
    client = broker.client()
    client.send(fetch(0), 4)
    broker.broker.delete_topic(broker.broker.cluster.topics["t"])
    broker.advance(2_000)
    assert fetched(client.response().message).error_code == 3


# -- quota entities ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", ["by-version", "kip-13", "kafka-1.1"])
def test_clients_without_a_client_id_share_the_default_quota(profile: str) -> None:
    broker = broker_with_quota(profile, PRODUCE)
    first, second = broker.client(None), broker.client("")
    first.send(produce_of(12_000, 9, None), 9)
    second.send(produce_of(12_000, 9, ""), 9)
    broker.advance(60_000)
    assert first.response().throttle_time_ms == 2_000
    assert second.response().throttle_time_ms == 14_000, "both clients share one bucket (KIP-13)"


@pytest.mark.parametrize("client_id", [None, ""])
def test_client_without_a_client_id_is_not_throttled_in_kafka_4_4(client_id: str | None) -> None:
    broker = broker_with_quota("kafka-4.4", PRODUCE)
    client = broker.client(client_id)
    assert client.exchange(produce_of(50_000, 9, client_id), 9).throttle_time_ms == 0
    assert client.call(ApiVersionsRequest(), 0)


def test_each_client_id_has_its_own_bucket_of_the_default_quota(broker: VirtualBroker) -> None:
    one, other = broker.client("one"), broker.client("other")
    send_above_quota(broker, one, 9)
    send_above_quota(broker, other, 9, throttle_ms=0)
    assert one.response().throttle_time_ms == 2_000
    assert other.response().throttle_time_ms == 0


def test_all_connections_of_a_client_id_share_one_bucket(broker: VirtualBroker) -> None:
    one, other = broker.client("same"), broker.client("same")
    one.send(produce_of(6_000, 9, "same"), 9)
    other.send(produce_of(6_000, 9, "same"), 9)
    assert one.response().throttle_time_ms == 0
    assert other.response().throttle_time_ms == 2_000


def test_quota_override_precedes_the_default() -> None:
    broker = broker_with_quota("by-version", PRODUCE, "quota.producer.override=gold:2000,lead:500")
    throttled = {}
    for client_id in ("gold", "lead", "other"):
        client = broker.client(client_id)
        send_above_quota(broker, client, 9)
        throttled[client_id] = client.response().throttle_time_ms
    assert throttled == {"gold": 0, "lead": 14_000, "other": 2_000}


def test_produce_and_fetch_quotas_are_independent(broker: VirtualBroker) -> None:
    producer, consumer = broker.client("same"), broker.client("same")
    send_above_quota(broker, producer, 9)
    response = consumer.exchange(fetch(0), 11)
    assert (response.at_ms, response.throttle_time_ms, len(fetched_bytes(response.message)) > 11_000) == (0, 0, True)


@pytest.mark.parametrize("version", [3, 9], ids=["held", "muted"])
def test_throttled_clients_do_not_slow_other_clients(version: int) -> None:
    broker = broker_with_quota("by-version", PRODUCE, "quota.producer.override=other:1e9")
    slow = [broker.client("slow") for _ in range(20)]
    for client in slow:
        send_above_quota(broker, client, version, throttle_ms=100_000)
    other = broker.client("other")
    for second in range(10):
        response = other.exchange(produce_of(50_000, version, "other"), version)
        assert (response.at_ms, response.throttle_time_ms) == (second * 1_000, 0)
        broker.advance(1_000)
    assert len(broker.broker.throttled) == 20


def test_other_connections_of_a_throttled_client_are_not_muted(broker: VirtualBroker) -> None:
    one, other = broker.client("same"), broker.client("same")
    send_above_quota(broker, one, 9)
    assert other.exchange(ApiVersionsRequest(), 0).at_ms == 0


# -- clients that disconnect -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [3, 9], ids=["held", "muted"])
def test_disconnected_throttled_client_is_removed_after_its_throttle_time(broker: VirtualBroker, version: int) -> None:
    client = broker.client()
    send_above_quota(broker, client, version)
    client.take_responses()
    client.send(produce(9), 9)
    client.leave()
    broker.advance(1_999)
    assert len(broker.broker.throttled) == 1, "the end of a connection that is not read is not noticed (reference 6.5)"
    broker.advance(10_000)
    assert len(broker.broker.throttled) == 0
    assert broker.server.connections == {}


@pytest.mark.parametrize("version", [3, 9], ids=["held", "muted"])
def test_requests_sent_before_a_half_close_are_handled_after_the_throttle_time(version: int) -> None:
    broker = broker_with_quota("by-version", PRODUCE)
    client = broker.client()
    send_above_quota(broker, client, version)
    client.send(produce(version), version)
    client.end()
    broker.advance(60_000)
    assert broker.partition().log.log_end_offset == 2
    assert len(client.take_responses()) == 2
    assert client.closed_at_ms is not None


def test_throttled_connections_are_counted_during_their_throttle_time(broker: VirtualBroker) -> None:
    for number, version in enumerate((3, 9, 9)):
        send_above_quota(broker, broker.client(f"client-{number}"), version)
    assert len(broker.broker.throttled) == 3
    broker.advance(2_000)
    assert len(broker.broker.throttled) == 0
