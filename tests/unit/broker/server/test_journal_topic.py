"""The journal as a topic: what is in it, who may write to it, and that reading it comes to an end."""

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
    """The records of batches that follow each other."""
    found: list[Record] = []
    while data:
        size = LOG_OVERHEAD + int.from_bytes(data[8:LOG_OVERHEAD])
        found += iter_records(data[:size])
        data = data[size:]
    return found


def with_topic(*overrides: str) -> VirtualBroker:
    return VirtualBroker(JOURNAL, "sluice.journal.topic=true", *overrides)


def records(broker: VirtualBroker) -> list[tuple[bytes | None, AnyEvent]]:
    """Key and event of each record that the topic has."""
    found = broker.partition(JOURNAL_TOPIC).log
    read = found.read(found.log_start_offset, 1 << 30, found.high_watermark, min_one_batch=True)
    return [(one.key, decode(one.value or b"")) for part in read.parts for one in records_in(bytes(part))]


def test_events_are_records_under_their_client_id() -> None:
    broker = with_topic()
    broker.topic()
    broker.client("shop").ask(produce(9), 9)
    assert records(broker) == []
    broker.advance(POLL_MS)
    (opened_key, opened), (key, request) = records(broker)
    assert isinstance(opened, ConnectionOpened)
    assert opened_key == b""
    assert isinstance(request, Request)
    assert (key, request.api, request.seq) == (b"shop", "Produce", 2)


def test_what_no_client_did_has_no_key() -> None:
    broker = with_topic("sluice.brokers=2", "sluice.election.delay.ms=100")
    broker.topic(replicas=2)
    broker.cluster_server.stop_broker(2)
    broker.advance(1000)
    kinds = {(key, type(event)) for key, event in records(broker)}
    assert {(None, BrokerState)} <= kinds <= {(None, BrokerState), (None, LeaderChange)}


def test_the_topic_goes_on_under_another_leader() -> None:
    broker = with_topic("sluice.brokers=3", "sluice.election.delay.ms=100")
    broker.advance(POLL_MS)
    partition = broker.partition(JOURNAL_TOPIC)
    assert len(partition.replicas) == 3
    before = partition.leader
    broker.cluster_server.stop_broker(before, controlled=False)
    broker.advance(1000)
    assert partition.leader not in (before, -1)
    (left,) = [one for _, one in records(broker) if isinstance(one, LeaderChange) and one.topic == JOURNAL_TOPIC]
    assert (left.before, left.broker) == (before, partition.leader)


def test_a_consumer_that_waits_is_told_of_what_happens_and_not_of_its_own_reading() -> None:
    broker = with_topic()
    broker.topic()
    reader = broker.client("reader")
    broker.advance(POLL_MS)
    end = broker.partition(JOURNAL_TOPIC).log.log_end_offset
    reader.send(fetch(end, topic=JOURNAL_TOPIC, max_wait_ms=10_000), 4)
    broker.advance(1000)
    assert not reader.answers, "its own fetch is no event"
    broker.client("shop").ask(produce(9), 9)
    broker.advance(POLL_MS)
    (data,) = reader.answer().message.responses[0].partitions
    kinds = [type(decode(one.value or b"")) for one in records_in(bytes(data.records))]
    assert kinds == [ConnectionOpened, Request]
    end = broker.partition(JOURNAL_TOPIC).log.log_end_offset
    broker.advance(1000)
    assert broker.partition(JOURNAL_TOPIC).log.log_end_offset == end, "and its answer is none either"


def test_more_than_there_is_room_for_is_a_gap() -> None:
    broker = with_topic("sluice.journal.events=4")
    broker.topic()
    client = broker.client("shop")
    for _ in range(9):
        client.ask(produce(9), 9)
    broker.advance(POLL_MS)
    (_, gap), *rest = records(broker)
    assert isinstance(gap, Gap)
    assert (gap.lost, [event.seq for _, event in rest]) == (6, [7, 8, 9, 10])


def test_a_lot_is_written_slice_by_slice_without_a_loss() -> None:
    broker = with_topic()
    broker.topic()
    client = broker.client("shop")
    for _ in range(600):
        client.ask(produce(9), 9)
    broker.advance(POLL_MS)
    assert len(records(broker)) == 256
    broker.advance(2 * POLL_MS)
    assert [event.seq for _, event in records(broker)] == [*range(1, 602)]


def test_old_records_go_when_there_are_too_many() -> None:
    broker = with_topic()
    broker.advance(POLL_MS)
    topic = broker.cluster.topics[JOURNAL_TOPIC]
    assert topic.config.integer("retention.bytes") == 64 << 20
    log = broker.partition(JOURNAL_TOPIC).log
    assert (log.config.segment_bytes, log.config.retention_bytes) == (16 << 20, 64 << 20)


def test_clients_cannot_write_to_it() -> None:
    broker = with_topic()
    answer = broker.client().ask(produce(9, batch(), topic=JOURNAL_TOPIC), 9)
    (partition,) = answer.responses[0].partition_responses
    assert partition.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_it_is_there_only_if_it_is_wanted() -> None:
    broker = VirtualBroker(JOURNAL)
    broker.client().ask(MetadataRequest(), 9)
    broker.advance(1000)
    assert JOURNAL_TOPIC not in broker.cluster.topics


def test_it_is_made_again_when_it_was_deleted() -> None:
    broker = with_topic()
    broker.broker.delete_topic(broker.cluster.topics[JOURNAL_TOPIC])
    broker.client()
    broker.advance(POLL_MS)
    assert [type(event) for _, event in records(broker)] == [ConnectionOpened]


def test_without_a_journal_it_cannot_be() -> None:
    with pytest.raises(ConfigError, match=r"^sluice\.journal\.topic: true requires sluice\.journal\.events above 0$"):
        with_topic("sluice.journal.events=0")
