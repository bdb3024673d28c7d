"""The confluent-kafka (librdkafka) driver: producers, consumers, groups. Admin calls are in confluent_admin.py."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from confluent_kafka import (
    AcknowledgeType,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    ShareConsumer,
    TopicPartition,
)

from tests.clients import driver
from tests.clients.driver import TIMEOUT_S, Given, Member, Row, Step
from tests.clients.login import of_librdkafka


def send(producer: Producer, topic: str, rows: list[Row], partitions: int = 1) -> None:
    """Produce the rows to the partitions in turn and wait until all are acknowledged."""
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failed.append(error)

    for number, row in enumerate(rows):
        producer.produce(
            topic,
            row.value,
            row.key,
            number % partitions,
            on_delivery=delivered,
            timestamp=row.timestamp,
            headers=list(row.headers),
        )
    left = producer.flush(TIMEOUT_S)
    assert (left, failed) == (0, [])


def produce(bootstrap: str, given: Given) -> list[Step]:
    producer = Producer(
        {
            **of_librdkafka(bootstrap),
            "acks": given.acks,
            "compression.type": given.compression,
            "enable.idempotence": given.idempotent,
            "linger.ms": 5,
        }
    )
    send(producer, given.topic, given.rows, given.partitions)
    return [{"sent": len(given.rows)}]


def poll_for(consumer: Consumer, count: int) -> list[Message]:
    records: list[Message] = []
    deadline = monotonic() + TIMEOUT_S
    while len(records) < count:
        assert monotonic() < deadline, f"{len(records)} of {count} records"
        records += consumer.consume(count - len(records), 0.2)
    assert not [error for record in records if (error := record.error())]
    return records


def headers_of(message: Message) -> list[tuple[str, bytes | None]]:
    headers = message.headers() or []
    return [(name, value) for name, value in headers]  # type: ignore[str-unpack, misc]  # a received one has a list


def read(bootstrap: str, given: Given) -> list[Step]:
    # The library requires a group id, although manually assigned partitions need no group.
    settings = {**of_librdkafka(bootstrap), "group.id": "unused", "enable.auto.commit": False}
    consumer = Consumer(settings | {"isolation.level": given.isolation})
    try:
        consumer.assign([TopicPartition(given.topic, 0, 0)])
        records = poll_for(consumer, given.count)
    finally:
        consumer.close()
    return [{"rows": [Row(one.key(), one.value(), headers_of(one), one.timestamp()[1]) for one in records]}]


def oversize(bootstrap: str, given: Given) -> list[Step]:
    errors: list[KafkaError | None] = []
    producer = Producer(of_librdkafka(bootstrap))
    producer.produce(given.topic, bytes(given.size), on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(TIMEOUT_S) == 0
    (error,) = errors
    return [{"error": error.code() if error else 0}]


# -- transactions ------------------------------------------------------------------------------------------------------


def transactional_producer(bootstrap: str, given: Given) -> Producer:
    producer = Producer({**of_librdkafka(bootstrap), "transactional.id": given.transactional_id})
    producer.init_transactions(TIMEOUT_S)
    return producer


def transactions(bootstrap: str, given: Given) -> Iterable[Step]:
    producer = transactional_producer(bootstrap, given)
    for one in given.rounds:
        producer.begin_transaction()
        send(producer, given.topic, one.rows)
        if one.end == "commit":
            producer.commit_transaction(TIMEOUT_S)
        else:
            producer.abort_transaction(TIMEOUT_S)
        yield {"end": one.end}


def fence(bootstrap: str, given: Given) -> list[Step]:
    first = transactional_producer(bootstrap, given)
    first.begin_transaction()
    send(first, given.topic, [Row(None, b"first", [], 0)])
    transactional_producer(bootstrap, given)
    try:
        first.commit_transaction(TIMEOUT_S)
    except KafkaException as raised:
        return [{"fenced": raised.args[0].code() == KafkaError._FENCED}]
    return [{"fenced": False}]


def transactional_offsets(bootstrap: str, given: Given) -> Iterable[Step]:
    producer = transactional_producer(bootstrap, given)
    with group_consumer(bootstrap, given) as consumer:
        for ends, offset in (("commit", 3), ("abort", 6)):
            producer.begin_transaction()
            for record in poll_for(consumer, 3):
                producer.produce(given.output, record.value(), partition=0)
            offsets = [TopicPartition(given.topic, 0, offset)]
            producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), TIMEOUT_S)
            if ends == "commit":
                producer.commit_transaction(TIMEOUT_S)
            else:
                producer.abort_transaction(TIMEOUT_S)
            (committed,) = consumer.committed([TopicPartition(given.topic, 0)], TIMEOUT_S)
            yield {f"after_{ends}": committed.offset}


# -- share groups ------------------------------------------------------------------------------------------------------

_ACKNOWLEDGE_TYPES = {
    "accept": AcknowledgeType.ACCEPT,
    "release": AcknowledgeType.RELEASE,
    "reject": AcknowledgeType.REJECT,
}


class Sharing:
    def __init__(self, bootstrap: str, given: Given) -> None:
        settings = {**of_librdkafka(bootstrap), "group.id": given.group, "share.acknowledgement.mode": "explicit"}
        self._consumer = ShareConsumer(settings)
        self._consumer.subscribe([given.topic])

    def poll(self, acknowledge: Callable[[str], str]) -> None:
        for record in self._consumer.poll(0.1):
            assert record.error() is None, record.error()
            kind = acknowledge((record.value() or b"").decode())
            self._consumer.acknowledge(record, _ACKNOWLEDGE_TYPES[kind])
        failed = [error for error in self._consumer.commit_sync(TIMEOUT_S).values() if error is not None]
        assert failed == []

    def close(self) -> None:
        self._consumer.close()


def share(bootstrap: str, given: Given) -> Iterable[Step]:
    return driver.share(given, lambda: Sharing(bootstrap, given))


# -- groups ------------------------------------------------------------------------------------------------------------


def group_settings(bootstrap: str, given: Given, instance_id: str | None = None) -> dict[str, Any]:
    """Return the settings of a consumer in a group; members notice a rebalance early."""
    settings: dict[str, Any] = {
        **of_librdkafka(bootstrap),
        "group.id": given.group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "group.protocol": given.protocol,
    }
    if given.protocol == "consumer":
        settings["group.remote.assignor"] = "uniform"
    else:
        settings |= {"partition.assignment.strategy": given.assignor, "heartbeat.interval.ms": 100}
    return settings | ({"group.instance.id": instance_id} if instance_id else {})


@contextmanager
def group_consumer(bootstrap: str, given: Given) -> Iterator[Consumer]:
    consumer = Consumer(group_settings(bootstrap, given))
    try:
        consumer.subscribe([given.topic])
        yield consumer
    finally:
        consumer.close()


class GroupMember:
    """A consumer that counts its revocations."""

    def __init__(self, bootstrap: str, given: Given, instance_id: str | None) -> None:
        self._revocations = 0
        self._consumer = Consumer(group_settings(bootstrap, given, instance_id))
        self._consumer.subscribe([given.topic], on_revoke=self._revoked)

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._revocations += bool(partitions)

    def poll(self) -> None:
        self._consumer.poll(0.02)

    def assigned(self) -> set[int]:
        return {partition.partition for partition in self._consumer.assignment()}

    def revocations(self) -> int:
        return self._revocations

    def close(self) -> None:
        self._consumer.close()


def with_members(
    script: Callable[[Given, Callable[[str | None], Member]], Iterable[Step]],
) -> Callable[[str, Given], Iterable[Step]]:
    """Return a verb that runs a script of group members."""
    return lambda bootstrap, given: script(given, lambda instance_id: GroupMember(bootstrap, given, instance_id))


def resume(bootstrap: str, given: Given) -> Iterable[Step]:
    for name in ("first", "resumed"):
        with group_consumer(bootstrap, given) as consumer:
            records = poll_for(consumer, 5)
            consumer.commit(message=records[-1], asynchronous=False)
        yield {name: [value.decode() for record in records if (value := record.value()) is not None]}
