"""The journal topic: records, gaps, retention, and fetches that add no events."""

import pytest

from sluice.broker.metadata.topic import JOURNAL_TOPIC
from sluice.errors import ConfigError
from sluice.journal_events import AnyEvent, BrokerState, ConnectionOpened, Gap, LeaderChange, Request, decode
from sluice.protocol.apis.metadata import MetadataRequest
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.batch import LOG_OVERHEAD
from sluice.protocol.records.record import Record, iter_records
from tests.support.records import batch, fetch, produce
from tests.support.virtual_broker import JOURNAL, VirtualBroker

POLL_MS = 20


def records_in(data: bytes) -> list[Record]:
    parsed: list[Record] = []
    while data:
        size = LOG_OVERHEAD + int.from_bytes(data[8:LOG_OVERHEAD])
        parsed += iter_records(data[:size])
        data = data[size:]
    return parsed


def with_topic(*overrides: str) -> VirtualBroker:
    return VirtualBroker(JOURNAL, "sluice.journal.topic=true", *overrides)


def records(broker: VirtualBroker) -> list[tuple[bytes | None, AnyEvent]]:
    log = broker.partition(JOURNAL_TOPIC).log
    read = log.read(log.log_start_offset, 1 << 30, log.high_watermark, min_one_batch=True)
    return [(event.key, decode(event.value or b"")) for part in read.parts for event in records_in(bytes(part))]


def test_events_are_records_with_the_client_id_as_key() -> None:
    broker = with_topic()
    broker.topic()
    broker.client("shop").call(produce(9), 9)
    assert records(broker) == []
    broker.advance(POLL_MS)
    (opened_key, opened), (key, request) = records(broker)
    assert isinstance(opened, ConnectionOpened)
    assert opened_key == b""
    assert isinstance(request, Request)
    assert (key, request.api, request.seq) == (b"shop", "Produce", 2)


def test_events_of_the_cluster_have_no_key() -> None:
    broker = with_topic("sluice.brokers=2", "sluice.election.delay.ms=100")
    broker.topic(replicas=2)
    broker.cluster_server.stop_broker(2)
    broker.advance(1000)
    kinds = {(key, type(event)) for key, event in records(broker)}
    assert {(None, BrokerState)} <= kinds <= {(None, BrokerState), (None, LeaderChange)}


def test_journal_topic_continues_under_a_new_leader() -> None:
    broker = with_topic("sluice.brokers=3", "sluice.election.delay.ms=100")
    broker.advance(POLL_MS)
    partition = broker.partition(JOURNAL_TOPIC)
    assert len(partition.replicas) == 3
    before = partition.leader
    broker.cluster_server.stop_broker(before, controlled=False)
    broker.advance(1000)
    assert partition.leader not in (before, -1)
    (change,) = [
        event for _, event in records(broker) if isinstance(event, LeaderChange) and event.topic == JOURNAL_TOPIC
    ]
    assert (change.before, change.broker) == (before, partition.leader)


def test_fetch_of_the_journal_topic_returns_other_events_and_adds_none() -> None:
    broker = with_topic()
    broker.topic()
    reader = broker.client("reader")
    broker.advance(POLL_MS)
    end = broker.partition(JOURNAL_TOPIC).log.log_end_offset
    reader.send(fetch(end, topic=JOURNAL_TOPIC, max_wait_ms=10_000), 4)
    broker.advance(1000)
    assert not reader.responses, "a fetch of the journal topic is not recorded"
    broker.client("shop").call(produce(9), 9)
    broker.advance(POLL_MS)
    (data,) = reader.response().message.responses[0].partitions
    kinds = [type(decode(event.value or b"")) for event in records_in(bytes(data.records))]
    assert kinds == [ConnectionOpened, Request]
    end = broker.partition(JOURNAL_TOPIC).log.log_end_offset
    broker.advance(1000)
    assert broker.partition(JOURNAL_TOPIC).log.log_end_offset == end, (
        "the response to a fetch of the journal topic is not recorded"
    )


def test_overflow_of_the_journal_is_recorded_as_a_gap() -> None:
    broker = with_topic("sluice.journal.events=4")
    broker.topic()
    client = broker.client("shop")
    for _ in range(9):
        client.call(produce(9), 9)
    broker.advance(POLL_MS)
    (_, gap), *rest = records(broker)
    assert isinstance(gap, Gap)
    assert (gap.lost, [event.seq for _, event in rest]) == (6, [7, 8, 9, 10])


def test_many_events_are_written_in_slices_without_loss() -> None:
    broker = with_topic()
    broker.topic()
    client = broker.client("shop")
    for _ in range(600):
        client.call(produce(9), 9)
    broker.advance(POLL_MS)
    assert len(records(broker)) == 256
    broker.advance(2 * POLL_MS)
    assert [event.seq for _, event in records(broker)] == [*range(1, 602)]


def test_journal_topic_is_limited_by_retention_bytes() -> None:
    broker = with_topic()
    broker.advance(POLL_MS)
    topic = broker.cluster.topics[JOURNAL_TOPIC]
    assert topic.config.integer("retention.bytes") == 64 << 20
    log = broker.partition(JOURNAL_TOPIC).log
    assert (log.config.segment_bytes, log.config.retention_bytes) == (16 << 20, 64 << 20)


def test_produce_to_the_journal_topic_is_rejected() -> None:
    broker = with_topic()
    response = broker.client().call(produce(9, batch(), topic=JOURNAL_TOPIC), 9)
    (partition,) = response.responses[0].partition_responses
    assert partition.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_journal_topic_is_not_created_by_default() -> None:
    broker = VirtualBroker(JOURNAL)
    broker.client().call(MetadataRequest(), 9)
    broker.advance(1000)
    assert JOURNAL_TOPIC not in broker.cluster.topics


def test_deleted_journal_topic_is_created_again() -> None:
    broker = with_topic()
    broker.broker.delete_topic(broker.cluster.topics[JOURNAL_TOPIC])
    broker.client()
    broker.advance(POLL_MS)
    assert [type(event) for _, event in records(broker)] == [ConnectionOpened]


def test_journal_topic_requires_a_journal() -> None:
    with pytest.raises(ConfigError, match=r"^sluice\.journal\.topic: true requires sluice\.journal\.events above 0$"):
        with_topic("sluice.journal.events=0")
