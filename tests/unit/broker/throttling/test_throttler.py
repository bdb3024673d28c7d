"""Who waits, how and for how long, by profile and request version; all moments are virtual and exact.

The arithmetic of the tests: with a quota of 1,000 bytes/s and an idle client, a request of 10,000 + x bytes is x bytes
more than ten windows hold, and waits x ms.
"""

import pytest

from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from sluice.quotas.manager import ClientQuotaManager
from sluice.quotas.sensor import Rate, RateUpTo37
from tests.support.records import batch_of, fetch, fetched, fetched_bytes, produce, produce_of
from tests.support.virtual_broker import Answer, Client, VirtualBroker

QUOTA = 1_000
PRODUCE_VERSIONS = range(14)
FETCH_VERSIONS = range(19)
PROFILES = ["by-version", "kip-13", "kafka-1.1", "kafka-2.0", "kafka-4.4"]
UNCUT = ["kafka-1.1", "kafka-2.0"]
PRODUCE, FETCH = "producer", "consumer"

# The first version that is muted; the ones before are held.
FIRST_MUTED = {
    ("kip-13", PRODUCE): 99,
    ("kip-13", FETCH): 99,
    ("by-version", PRODUCE): 6,
    ("by-version", FETCH): 8,
    ("kafka-1.1", PRODUCE): 99,
    ("kafka-1.1", FETCH): None,  # neither: it is read first, and then held
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
    broker = VirtualBroker(f"quota.profile={profile}", f"quota.{kind}.default={QUOTA}", *overrides)
    broker.topic()
    return broker


def topic_id(broker: VirtualBroker) -> bytes:
    return broker.broker.cluster.topics["t"].topic_id


def over_quota(broker: VirtualBroker, client: Client, version: int, throttle_ms: int = 2_000, acks: int = 1) -> None:
    """Sends a produce request for which an idle client has to wait `throttle_ms`."""
    size = 10 * QUOTA + throttle_ms
    client.send(produce_of(size, version, client.client_id, topic_id=topic_id(broker), acks=acks), version)


def told(version: int, throttle_ms: int) -> int:
    """The throttle time in an answer of that version: 0 has no field for it."""
    return throttle_ms if version >= 1 else 0


def moments(answers: list[Answer]) -> list[tuple[str, float]]:
    return [(answer.api, answer.at_ms) for answer in answers]


def charged(manager: ClientQuotaManager, broker: VirtualBroker, client_id: str = "client") -> float:
    """Bytes that the client's windows hold."""
    usage = manager.measure("ANONYMOUS", client_id, broker.clock.wall_ms())
    assert usage is not None, f"nothing was ever charged to {client_id}"
    return round(usage.rate * usage.window_size_ms / 1000, 6)


# -- produce -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("profile", "version"), cases(PRODUCE, PRODUCE_VERSIONS, held=True))
def test_a_held_produce_is_appended_at_once_and_answered_when_its_throttle_is_over(profile: str, version: int) -> None:
    broker = broker_with_quota(profile, PRODUCE)
    client = broker.client()
    over_quota(broker, client, version)
    assert broker.partition().log.log_end_offset == 1, "the request over quota is appended all the same (KIP-13)"
    client.send(ApiVersionsRequest(), 0)
    broker.advance(1_999)
    assert client.take_answers() == [], "answered before the throttle was over"
    broker.advance(1)
    first, second = client.take_answers()
    assert moments([first, second]) == [("Produce", 2_000), ("ApiVersions", 2_000)]
    assert first.throttle_time_ms == told(version, 2_000)
    assert first.message.responses[0].partition_responses[0].error_code == 0, "throttling is no error"


@pytest.mark.parametrize(("profile", "version"), cases(PRODUCE, PRODUCE_VERSIONS, held=False))
def test_a_muted_produce_is_answered_at_once_and_the_next_request_waits(profile: str, version: int) -> None:
    broker = broker_with_quota(profile, PRODUCE)
    client = broker.client()
    over_quota(broker, client, version)
    answer = client.answer()
    assert (answer.at_ms, answer.throttle_time_ms) == (0, told(version, 2_000))
    assert broker.partition().log.log_end_offset == 1
    client.send(ApiVersionsRequest(), 0)
    assert not client.transport.reading, "a muted connection is read"
    assert client.unread_bytes > 0
    broker.advance(1_999)
    assert client.take_answers() == [], "a muted connection's request was handled before the throttle was over"
    broker.advance(1)
    assert moments(client.take_answers()) == [("ApiVersions", 2_000)]


@pytest.mark.parametrize("version", [1, 5, 6, 13])
@pytest.mark.parametrize("profile", PROFILES)
def test_a_produce_within_its_quota_is_answered_at_once_and_mutes_nothing(profile: str, version: int) -> None:
    broker = broker_with_quota(profile, PRODUCE)
    client = broker.client()
    over_quota(broker, client, version, throttle_ms=0)
    answer = client.answer()
    assert (answer.at_ms, answer.throttle_time_ms) == (0, 0)
    assert client.ask(ApiVersionsRequest(), 0)


@pytest.mark.parametrize("version", [3, 9])
@pytest.mark.parametrize("profile", PROFILES)
def test_acks_0_over_quota_mutes_without_an_answer(profile: str, version: int) -> None:
    broker = broker_with_quota(profile, PRODUCE)
    client = broker.client()
    over_quota(broker, client, version, acks=0)
    client.send(ApiVersionsRequest(), 0)
    broker.advance(1_999)
    assert client.take_answers() == []
    assert broker.partition().log.log_end_offset == 1
    broker.advance(1)
    assert moments(client.take_answers()) == [("ApiVersions", 2_000)]


def test_what_is_charged_is_the_request_without_its_size_prefix() -> None:
    broker = broker_with_quota("by-version", PRODUCE)
    client = broker.client()
    data = client.frame(produce(9), 9)
    client.send_bytes(data)
    assert charged(broker.broker.quotas.produce, broker) == len(data) - 4


@pytest.mark.parametrize("acks", [1, 0, -1])
def test_a_produce_that_fails_is_charged_too(acks: int) -> None:
    broker = broker_with_quota("by-version", PRODUCE)
    client = broker.client()
    data = client.frame(produce(9, topic="nowhere", acks=acks), 9)
    client.send_bytes(data)
    assert charged(broker.broker.quotas.produce, broker) == len(data) - 4


def test_pipelined_produces_wait_one_after_the_other() -> None:
    # Each is charged when it is read, so the delays add up (reference 6.4).
    broker = broker_with_quota("kafka-4.4", PRODUCE)
    client = broker.client()
    request = produce_of(11_000, 9, "client")
    client.send_together((request, 9), (request, 9), (ApiVersionsRequest(), 0))
    broker.advance(60_000)
    first, second, third = client.take_answers()
    assert (first.at_ms, first.throttle_time_ms) == (0, 1_000)
    assert second.at_ms == 1_000, "the second is handled when the first one's throttle is over"
    assert second.throttle_time_ms == 12_000  # 22,000 bytes in 10 s
    assert third.at_ms == 13_000


def test_acks_all_over_quota_is_charged_when_the_replicas_have_it() -> None:
    broker = broker_with_quota("by-version", PRODUCE, "sluice.replication.delay.ms=500")
    client = broker.client()
    over_quota(broker, client, 9, acks=-1)
    broker.advance(499)
    assert broker.broker.quotas.produce.measure("ANONYMOUS", "client", broker.clock.wall_ms()) is None
    broker.advance(1)
    usage = broker.broker.quotas.produce.measure("ANONYMOUS", "client", broker.clock.wall_ms())
    assert usage is not None
    assert usage.window_size_ms == 10_000, "its window must begin when it is charged, not when it was sent"
    answer = client.answer()
    assert (answer.at_ms, answer.throttle_time_ms) == (500, 2_000)
    client.send(ApiVersionsRequest(), 0)
    broker.advance(5_000)
    assert client.answer().at_ms == 2_500


@pytest.mark.parametrize("version", [1, 9])
def test_the_example_of_kip_13_waits_2000_ms(version: int) -> None:
    # "quota 5 MB/s, 10 windows of 1 s, 5 MB/s for 9 s, then 15 MB: 2 seconds" - here with kilobytes for megabytes.
    broker = VirtualBroker("quota.profile=kip-13", "quota.producer.default=5000")
    broker.topic()
    client = broker.client()
    for second in range(9):
        client.send(produce_of(5_000, version, "client"), version)
        answer = client.answer()
        assert (answer.at_ms, answer.throttle_time_ms) == (second * 1000, 0)
        broker.advance(1000)
    client.send(produce_of(15_000, version, "client"), version)
    broker.advance(60_000)
    answer = client.answer()
    assert (answer.throttle_time_ms, answer.at_ms) == (2_000, 9_000 + 2_000)


# -- fetch -------------------------------------------------------------------------------------------------------------


def filled(profile: str, *sizes: int) -> VirtualBroker:
    """A broker with a fetch quota and batches of these sizes, one record each."""
    broker = broker_with_quota(profile, FETCH)
    for size in sizes:
        append(broker, size)
    return broker


def append(broker: VirtualBroker, size: int) -> None:
    """Appends one batch of `size` bytes."""
    broker.client("producer").ask(produce(9, batch_of(size)), 9)


def charge_of(answer: Answer) -> int:
    """What Kafka's FetchResponse.sizeOf says of it: the body, and 4 for the size prefix."""
    header = 4 + (answer.version >= 12)  # correlation id, and the count of tagged fields
    return 4 + answer.size - header


@pytest.mark.parametrize(("profile", "version"), cases(FETCH, FETCH_VERSIONS, held=True))
def test_a_held_fetch_waits_before_it_reads(profile: str, version: int) -> None:
    broker = filled(profile, 12_000)
    client = broker.client()
    client.send(fetch(topic_id=topic_id(broker), max_wait_ms=100), version)
    assert broker.broker.quotas.fetch.measure("ANONYMOUS", "client", broker.clock.wall_ms()) is not None
    client.send(ApiVersionsRequest(), 0)
    broker.advance(1_999)
    assert client.take_answers() == []
    assert broker.broker.cluster.topics["t"].traffic[1].bytes_out == 0, "it was read before its throttle was over"
    broker.advance(1)
    first, second = client.take_answers()
    assert moments([first, second]) == [("Fetch", 2_000), ("ApiVersions", 2_000)]
    assert first.throttle_time_ms == told(version, 2_000)
    assert len(fetched_bytes(first.message)) > 11_000


@pytest.mark.parametrize(("profile", "version"), cases(FETCH, FETCH_VERSIONS, held=False))
def test_a_muted_fetch_is_answered_at_once_with_nothing_and_costs_nothing(profile: str, version: int) -> None:
    broker = filled(profile, 12_000)
    unlimited = VirtualBroker()
    unlimited.topic()
    append(unlimited, 12_000)
    other = unlimited.client()
    other.send(fetch(topic_id=topic_id(unlimited)), version)
    throttle_ms = charge_of(other.answer()) - 10 * QUOTA

    client = broker.client()
    client.send(fetch(topic_id=topic_id(broker), max_wait_ms=100), version)
    answer = client.answer()
    assert (answer.at_ms, answer.throttle_time_ms) == (0, told(version, throttle_ms))
    assert answer.message.responses == [], "a throttled fetch brings no topics"
    assert (answer.message.error_code, answer.message.session_id) == (0, 0)
    assert charged(broker.broker.quotas.fetch, broker) == 0, "what is not sent is not charged"
    client.send(ApiVersionsRequest(), 0)
    broker.advance(throttle_ms - 1)
    assert client.take_answers() == []
    broker.advance(1)
    assert moments(client.take_answers()) == [("ApiVersions", throttle_ms)]


@pytest.mark.parametrize("version", [1, 7])
def test_what_is_appended_while_a_fetch_is_held_is_in_its_answer(version: int) -> None:
    broker = filled("kip-13", 8_000, 5_000)
    client = broker.client()
    client.send(fetch(0, partition_max_bytes=8_000), version)
    first = client.answer()
    client.send(fetch(1), version)
    broker.advance(1_000)
    assert client.take_answers() == []
    append(broker, 1_000)
    broker.advance(60_000)
    second = client.answer()
    # Charged before the read by the index, 4 bytes of framing not counted: 5,000 bytes of records.
    assert second.throttle_time_ms == told(version, charge_of(first) + 5_000 - 10 * QUOTA)
    assert second.at_ms == second.throttle_time_ms
    if version >= 4:
        assert len(fetched_bytes(second.message)) == 6_000


@pytest.mark.parametrize("version", [1, 4, 7, 18])
def test_the_charge_of_a_held_fetch_is_corrected_to_what_was_sent(version: int) -> None:
    broker = filled("kip-13", 8_000, 5_000)
    client = broker.client()
    client.send(fetch(0, partition_max_bytes=8_000, topic_id=topic_id(broker)), version)
    first = client.answer()
    assert first.at_ms == 0
    assert charged(broker.broker.quotas.fetch, broker) == charge_of(first)
    client.send(fetch(1, topic_id=topic_id(broker)), version)
    append(broker, 1_000)
    broker.advance(charge_of(first) + 5_000 - 10 * QUOTA)
    second = client.answer()
    assert charged(broker.broker.quotas.fetch, broker) == charge_of(first) + charge_of(second)


@pytest.mark.parametrize("version", [4, 11], ids=["held", "muted"])
def test_the_throttle_time_of_a_fetch_is_measured(version: int) -> None:
    broker = filled("by-version", 12_000)
    client = broker.client()
    client.send(fetch(0), version)
    broker.advance(3_000)
    (usage,) = broker.broker.quotas.fetch.snapshot(broker.clock.wall_ms())
    assert usage.throttle_time_total_ms == client.answer().throttle_time_ms >= 2_000


def test_a_held_fetch_is_charged_for_no_more_than_its_limit_over_all_partitions() -> None:
    broker = broker_with_quota("kip-13", FETCH)
    broker.topic("two", partitions=2)
    producer = broker.client("producer")
    for index in (0, 1):
        producer.ask(produce(9, batch_of(8_000), topic="two", partition=index), 9)
    wanted = [FetchPartition(partition=index, partition_max_bytes=1 << 20) for index in (0, 1)]
    client = broker.client()
    client.send(FetchRequest(max_bytes=8_000, topics=[FetchTopic(topic="two", partitions=wanted)]), 4)
    answer = client.answer()
    assert (answer.at_ms, answer.throttle_time_ms) == (0, 0)
    assert [len(data.records) for data in answer.message.responses[0].partitions] == [8_000, 0]


@pytest.mark.parametrize("version", [8, 18])
def test_a_muted_fetch_gets_the_same_records_later(version: int) -> None:
    broker = filled("by-version", 8_000, 5_000)
    client = broker.client()
    client.send(fetch(0, partition_max_bytes=8_000, topic_id=topic_id(broker)), version)
    first = client.answer()
    client.send(fetch(1, topic_id=topic_id(broker)), version)
    assert client.answer().throttle_time_ms > 0
    assert charged(broker.broker.quotas.fetch, broker) == charge_of(first)
    broker.advance(12_000)  # the first answer left the windows
    client.send(fetch(1, topic_id=topic_id(broker)), version)
    answer = client.answer()
    assert (len(fetched_bytes(answer.message)), answer.throttle_time_ms) == (5_000, 0)


@pytest.mark.parametrize("version", FETCH_VERSIONS)
def test_up_to_kafka_1_1_a_fetch_is_read_then_held_and_charged(version: int) -> None:
    broker = filled("kafka-1.1", 12_000)
    client = broker.client()
    client.send(fetch(topic_id=topic_id(broker), max_wait_ms=100), version)
    assert broker.broker.cluster.topics["t"].traffic[1].bytes_out > 11_000, "it is read before its throttle is over"
    client.send(ApiVersionsRequest(), 0)
    before = charged(broker.broker.quotas.fetch, broker)
    throttle_ms = before - 10 * QUOTA
    broker.advance(throttle_ms - 1)
    assert client.take_answers() == []
    broker.advance(1)
    first, second = client.take_answers()
    assert moments([first, second]) == [("Fetch", throttle_ms), ("ApiVersions", throttle_ms)]
    assert first.throttle_time_ms == told(version, int(throttle_ms))
    assert len(fetched_bytes(first.message)) > 11_000
    assert charge_of(first) == before


@pytest.mark.parametrize(
    ("profile", "quota_cuts"), [("kafka-1.1", False), ("kafka-2.4", False), ("kafka-2.5", True), ("kafka-3.7", True)]
)
def test_since_kafka_2_5_a_fetch_is_cut_to_what_an_idle_client_may_have(profile: str, quota_cuts: bool) -> None:
    broker = filled(profile, *[1_000] * 30)
    client = broker.client()
    client.ask(ApiVersionsRequest(), 0)  # whose first request says who it is
    assert (broker.broker.throttler.largest_fetch(client.connection.ctx) == 10 * QUOTA) == quota_cuts


@pytest.mark.parametrize(
    ("profile", "rate"),
    [("kafka-0.9", RateUpTo37), ("kafka-3.7", RateUpTo37), ("kafka-3.8", Rate), ("kip-13", Rate), ("by-version", Rate)],
)
def test_kafka_3_8_changed_the_arithmetic(profile: str, rate: type[Rate]) -> None:
    broker = broker_with_quota(profile, PRODUCE).broker
    for at_ms in (0, 900, 11_500):
        broker.quotas.produce.record("ANONYMOUS", "client", 1e6, broker.clock.wall_ms() + at_ms)
    usage = broker.quotas.produce.measure("ANONYMOUS", "client", broker.clock.wall_ms() + 11_500)
    assert usage is not None
    assert usage.rate == (100_000.0 if rate is RateUpTo37 else 260869.5652173913)


@pytest.mark.parametrize("profile", [p for p in PROFILES if p not in UNCUT])
def test_a_fetch_asks_for_no_more_than_an_idle_client_may_have(profile: str) -> None:
    # Else a client that asks for more than ten seconds' worth would be refused for ever.
    broker = filled(profile, *[1_000] * 30)
    client = broker.client()
    client.send(fetch(topic_id=topic_id(broker)), 13)
    broker.advance(100)  # framing puts it over by some bytes, which pass after as many ms
    answer = client.answer()
    if not answer.message.responses:
        client.send(fetch(topic_id=topic_id(broker)), 13)
        answer = client.answer()
    assert 8_000 <= len(fetched_bytes(answer.message)) <= 10 * QUOTA


def test_a_fetch_that_waits_for_bytes_is_throttled_when_it_has_them() -> None:
    broker = filled("kip-13")
    client = broker.client()
    client.send(fetch(0, max_wait_ms=60_000), 4)
    broker.advance(700)
    assert broker.broker.quotas.fetch.measure("ANONYMOUS", "client", broker.clock.wall_ms()) is None
    append(broker, 12_000)
    broker.advance(60_000)
    answer = client.answer()
    assert (answer.at_ms, answer.throttle_time_ms) == (2_700, 2_000)


@pytest.mark.parametrize("version", [4, 11])
def test_the_time_of_a_long_poll_is_not_throttle_time(version: int) -> None:
    broker = filled("by-version")
    client = broker.client()
    client.send(fetch(0, max_wait_ms=5_000), version)
    broker.advance(5_000)
    answer = client.answer()
    assert (answer.at_ms, answer.throttle_time_ms) == (5_000, 0)


@pytest.mark.parametrize("profile", PROFILES)
def test_an_answer_without_records_is_charged_its_own_size(profile: str) -> None:
    broker = filled(profile)
    client = broker.client()
    client.send(fetch(0), 11)
    assert charged(broker.broker.quotas.fetch, broker) == charge_of(client.answer())


@pytest.mark.parametrize("profile", PROFILES)
def test_a_fetch_that_fails_as_a_whole_is_charged_its_own_size(profile: str) -> None:
    broker = filled(profile, 5_000)
    client = broker.client()
    client.send(fetch(0), 11)
    before = charge_of(client.answer())
    request = fetch(0)
    request.session_id, request.session_epoch = 77, 5
    client.send(request, 11)
    answer = client.answer()
    assert answer.message.error_code == 70
    assert charged(broker.broker.quotas.fetch, broker) == before + charge_of(answer)


def test_a_topic_deleted_while_a_fetch_is_held_is_unknown_when_it_reads() -> None:
    broker = filled("kip-13", 12_000)
    client = broker.client()
    client.send(fetch(0), 4)
    broker.broker.delete_topic(broker.broker.cluster.topics["t"])
    broker.advance(2_000)
    assert fetched(client.answer().message).error_code == 3


# -- whose quota -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", ["by-version", "kip-13", "kafka-1.1"])
def test_clients_without_an_id_share_the_default_quota(profile: str) -> None:
    broker = broker_with_quota(profile, PRODUCE)
    first, second = broker.client(None), broker.client("")
    first.send(produce_of(12_000, 9, None), 9)
    second.send(produce_of(12_000, 9, ""), 9)
    broker.advance(60_000)
    assert first.answer().throttle_time_ms == 2_000
    assert second.answer().throttle_time_ms == 14_000, "the two have one bucket (KIP-13)"


@pytest.mark.parametrize("client_id", [None, ""])
def test_a_client_without_an_id_is_not_throttled_as_by_kafka_4_4(client_id: str | None) -> None:
    broker = broker_with_quota("kafka-4.4", PRODUCE)
    client = broker.client(client_id)
    client.send(produce_of(50_000, 9, client_id), 9)
    assert client.answer().throttle_time_ms == 0
    assert client.ask(ApiVersionsRequest(), 0)


def test_each_client_id_has_its_own_bucket_of_the_default() -> None:
    broker = broker_with_quota("by-version", PRODUCE)
    one, other = broker.client("one"), broker.client("other")
    over_quota(broker, one, 9)
    over_quota(broker, other, 9, throttle_ms=0)
    assert one.answer().throttle_time_ms == 2_000
    assert other.answer().throttle_time_ms == 0


def test_all_connections_of_a_client_id_share_one_bucket() -> None:
    broker = broker_with_quota("by-version", PRODUCE)
    one, other = broker.client("same"), broker.client("same")
    one.send(produce_of(6_000, 9, "same"), 9)
    other.send(produce_of(6_000, 9, "same"), 9)
    assert one.answer().throttle_time_ms == 0
    assert other.answer().throttle_time_ms == 2_000


def test_an_override_goes_before_the_default() -> None:
    broker = broker_with_quota("by-version", PRODUCE, "quota.producer.override=gold:2000,lead:500")
    throttled = {}
    for client_id in ("gold", "lead", "other"):
        client = broker.client(client_id)
        over_quota(broker, client, 9)
        throttled[client_id] = client.answer().throttle_time_ms
    assert throttled == {"gold": 0, "lead": 14_000, "other": 2_000}


def test_produce_and_fetch_quotas_know_nothing_of_each_other() -> None:
    broker = broker_with_quota("by-version", PRODUCE)
    producer, consumer = broker.client("same"), broker.client("same")
    over_quota(broker, producer, 9)
    consumer.send(fetch(0), 11)
    answer = consumer.answer()
    assert (answer.at_ms, answer.throttle_time_ms, len(fetched_bytes(answer.message)) > 11_000) == (0, 0, True)


@pytest.mark.parametrize("version", [3, 9], ids=["held", "muted"])
def test_a_client_over_its_quota_slows_no_other_one(version: int) -> None:
    broker = broker_with_quota("by-version", PRODUCE, "quota.producer.override=other:1e9")
    slow = [broker.client("slow") for _ in range(20)]
    for client in slow:
        over_quota(broker, client, version, throttle_ms=100_000)
    other = broker.client("other")
    for second in range(10):
        other.send(produce_of(50_000, version, "other"), version)
        answer = other.answer()
        assert (answer.at_ms, answer.throttle_time_ms) == (second * 1_000, 0)
        broker.advance(1_000)
    assert len(broker.broker.throttled) == 20


def test_another_connection_of_a_throttled_client_is_judged_on_its_own_request() -> None:
    broker = broker_with_quota("by-version", PRODUCE)
    one, other = broker.client("same"), broker.client("same")
    over_quota(broker, one, 9)
    other.send(ApiVersionsRequest(), 0)
    assert other.answer().at_ms == 0


# -- clients that leave ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [3, 9], ids=["held", "muted"])
def test_a_throttled_client_that_leaves_is_forgotten_when_its_throttle_is_over(version: int) -> None:
    broker = broker_with_quota("by-version", PRODUCE)
    client = broker.client()
    over_quota(broker, client, version)
    client.take_answers()
    client.send(produce(9), 9)
    client.leave()
    broker.advance(1_999)
    assert len(broker.broker.throttled) == 1, "what is not read cannot be seen to have ended (reference 6.5)"
    broker.advance(10_000)
    assert len(broker.broker.throttled) == 0
    assert broker.server.connections == {}


@pytest.mark.parametrize("version", [3, 9], ids=["held", "muted"])
def test_what_a_throttled_client_sent_before_its_end_is_not_lost(version: int) -> None:
    broker = broker_with_quota("by-version", PRODUCE)
    client = broker.client()
    over_quota(broker, client, version)
    client.send(produce(version), version)
    client.end()
    broker.advance(60_000)
    assert broker.partition().log.log_end_offset == 2
    assert len(client.take_answers()) == 2
    assert client.closed_at_ms is not None


def test_throttled_connections_are_counted_while_they_wait() -> None:
    broker = broker_with_quota("by-version", PRODUCE)
    for number, version in enumerate((3, 9, 9)):
        over_quota(broker, broker.client(f"client-{number}"), version)
    assert len(broker.broker.throttled) == 3
    broker.advance(2_000)
    assert len(broker.broker.throttled) == 0
