"""Each action on requests, and what real clients make of it: what was acknowledged is there, and is read.

Clients are told to be impatient (a request is given up after a second), so that what they would sit out for half a
minute is over in a moment.
"""

import asyncio
from collections.abc import Callable, Iterator

import kafka
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from confluent_kafka import Consumer, KafkaError, Message, Producer
from confluent_kafka import TopicPartition as Partition

from sluice import SyncBroker
from sluice.broker.faults.rule import Rule, parse_rule
from tests.clients.driver import TIMEOUT_S

VALUES = [b"one", b"two", b"three"]
_IMPATIENT_MS = 1000

# What hits a producer's second request, or a consumer's second fetch.
ACTIONS: dict[str, dict[str, object]] = {
    "error": {"kind": "error", "code": "NOT_LEADER_OR_FOLLOWER"},
    "error after it was handled": {"kind": "error", "code": "REQUEST_TIMED_OUT", "when": "after"},
    "delay": {"kind": "delay", "ms": "100ms"},
    "black hole": {"kind": "black-hole"},
    "close": {"kind": "close"},
    "close after it was handled": {"kind": "close", "when": "after"},
    "close in the middle of the answer": {"kind": "close", "when": "mid-response"},
    "reset": {"kind": "close", "when": "after", "how": "rst"},
    "correlation id": {"kind": "correlation-id"},
    "truncate": {"kind": "truncate"},
    "oversize": {"kind": "oversize"},
    "duplicate request": {"kind": "duplicate", "what": "request"},
    "throttle": {"kind": "throttle", "throttle_time_ms": "100ms"},
}
FETCH_ACTIONS: dict[str, dict[str, object]] = {
    "corrupt records": {"kind": "corrupt-records"},
    "records twice": {"kind": "duplicate", "what": "records"},
}
# Answers that they cannot read, and after which they tell the application that the record has failed.
GIVE_UP = {("truncate", "confluent-kafka"), ("oversize", "confluent-kafka")}
# After such an answer its producer sends nothing any more: the application has to make a new one.
ENDS = {("oversize", "kafka-python")}


@pytest.fixture(scope="module")
def broker() -> Iterator[SyncBroker]:
    with SyncBroker() as running:
        yield running


def confluent_produce(bootstrap: str, topic: str) -> list[bytes]:
    """Returns what was acknowledged."""
    acknowledged: list[bytes] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is None:
            acknowledged.append(message.value() or b"")

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": topic,
            "enable.idempotence": True,
            "linger.ms": 0,
            "request.timeout.ms": _IMPATIENT_MS,
            "socket.timeout.ms": _IMPATIENT_MS,
            "retry.backoff.ms": 20,
            "reconnect.backoff.ms": 20,
            "log_level": 0,
        }
    )
    for value in VALUES:
        producer.produce(topic, value, on_delivery=delivered)
        assert producer.flush(TIMEOUT_S) == 0
    return acknowledged


def kafka_python_produce(bootstrap: str, topic: str) -> list[bytes]:
    producer = kafka.KafkaProducer(
        bootstrap_servers=bootstrap,
        client_id=topic,
        enable_idempotence=True,
        request_timeout_ms=_IMPATIENT_MS,
        retry_backoff_ms=20,
        reconnect_backoff_ms=20,
    )
    for value in VALUES:
        producer.send(topic, value).get(TIMEOUT_S)
    producer.close()
    return VALUES


def aiokafka_produce(bootstrap: str, topic: str) -> list[bytes]:
    async def main() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap,
            client_id=topic,
            enable_idempotence=True,
            request_timeout_ms=_IMPATIENT_MS,
            retry_backoff_ms=20,
        )
        await producer.start()
        for value in VALUES:
            await asyncio.wait_for(producer.send_and_wait(topic, value), TIMEOUT_S)
        await producer.stop()

    asyncio.run(main())
    return VALUES


PRODUCERS: dict[str, Callable[[str, str], list[bytes]]] = {
    "confluent-kafka": confluent_produce,
    "kafka-python": kafka_python_produce,
    "aiokafka": aiokafka_produce,
}


def rule(action: object, api: str, client_id: str) -> Rule:
    return parse_rule({"action": action, "api": api, "client_id": client_id, "on": [2]}, "rule")


