"""Reads and writes of topics without Spark."""

from collections.abc import Iterable, Sequence

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

PATIENCE_S = 60
Headers = Sequence[tuple[str, bytes]]


def produce(
    bootstrap: str,
    topic: str,
    values: Iterable[str],
    *,
    partition: int = 0,
    timestamp_ms: int = 0,
    headers: Headers = (),
    batch_bytes: int = 1_000_000,
) -> None:
    """Write the values in order and wait until all are acknowledged."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "batch.size": batch_bytes})
    for value in values:
        producer.produce(topic, value, partition=partition, timestamp=timestamp_ms, headers=list(headers))
    assert producer.flush(PATIENCE_S) == 0


def in_transaction(bootstrap: str, topic: str, values: Iterable[str], *, commits: bool) -> None:
    """Write the values in one transaction; commit or abort it."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{topic}-writer"})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(PATIENCE_S) == 0
    if commits:
        producer.commit_transaction(PATIENCE_S)
    else:
        producer.abort_transaction(PATIENCE_S)


def consume(bootstrap: str, topic: str, partitions: int = 2) -> list[tuple[bytes | None, str]]:
    """Return key and value of each record, by partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "tests", "enable.auto.commit": False})
    found = []
    for index in range(partitions):
        place = TopicPartition(topic, index, 0)
        begin, end = consumer.get_watermark_offsets(place, timeout=PATIENCE_S)
        place.offset = begin
        consumer.assign([place])
        position = begin
        while position < end:
            message = consumer.poll(PATIENCE_S)
            assert message is not None
            assert message.error() is None
            found.append((message.key(), (message.value() or b"").decode()))
            position = (message.offset() or 0) + 1
    consumer.close()
    return found


def delete_records(bootstrap: str, topic: str, before: int) -> None:
    """Delete the records of partition 0 before an offset."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for deleted in admin.delete_records([TopicPartition(topic, 0, before)]).values():
        deleted.result(PATIENCE_S)
