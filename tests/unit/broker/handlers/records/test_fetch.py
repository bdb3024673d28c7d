"""Fetch: long polls, limits, visibility and errors."""

from collections.abc import Callable
from typing import Any

import pytest

from sluice.broker.metadata.topic import Topic
from sluice.protocol.apis.delete_topics import DeleteTopicsRequest
from sluice.protocol.apis.fetch import FetchPartition, FetchRequest, FetchTopic
from sluice.protocol.apis.metadata import MetadataRequest
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.build import ABORT, build_transaction_marker
from sluice.protocol.records.log_validator import COORDINATOR
from tests.support.records import batch, batch_of, fetch, fetched, fetched_bytes, produce, records_of, values
from tests.support.virtual_broker import WALL_START_MS, Client, VirtualBroker, broker_with_topic
from tests.support.wire import error_codes

VERSIONS = range(19)


def fetch_of(*indexes: int, partition_max_bytes: int = 1 << 20, **fields: Any) -> FetchRequest:
    """Return a request for these partitions of "t", from their start."""
    partitions = [FetchPartition(partition=index, partition_max_bytes=partition_max_bytes) for index in indexes]
    return FetchRequest(**fields, topics=[FetchTopic(topic="t", partitions=partitions)])


# -- long polls --------------------------------------------------------------------------------------------------------


def test_fetch_waits_max_wait_ms_for_min_bytes(topic: Topic, client: Client, broker: VirtualBroker) -> None:
    client.send(fetch(0, max_wait_ms=500), 11)
    broker.advance(499)
    assert client.take_responses() == []
    broker.advance(1)
    response = client.response()
    assert (response.at_ms, fetched(response.message).error_code, fetched_bytes(response.message)) == (500, 0, b"")


def session_fetch(session_id: int, session_epoch: int, *, max_wait_ms: int = 0) -> FetchRequest:
    """Return a request of a session, which fetches the partitions that the session has."""
    return FetchRequest(
        max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=1 << 20, session_id=session_id, session_epoch=session_epoch
    )


@pytest.fixture
def session_id(topic: Topic, client: Client) -> int:
    """Return the id of a new session."""
    opening = fetch(0)
    opening.session_epoch = 0
    opened: int = client.call(opening, 12).session_id
    return opened


@pytest.mark.parametrize("together", [False, True], ids=["later", "in the same read"])
def test_long_poll_ends_when_the_next_request_closes_its_session(
    session_id: int, client: Client, broker: VirtualBroker, together: bool
) -> None:
    poll, close = session_fetch(session_id, 1, max_wait_ms=500), session_fetch(session_id, -1, max_wait_ms=500)
    if together:
        client.send_together((poll, 12), (close, 12))
    else:
        client.send(poll, 12)
        broker.advance(100)
        client.send(close, 12)
    assert [response.message.error_code for response in client.take_responses()] == [0, 0]
    assert broker.broker.fetch_sessions.find(session_id) is None


NEXT_REQUESTS = {
    "continues the session": (0, 2, 12),
    "closes another session": (1, -1, 12),
    "is of another version": (0, -1, 11),
}


@pytest.mark.parametrize(("session", "epoch", "version"), NEXT_REQUESTS.values(), ids=NEXT_REQUESTS)
def test_long_poll_continues_if_the_next_request(
    session_id: int, client: Client, broker: VirtualBroker, session: int, epoch: int, version: int
) -> None:
    client.send(session_fetch(session_id, 1, max_wait_ms=500), 12)
    client.send(session_fetch(session_id + session, epoch), version)
    broker.advance(499)
    assert client.take_responses() == []
    broker.advance(1)
    assert len(client.take_responses()) == 2


FOLLOWING = {
    "a request of another API": lambda client: client.frame(MetadataRequest(), 12),
    "a part of a request": lambda client: client.frame(session_fetch(0, -1), 12)[:-1],
    "a malformed request": lambda _: (20).to_bytes(4) + b"\0\1\0\x0c" + bytes(16),
}


@pytest.mark.parametrize("following", FOLLOWING.values(), ids=FOLLOWING)
def test_long_poll_continues_with_other_bytes_behind_it(
    session_id: int, client: Client, broker: VirtualBroker, following: Callable[[Client], bytes]
) -> None:
    client.send(session_fetch(session_id, 1, max_wait_ms=500), 12)
    client.send_bytes(following(client))
    broker.advance(499)
    assert client.take_responses() == []
    broker.advance(1)
    assert client.responses


