"""The kafka-python driver: producers, consumers, groups. Admin calls are in kafka_python_admin.py."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from importlib import import_module
from threading import Thread
from time import monotonic, sleep
from typing import Any

import kafka
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import InvalidProducerEpochError, MessageSizeTooLargeError, ProducerFencedError
from kafka.structs import OffsetAndMetadata

from tests.clients.driver import TIMEOUT_S, Given, Member, Row, Step, until
from tests.clients.login import of_python

# If a poll times out during a rebalance, the library may lose the assignment that arrives between two polls, and wait
# forever. So no poll times out: every assigned consumer has a record to read.
POLL_MS = TIMEOUT_S * 1000
ASSIGNORS = {
    "range": "range.RangePartitionAssignor",
    "cooperative-sticky": "cooperative_sticky.CooperativeStickyAssignor",
}


def send(producer: KafkaProducer, topic: str, rows: list[Row], partitions: int = 1) -> None:
    """Produce the rows to the partitions in turn and wait until all are acknowledged."""
    sent = [
        producer.send(topic, row.value, row.key, row.headers, partition=number % partitions, timestamp_ms=row.timestamp)
        for number, row in enumerate(rows)
    ]
    for future in sent:
        future.get(timeout=TIMEOUT_S)


def produce(bootstrap: str, given: Given) -> list[Step]:
    producer = KafkaProducer(
        **of_python(bootstrap),
        acks="all" if given.acks == "all" else int(given.acks),
        compression_type=None if given.compression == "none" else given.compression,
        enable_idempotence=given.idempotent,
        linger_ms=5,
    )
    with closing(producer):
        send(producer, given.topic, given.rows, given.partitions)
    return [{"sent": len(given.rows)}]


def poll_for(consumer: KafkaConsumer, count: int) -> list[Any]:
    """Return the next `count` records. A poll ends with the first one, so a long timeout costs nothing: see POLL_MS."""
    records: list[Any] = []
    deadline = monotonic() + TIMEOUT_S
    while len(records) < count:
        assert monotonic() < deadline, f"{len(records)} of {count} records"
        for polled in consumer.poll(timeout_ms=POLL_MS, max_records=count - len(records)).values():
            records += polled
    return records


def read(bootstrap: str, given: Given) -> list[Step]:
    consumer = KafkaConsumer(**of_python(bootstrap), group_id=None, isolation_level=given.isolation)
    with closing(consumer):
        partition = TopicPartition(given.topic, 0)
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        records = poll_for(consumer, given.count)
    return [{"rows": [Row(one.key, one.value, list(one.headers), one.timestamp) for one in records]}]


def oversize(bootstrap: str, given: Given) -> list[Step]:
    with closing(KafkaProducer(**of_python(bootstrap))) as producer:
        try:
            producer.send(given.topic, bytes(given.size), partition=0).get(timeout=TIMEOUT_S)
        except MessageSizeTooLargeError as error:
            return [{"error": error.errno}]
    return [{"error": 0}]


# -- transactions ------------------------------------------------------------------------------------------------------


@contextmanager
def transactional_producer(bootstrap: str, given: Given) -> Iterator[KafkaProducer]:
    with closing(KafkaProducer(**of_python(bootstrap), transactional_id=given.transactional_id)) as producer:
        producer.init_transactions()
        yield producer


def transactions(bootstrap: str, given: Given) -> Iterable[Step]:
    with transactional_producer(bootstrap, given) as producer:
        for one in given.rounds:
            producer.begin_transaction()
            send(producer, given.topic, one.rows)
            if one.end == "commit":
                producer.commit_transaction()
            else:
                producer.abort_transaction()
            yield {"end": one.end}


def fence(bootstrap: str, given: Given) -> list[Step]:
    with transactional_producer(bootstrap, given) as first:
        first.begin_transaction()
        send(first, given.topic, [Row(None, b"first", [], 0)])
        with transactional_producer(bootstrap, given):
            try:
                first.commit_transaction()
            except (ProducerFencedError, InvalidProducerEpochError):
                return [{"fenced": True}]
    return [{"fenced": False}]


def transactional_offsets(bootstrap: str, given: Given) -> Iterable[Step]:
    partition = TopicPartition(given.topic, 0)
    with transactional_producer(bootstrap, given) as producer, group_consumer(bootstrap, given) as consumer:
        for ends, offset in (("commit", 3), ("abort", 6)):
            producer.begin_transaction()
            # Flush before the transaction ends: version 2 fails to abort a transaction with unsent records.
            send(producer, given.output, [Row(None, record.value, [], 0) for record in poll_for(consumer, 3)])
            offsets = {partition: OffsetAndMetadata(offset, "", -1)}
            is_version_2 = not hasattr(consumer, "group_metadata")
            producer.send_offsets_to_transaction(offsets, given.group if is_version_2 else consumer.group_metadata())
            if ends == "commit":
                producer.commit_transaction()
            else:
                producer.abort_transaction()
            yield {f"after_{ends}": until(lambda: consumer.committed(partition), 3)}


# -- groups ------------------------------------------------------------------------------------------------------------


def assignor(name: str) -> type:
    """Import lazily: version 2 has no cooperative assignor."""
    module, _, class_name = ASSIGNORS[name].partition(".")
    found: type = getattr(import_module(f"kafka.coordinator.assignors.{module}"), class_name)
    return found


def new_group_consumer(bootstrap: str, given: Given, instance_id: str | None = None) -> KafkaConsumer:
    return KafkaConsumer(
        **of_python(bootstrap),
        group_id=given.group,
        group_instance_id=instance_id,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        heartbeat_interval_ms=100,  # notices a rebalance early
        partition_assignment_strategy=[assignor(given.assignor)],
    )


class GroupMember(kafka.ConsumerRebalanceListener):  # type: ignore[misc]  # the library has no types
    """A consumer in its own thread, which rereads the same records and counts its revocations."""

    def __init__(self, bootstrap: str, given: Given, instance_id: str | None) -> None:
        self._revocations = 0
        self._closing = False
        self._consumer = new_group_consumer(bootstrap, given, instance_id)
        self._consumer.subscribe([given.topic], listener=self)
        self._failure: Exception | None = None
        self._thread = Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            with closing(self._consumer):
                while not self._closing:
                    for partition in self._consumer.poll(timeout_ms=POLL_MS, max_records=1):
                        self._consumer.seek(partition, 0)
                    sleep(0.01)
        except Exception as failure:
            self._failure = failure

    def on_partitions_revoked(self, revoked: list[TopicPartition]) -> None:
        self._revocations += bool(revoked)

    def on_partitions_assigned(self, assigned: list[TopicPartition]) -> None:
        pass

    def poll(self) -> None:
        sleep(0.02)
        if self._failure is not None:
            raise self._failure

    def assigned(self) -> set[int]:
        return {partition.partition for partition in self._consumer.assignment()}

    def revocations(self) -> int:
        return self._revocations

    def close(self) -> None:
        self._closing = True
        self._thread.join()


def with_members(
    script: Callable[[Given, Callable[[str | None], Member]], Iterable[Step]],
) -> Callable[[str, Given], Iterable[Step]]:
    """Return a verb that runs a script of group members."""
    return lambda bootstrap, given: script(given, lambda instance_id: GroupMember(bootstrap, given, instance_id))


@contextmanager
def group_consumer(bootstrap: str, given: Given) -> Iterator[KafkaConsumer]:
    with closing(new_group_consumer(bootstrap, given)) as consumer:
        consumer.subscribe([given.topic])
        yield consumer


def resume(bootstrap: str, given: Given) -> Iterable[Step]:
    for name in ("first", "resumed"):
        with group_consumer(bootstrap, given) as consumer:
            records = poll_for(consumer, 5)
            offset = OffsetAndMetadata(records[-1].offset + 1, "", -1)
            consumer.commit({TopicPartition(given.topic, 0): offset})
        yield {name: [record.value.decode() for record in records]}


@contextmanager
def live_group(bootstrap: str, given: Given) -> Iterator[None]:
    """A group with one member that has committed offset 3."""
    with group_consumer(bootstrap, given) as consumer:
        poll_for(consumer, 1)
        consumer.commit({TopicPartition(given.topic, 0): OffsetAndMetadata(3, "", -1)})
        yield