@pytest.mark.parametrize(
    ("name", "client"), [(name, client) for name in ACTIONS for client in PRODUCERS if (name, client) not in ENDS]
)
def test_a_producer_gets_over_it_and_nothing_that_it_was_promised_is_lost(
    broker: SyncBroker, topic: str, name: str, client: str
) -> None:
    fault = broker.faults.add(rule(ACTIONS[name], "Produce", topic))
    acknowledged = PRODUCERS[client](broker.bootstrap, topic)
    hits = fault.hits
    fault.remove()
    assert hits == 1
    told = [value for value in VALUES if value != VALUES[1] or (name, client) not in GIVE_UP]
    assert acknowledged == told
    assert confluent_consume(broker.bootstrap, topic, "reader") == VALUES, "each once: the producers are idempotent"


def confluent_consume(bootstrap: str, topic: str, client_id: str) -> list[bytes]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": client_id,
            "group.id": topic,
            "check.crcs": True,
            "socket.timeout.ms": _IMPATIENT_MS,
            "fetch.wait.max.ms": 50,
            "fetch.error.backoff.ms": 20,
            "reconnect.backoff.ms": 20,
            "log_level": 0,
        }
    )
    consumer.assign([Partition(topic, 0, 0)])
    values: list[bytes] = []
    for _ in range(100):
        message = consumer.poll(TIMEOUT_S / 100)
        if message is not None and not message.error():
            values.append(message.value() or b"")
        if len(values) == len(VALUES):
            break
    consumer.close()
    return values


def kafka_python_consume(bootstrap: str, topic: str, client_id: str) -> list[bytes]:
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap,
        client_id=client_id,
        auto_offset_reset="earliest",
        check_crcs=True,
        fetch_max_wait_ms=50,
        request_timeout_ms=_IMPATIENT_MS,
        retry_backoff_ms=20,
        reconnect_backoff_ms=20,
        consumer_timeout_ms=TIMEOUT_S * 1000,
    )
    consumer.assign([kafka.TopicPartition(topic, 0)])
    consumer.seek_to_beginning()
    values: list[bytes] = []
    while len(values) < len(VALUES):
        try:
            values.append(next(consumer).value)
        except kafka.errors.CorruptRecordError:  # it would look at the same bytes again and again
            consumer.close()
            return kafka_python_consume(bootstrap, topic, client_id)
    consumer.close()
    return values


def aiokafka_consume(bootstrap: str, topic: str, client_id: str) -> list[bytes]:
    async def main() -> list[bytes]:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            client_id=client_id,
            check_crcs=True,
            fetch_max_wait_ms=50,
            request_timeout_ms=_IMPATIENT_MS,
            retry_backoff_ms=20,
        )
        await consumer.start()
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek(TopicPartition(topic, 0), 0)
        values: list[bytes] = []
        while len(values) < len(VALUES):
            try:
                values.append((await asyncio.wait_for(consumer.getone(), TIMEOUT_S)).value)
            except Exception as error:
                if "orrupt" not in f"{type(error).__name__} {error}":
                    raise
        await consumer.stop()
        return values

    return asyncio.run(main())


CONSUMERS: dict[str, Callable[[str, str, str], list[bytes]]] = {
    "confluent-kafka": confluent_consume,
    "kafka-python": kafka_python_consume,
    "aiokafka": aiokafka_consume,
}


@pytest.mark.parametrize("client", CONSUMERS)
@pytest.mark.parametrize(
    "name", [name for name in ACTIONS if "after" not in name and name != "delay"] + [*FETCH_ACTIONS]
)
def test_a_consumer_gets_over_it_and_reads_each_record_once(
    broker: SyncBroker, topic: str, name: str, client: str
) -> None:
    confluent_produce(broker.bootstrap, topic)
    given = {"action": (ACTIONS | FETCH_ACTIONS)[name], "api": "Fetch", "client_id": "hit", "topic": topic, "times": 1}
    fault = broker.faults.add(parse_rule(given, "rule"))
    values = CONSUMERS[client](broker.bootstrap, topic, "hit")
    hits = fault.hits
    fault.remove()
    assert hits == 1
    assert values == VALUES