def test_fetch_of_available_records_does_not_wait(topic: Topic, client: Client) -> None:
    client.call(produce(9, batch_of(1_000)), 9)
    client.send(fetch(0, max_wait_ms=500, min_bytes=1_000), 11)
    assert client.response().at_ms == 0


@pytest.mark.parametrize("max_wait_ms", [0, -1])
def test_fetch_without_max_wait_returns_immediately(topic: Topic, client: Client, max_wait_ms: int) -> None:
    client.send(fetch(0, max_wait_ms=max_wait_ms, min_bytes=1_000), 11)
    assert client.response().at_ms == 0


@pytest.mark.parametrize("min_bytes", [0, -1])
def test_fetch_without_min_bytes_returns_immediately(topic: Topic, client: Client, min_bytes: int) -> None:
    client.send(fetch(0, max_wait_ms=500, min_bytes=min_bytes), 11)
    assert client.response().at_ms == 0


def test_produce_that_reaches_min_bytes_completes_a_pending_fetch(topic: Topic, broker: VirtualBroker) -> None:
    consumer, producer = broker.client(), broker.client()
    consumer.send(fetch(0, max_wait_ms=10_000, min_bytes=2_500), 11)
    for second in range(2):
        broker.advance(1_000)
        producer.call(produce(9, batch_of(1_000)), 9)
        assert consumer.responses == [], f"{1_000 * (second + 1)} bytes are below min_bytes"
    broker.advance(1_000)
    producer.call(produce(9, batch_of(1_000)), 9)
    response = consumer.response()
    assert (response.at_ms, len(fetched_bytes(response.message))) == (3_000, 3_000)


def test_bytes_found_before_a_fetch_waits_are_sent_and_counted_once(topic: Topic, broker: VirtualBroker) -> None:
    consumer, producer = broker.client(), broker.client()
    producer.call(produce(9, batch_of(1_000)), 9)
    consumer.send(fetch(0, max_wait_ms=10_000, min_bytes=1_500), 11)
    assert broker.broker.cluster.topics["t"].traffic[1].bytes_out == 0
    producer.call(produce(9, batch_of(1_000)), 9)
    assert len(fetched_bytes(consumer.response().message)) == 2_000
    assert broker.broker.cluster.topics["t"].traffic[1].bytes_out == 2_000


def test_produce_response_precedes_the_fetch_that_it_completes(topic: Topic, broker: VirtualBroker) -> None:
    consumer, producer = broker.client(), broker.client()
    order: list[str] = []
    consumer.on_bytes = lambda data: order.append("fetch")
    producer.on_bytes = lambda data: order.append("produce")
    consumer.send(fetch(0, max_wait_ms=10_000), 11)
    producer.send(produce(9), 9)
    assert order == ["produce", "fetch"]


def test_min_bytes_counts_the_bytes_of_all_partitions(broker: VirtualBroker) -> None:
    broker.topic(partitions=2)
    consumer, producer = broker.client(), broker.client()
    consumer.send(fetch_of(0, 1, max_wait_ms=10_000, min_bytes=2_000), 11)
    producer.call(produce(9, batch_of(1_000), partition=0), 9)
    assert consumer.responses == []
    producer.call(produce(9, batch_of(1_000), partition=1), 9)
    sizes = [len(data.records) for data in consumer.response().message.responses[0].partitions]
    assert sizes == [1_000, 1_000]
    assert len(broker.broker.replicas.fetches) == 0


def test_produce_completes_all_pending_fetches_of_a_partition(topic: Topic, broker: VirtualBroker) -> None:
    consumers = [broker.client() for _ in range(3)]
    for consumer in consumers:
        consumer.send(fetch(0, max_wait_ms=10_000), 11)
    broker.client().call(produce(9), 9)
    assert [len(values(fetched_bytes(consumer.response().message))) for consumer in consumers] == [1, 1, 1]


@pytest.mark.parametrize("topics", [[], [FetchTopic(topic="t", partitions=[])]], ids=["no topic", "no partition"])
def test_fetch_without_partitions_does_not_wait(topic: Topic, client: Client, topics: list[FetchTopic]) -> None:
    client.send(FetchRequest(max_wait_ms=10_000, min_bytes=1, topics=topics), 11)
    assert client.response().at_ms == 0


