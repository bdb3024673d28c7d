"""The journal records what real clients did, and it can be consumed as a topic at the same time."""

import asyncio
import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from time import monotonic, sleep
from urllib.parse import urlencode

import kafka
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AiokafkaPartition
from confluent_kafka import Consumer, Producer, TopicPartition

from sluice.broker.metadata.topic import JOURNAL_TOPIC
from sluice.journal_events import AnyEvent, ConnectionClosed, ConnectionOpened, Request, decode
from tests.clients.driver import TIMEOUT_S
from tests.support.broker_process import BrokerProcess, overrides, running_broker

RECORDS = 3
PROPERTIES = ("sluice.journal.events=16384", "sluice.journal.topic=true")


@pytest.fixture(scope="module")
def journaled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker that also writes its journal to a topic."""
    with running_broker(tmp_path_factory.mktemp("journal") / "log", *overrides(*PROPERTIES)) as process:
        yield process
        assert process.stop()[0] == 0


def events_of(broker: BrokerProcess, client_id: str) -> list[AnyEvent]:
    response = json.loads(broker.get(f"/api/v1/journal?{urlencode({'client_id': client_id, 'limit': 10_000})}"))
    return [decode(json.dumps(one)) for one in response["events"]]


def requests_of(broker: BrokerProcess, client_id: str) -> list[Request]:
    return [one for one in events_of(broker, client_id) if isinstance(one, Request)]


# -- requests ---------------------------------------------------------------------------------------------------------


def with_aiokafka(bootstrap: str, topic: str, client_id: str) -> None:
    async def run() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, client_id=client_id)
        await producer.start()
        for _ in range(RECORDS):
            await producer.send_and_wait(topic, b"v", partition=0)
        await producer.stop()
        consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap, client_id=client_id, auto_offset_reset="earliest", enable_auto_commit=False
        )
        await consumer.start()
        consumer.assign([AiokafkaPartition(topic, 0)])
        for _ in range(RECORDS):
            await asyncio.wait_for(consumer.getone(), TIMEOUT_S)
        await consumer.stop()

    asyncio.run(run())


def with_kafka_python(bootstrap: str, topic: str, client_id: str) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, client_id=client_id, enable_idempotence=False)
    for _ in range(RECORDS):
        producer.send(topic, b"v", partition=0).get(TIMEOUT_S)
    producer.close()
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap,
        client_id=client_id,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        consumer_timeout_ms=TIMEOUT_S * 1000,
    )
    consumer.assign([kafka.TopicPartition(topic, 0)])
    for _ in range(RECORDS):
        next(consumer)
    consumer.close()


def with_confluent(bootstrap: str, topic: str, client_id: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": client_id, "enable.idempotence": True})
    for _ in range(RECORDS):
        producer.produce(topic, b"v", partition=0)
        assert producer.flush(TIMEOUT_S) == 0
    del producer
    consumer = Consumer({"bootstrap.servers": bootstrap, "client.id": client_id, "group.id": "unused"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    for _ in range(RECORDS):
        assert consumer.poll(TIMEOUT_S) is not None
    consumer.close()


CLIENTS = {"aiokafka": with_aiokafka, "kafka-python": with_kafka_python, "confluent-kafka": with_confluent}


@pytest.mark.parametrize("run", CLIENTS.values(), ids=CLIENTS)
def test_journal_records_the_requests_of_a_client(
    journaled: BrokerProcess, topic: str, run: Callable[[str, str, str], None]
) -> None:
    client_id = f"{topic}-client"
    run(journaled.bootstrap, topic, client_id)
    requests = requests_of(journaled, client_id)
    produced = [one for one in requests if one.api == "Produce" and not one.error_codes]
    assert len(produced) == RECORDS
    assert {(one.partitions[0].topic, one.partitions[0].partition) for one in produced} == {(topic, 0)}
    if run is with_confluent:
        assert [one.partitions[0].base_sequence for one in produced] == [*range(RECORDS)]
        assert len({one.attempt_key for one in produced}) == RECORDS
    else:
        assert {one.attempt_key for one in produced} == {f"{topic}-0"}
    fetched = [one for one in requests if one.api == "Fetch" and one.partitions]
    assert {one.attempt_key for one in fetched} == {f"{topic}-0"}
    for connection in {one.connection for one in requests}:
        mine = [one for one in requests if one.connection == connection]
        assert all(a.correlation_id < b.correlation_id for a, b in pairwise(mine))
        assert all(a.started_ns <= b.started_ns for a, b in pairwise(mine))
    for one in requests:
        assert one.received_ns <= one.started_ns <= (one.answered_ns or one.at_ns), one
        if one.written_ns is not None:
            assert one.answered_ns is not None
            assert one.answered_ns <= one.written_ns, one
    check_opened_and_closed(journaled, {one.connection for one in requests})


def check_opened_and_closed(journaled: BrokerProcess, used: set[int]) -> None:
    """Wait until each of these connections has an open and a close event."""
    until = monotonic() + TIMEOUT_S
    while True:
        response = json.loads(
            journaled.get("/api/v1/journal?kind=connection-opened&kind=connection-closed&limit=10000")
        )
        events = [decode(json.dumps(one)) for one in response["events"]]
        opened = [one.connection for one in events if isinstance(one, ConnectionOpened)]
        closed = [one.connection for one in events if isinstance(one, ConnectionClosed)]
        if used <= set(closed):
            break
        assert monotonic() < until, f"connections without a close event: {used - set(closed)}"
        sleep(0.01)
    assert used <= set(opened)
    assert len(set(opened)) == len(opened)
    assert len(set(closed)) == len(closed)
    assert set(closed) <= set(opened)


# -- the topic ---------------------------------------------------------------------------------------------------------


def test_journal_topic_can_be_consumed_while_clients_produce(journaled: BrokerProcess, topic: str) -> None:
    consumer = Consumer({"bootstrap.servers": journaled.bootstrap, "client.id": "watcher", "group.id": "unused"})
    low, high = consumer.get_watermark_offsets(TopicPartition(JOURNAL_TOPIC, 0), TIMEOUT_S)
    consumer.assign([TopicPartition(JOURNAL_TOPIC, 0, high)])
    assert low == 0
    producer = Producer({"bootstrap.servers": journaled.bootstrap, "client.id": "watched"})
    seen: list[AnyEvent] = []
    for sent in range(1, RECORDS + 1):
        producer.produce(topic, b"v")
        assert producer.flush(TIMEOUT_S) == 0
        until = monotonic() + TIMEOUT_S
        # Events of the clients of earlier tests may still arrive.
        while (
            sum(isinstance(one, Request) and (one.client_id, one.api) == ("watched", "Produce") for one in seen) < sent
        ):
            assert monotonic() < until, "the journal topic lacks the produce requests"
            message = consumer.poll(1)
            if message is not None:
                event = decode(message.value() or b"")
                assert message.key() == (getattr(event, "client_id", None) or "").encode()
                seen.append(event)
    consumer.close()
    fetched = [one for one in requests_of(journaled, "watcher") if one.api == "Fetch"]
    assert fetched == [], "the journal contains its own reader"