def test_topic_deletion_completes_pending_fetches(topic: Topic, broker: VirtualBroker) -> None:
    consumer, admin = broker.client(), broker.client()
    consumer.send(fetch(0, max_wait_ms=10_000), 11)
    assert error_codes(admin.call(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)) == []
    response = consumer.response()
    assert (response.at_ms, fetched(response.message).error_code) == (0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


# -- limits ------------------------------------------------------------------------------------------------------------


LIMITS = {
    "whole batches within the partition limit": ({"partition_max_bytes": 2_500}, [2_000, 1_000]),
    "first batch whole, despite a smaller partition limit": ({"partition_max_bytes": 1}, [1_000, 0]),
    "limit of the whole response": ({"max_bytes": 2_500}, [2_000, 0]),
    "limit that is met exactly": ({"max_bytes": 3_000}, [3_000, 0]),
    "one batch in total, despite a smaller response limit": ({"max_bytes": 1}, [1_000, 0]),
}


@pytest.mark.parametrize(("limits", "sizes"), LIMITS.values(), ids=LIMITS)
def test_size_limits_apply_except_to_the_first_batch(limits: dict[str, int], sizes: list[int]) -> None:
    client = broker_with_topic(partitions=2).client()
    for _ in range(3):
        client.call(produce(9, batch_of(1_000)), 9)
    client.call(produce(9, batch_of(1_000), partition=1), 9)
    response = client.call(fetch_of(0, 1, **({"max_bytes": 1 << 20} | limits)), 11)
    assert [len(data.records) for data in response.responses[0].partitions] == sizes


def test_fetch_at_its_size_limit_does_not_wait_for_min_bytes(topic: Topic, client: Client) -> None:
    for _ in range(2):
        client.call(produce(9, batch_of(1_000)), 9)
    client.send(fetch(0, max_wait_ms=10_000, min_bytes=5_000, max_bytes=2_000), 11)
    response = client.response()
    assert (response.at_ms, len(fetched_bytes(response.message))) == (0, 2_000)


def test_broker_fetch_max_bytes_limits_the_response() -> None:
    client = broker_with_topic("fetch.max.bytes=2500").client()
    for _ in range(5):
        client.call(produce(9, batch_of(1_000)), 9)
    assert len(fetched_bytes(client.call(fetch(0), 11))) == 2_000


# -- visibility --------------------------------------------------------------------------------------------------------


def append_transaction(broker: VirtualBroker) -> None:
    """Append two records of an open transaction, then one non-transactional record."""
    log = broker.partition().log
    for data in (
        batch(b"open-1", b"open-2", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True),
        batch(b"plain"),
    ):
        assert log.append(memoryview(bytearray(data)), WALL_START_MS, 0).error_code == 0
    log.advance_high_watermark(3)


def test_read_committed_returns_records_below_the_last_stable_offset(topic: Topic, client: Client) -> None:
    append_transaction(client.broker)
    committed = fetched(client.call(fetch(0, isolation_level=1), 11))
    assert (committed.high_watermark, committed.last_stable_offset, len(committed.records or b"")) == (3, 0, 0)
    assert values(fetched_bytes(client.call(fetch(0), 11))) == [b"open-1", b"open-2", b"plain"]


def test_read_committed_returns_aborted_transactions(topic: Topic, broker: VirtualBroker) -> None:
    append_transaction(broker)
    marker = build_transaction_marker(
        ABORT, offset=0, timestamp=WALL_START_MS, producer_id=7, producer_epoch=0, coordinator_epoch=0
    )
    log = broker.partition().log
    assert log.append(memoryview(bytearray(marker)), WALL_START_MS, 0, COORDINATOR).error_code == 0
    log.advance_high_watermark(4)
    client = broker.client()
    committed = fetched(client.call(fetch(0, isolation_level=1), 11))
    assert committed.last_stable_offset == 4
    assert [(aborted.producer_id, aborted.first_offset) for aborted in committed.aborted_transactions or []] == [(7, 0)]
    assert fetched(client.call(fetch(0), 11)).aborted_transactions is None, "only read_committed requests them"


def test_read_committed_fetch_waits_for_the_end_of_a_transaction(topic: Topic, client: Client) -> None:
    append_transaction(client.broker)
    client.send(fetch(0, isolation_level=1, max_wait_ms=1_000), 11)
    client.broker.advance(999)
    assert client.responses == []


def test_unreplicated_records_are_not_visible() -> None:
    broker = broker_with_topic("sluice.replication.delay.ms=300")
    consumer, producer = broker.client(), broker.client()
    producer.call(produce(9), 9)
    assert fetched_bytes(consumer.call(fetch(0), 11)) == b""
    consumer.send(fetch(0, max_wait_ms=10_000), 11)
    broker.advance(10_000)
    response = consumer.response()
    assert (response.at_ms, values(fetched_bytes(response.message))) == (300, [b"v"])


@pytest.mark.parametrize("version", VERSIONS)
def test_response_contains_the_offsets_of_the_log(topic: Topic, client: Client, version: int) -> None:
    for _ in range(3):
        client.call(produce(9), 9)
    data = fetched(client.call(fetch(1, topic_id=topic.topic_id), version))
    expected = (3, 3 if version >= 4 else -1, 0 if version >= 5 else -1)
    assert (data.high_watermark, data.last_stable_offset, data.log_start_offset) == expected


# -- errors ------------------------------------------------------------------------------------------------------------

UNKNOWN_ID = bytes(15) + b"\7"


PARTITION_ERRORS = {
    "unknown topic name": ({"topic": "nowhere"}, 12, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "unknown topic id": ({"topic_id": UNKNOWN_ID}, 13, ErrorCode.UNKNOWN_TOPIC_ID),
    "zero topic id": ({"topic_id": bytes(16)}, 13, ErrorCode.UNKNOWN_TOPIC_ID),
    "unknown partition": ({"partition": 1}, 11, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "negative partition": ({"partition": -1}, 11, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "offset above the log end": ({"offset": 3}, 11, ErrorCode.OFFSET_OUT_OF_RANGE),
    "negative offset": ({"offset": -1}, 11, ErrorCode.OFFSET_OUT_OF_RANGE),
    "largest offset": ({"offset": 2**63 - 1}, 11, ErrorCode.OFFSET_OUT_OF_RANGE),
    "older leader epoch": ({"current_leader_epoch": 4}, 11, ErrorCode.FENCED_LEADER_EPOCH),
    "newer leader epoch": ({"current_leader_epoch": 6}, 11, ErrorCode.UNKNOWN_LEADER_EPOCH),
}


@pytest.mark.parametrize(("fields", "version", "code"), PARTITION_ERRORS.values(), ids=PARTITION_ERRORS)
def test_partition_error_completes_the_fetch_immediately(fields: dict[str, Any], version: int, code: int) -> None:
    broker = broker_with_topic()
    client = broker.client()
    for _ in range(2):
        client.call(produce(9), 9)
    broker.partition().leader_epoch = 5
    client.send(fetch(**({"max_wait_ms": 10_000} | fields)), version)
    response = client.response()
    assert (response.at_ms, fetched(response.message).error_code) == (0, code)
    assert fetched_bytes(response.message) == b""


@pytest.mark.parametrize("epoch", [-1, 5])
def test_matching_or_omitted_leader_epoch_is_accepted(topic: Topic, broker: VirtualBroker, epoch: int) -> None:
    broker.partition().leader_epoch = 5
    assert fetched(broker.client().call(fetch(0, current_leader_epoch=epoch), 11)).error_code == 0


def test_offset_at_the_log_end_is_in_range(topic: Topic, client: Client) -> None:
    client.call(produce(9), 9)
    data = fetched(client.call(fetch(1), 11))
    assert (data.error_code, records_of(data)) == (0, b"")


def test_out_of_range_response_contains_no_offsets(topic: Topic, client: Client, broker: VirtualBroker) -> None:
    for _ in range(3):
        client.call(produce(9), 9)
    broker.partition().log.delete_records_before(2)
    data = fetched(client.call(fetch(1), 11))
    assert data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (data.high_watermark, data.last_stable_offset, data.log_start_offset) == (-1, -1, -1)


def test_failing_partition_does_not_affect_others(topic: Topic, client: Client) -> None:
    client.call(produce(9), 9)
    partitions_read = client.call(fetch_of(1, 0, max_wait_ms=10_000), 11).responses[0].partitions
    assert [(one.partition_index, one.error_code, len(one.records) > 0) for one in partitions_read] == [
        (0, 0, True),
        (1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False),
    ], "as in Kafka, unknown partitions come last"


def test_unknown_partition_does_not_complete_a_pending_fetch(client: Client, broker: VirtualBroker) -> None:
    broker.topic()
    client.send(fetch_of(1, 0, max_wait_ms=500, min_bytes=1), 11)
    broker.advance(500)
    response = client.response()
    assert response.at_ms == 500
    assert error_codes(response.message) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_last_entry_of_a_duplicate_partition_counts(broker: VirtualBroker) -> None:
    broker.topic(partitions=2)
    client = broker.client()
    for _ in range(3):
        client.call(produce(9), 9)
    partitions = [
        FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
        for index, offset in ((0, 9), (1, 0), (0, 2))
    ]
    (topic,) = client.call(FetchRequest(topics=[FetchTopic(topic="t", partitions=partitions)]), 11).responses
    assert [(partition.partition_index, partition.error_code) for partition in topic.partitions] == [(0, 0), (1, 0)]
    assert len(values(records_of(topic.partitions[0]))) == 1
