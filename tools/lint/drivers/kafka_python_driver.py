"""The kafka-python driver, for versions 2 and 3."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from time import monotonic, sleep, time
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from tools.lint.drivers.serving import serve
from tools.lint.job import OFFSETS_APART, Job, Settings

WAIT_S = 10.0
left_open: list[KafkaProducer] = []  # or the garbage collector would close them
ASSIGNORS = {
    "range": "range.RangePartitionAssignor",
    "roundrobin": "roundrobin.RoundRobinPartitionAssignor",
    "sticky": "sticky.sticky_assignor.StickyPartitionAssignor",
    "cooperative-sticky": "cooperative_sticky.CooperativeStickyAssignor",
}


def work(bootstrap: str, job: Job) -> None:
    """Do the job; errors end it, as they would end an application."""
    {"produce": _produce, "consume": _consume, "copy": _copy}[job.role](bootstrap, job)


def _assignor(name: str) -> object:
    module, name = ASSIGNORS[name].rsplit(".", 1)
    return getattr(import_module(f"kafka.coordinator.assignors.{module}"), name)


def _settings(bootstrap: str, job: Job, settings: Settings, **more: object) -> dict[str, Any]:
    found: dict[str, Any] = {"bootstrap_servers": bootstrap, **more, **settings}
    if job.client_id:
        found["client_id"] = job.client_id
    if isinstance(release := found.get("api_version"), str):
        found["api_version"] = tuple(map(int, release.split(".")))
    if isinstance(strategy := found.get("partition_assignment_strategy"), list):
        found["partition_assignment_strategy"] = [_assignor(each) for each in strategy]
    return found


@contextmanager
def _producer(bootstrap: str, job: Job, settings: Settings) -> Iterator[KafkaProducer]:
    more = {"transactional_id": job.transactional_id} if job.transactional_id else {}
    producer = KafkaProducer(**_settings(bootstrap, job, settings, **more))
    try:
        if job.transactional_id:
            producer.init_transactions()
        yield producer
    finally:
        if job.leave:
            producer.close()
        else:
            left_open.append(producer)


def _send(producer: KafkaProducer, job: Job, burst: int) -> None:
    sent = []
    for number in range(burst * job.records, (burst + 1) * job.records):
        stamp = int(time() * 1000) + job.skew_ms if job.skew_ms else None
        topic = job.topics[number % len(job.topics)]
        sent.append(producer.send(topic, job.value_of(number), job.key_of(number), timestamp_ms=stamp))
        if job.wait_each:
            sent[-1].get(WAIT_S)
    if job.wait:
        for each in sent:
            each.get(WAIT_S)


def _bursts(producer: KafkaProducer, job: Job, numbers: range) -> None:
    for burst in numbers:
        if not job.transactional_id:
            _send(producer, job, burst)
        else:
            producer.begin_transaction()
            _send(producer, job, burst)
            sleep(job.hold_ms / 1e3)
            if not job.leaves_open(burst):
                (producer.abort_transaction if job.abort else producer.commit_transaction)()
        sleep(job.every_ms / 1e3)


def _produce(bootstrap: str, job: Job) -> None:
    parts = [range(burst, burst + 1) for burst in range(job.bursts)] if job.new_client else [range(job.bursts)]
    for part in parts:
        with _producer(bootstrap, job, job.settings) as producer:
            _bursts(producer, job, part)


@contextmanager
def _consumer(bootstrap: str, job: Job) -> Iterator[KafkaConsumer]:
    more: dict[str, object] = {"auto_offset_reset": "earliest"}
    if job.group:
        more["group_id"] = job.group
        if job.commit != "auto" or job.role == "copy":
            more["enable_auto_commit"] = False
    if job.instance_id:
        more["group_instance_id"] = job.instance_id
    consumer = KafkaConsumer(*(job.topics if job.group else ()), **_settings(bootstrap, job, job.settings, **more))
    try:
        if not job.group:
            consumer.assign(
                [
                    TopicPartition(topic, each)
                    for topic in job.topics
                    for each in _partitions(consumer, topic, job.partitions)
                ]
            )
        yield consumer
    finally:
        if job.leave:
            consumer.close()


def _partitions(consumer: KafkaConsumer, topic: str, most: int) -> set[int]:
    return {each for each in consumer.partitions_for_topic(topic) or {0} if not most or each < most}


def _commit(consumer: KafkaConsumer, job: Job, partition: TopicPartition, offset: int) -> None:
    for apart in OFFSETS_APART[job.commit]:
        consumer.commit({partition: OffsetAndMetadata(max(0, offset + apart), "", -1)})


def _consume(bootstrap: str, job: Job) -> None:
    ends = monotonic() + job.for_ms / 1e3
    while monotonic() < ends:
        until = min(ends, monotonic() + job.rejoin_ms / 1e3) if job.rejoin_ms else ends
        with _consumer(bootstrap, job.next_life()) as consumer:
            while monotonic() < until:
                _poll(consumer, job)
                if job.new_client:
                    break


def _poll(consumer: KafkaConsumer, job: Job) -> None:
    found = consumer.poll(timeout_ms=job.poll_ms, max_records=job.most)
    for partition, records in found.items():
        if job.group and job.commit == "record":
            for record in records:
                _commit(consumer, job, partition, record.offset + 1)
        elif job.group and job.commit in OFFSETS_APART:
            _commit(consumer, job, partition, records[-1].offset + 1)
    sleep(((job.process_ms if found else 0) + job.rest_ms) / 1e3)


def _copy(bootstrap: str, job: Job) -> None:
    ends = monotonic() + job.for_ms / 1e3
    with _consumer(bootstrap, job) as consumer, _producer(bootstrap, job, job.output_settings) as producer:
        while monotonic() < ends:
            found = consumer.poll(timeout_ms=job.poll_ms, max_records=job.most)
            if found:
                producer.begin_transaction()
                sent = [producer.send(job.output, each.value) for records in found.values() for each in records]
                for each in sent:
                    each.get(WAIT_S)
                offsets = {
                    partition: OffsetAndMetadata(records[-1].offset + 1, "", -1) for partition, records in found.items()
                }
                producer.send_offsets_to_transaction(offsets, job.group)
                sleep(job.hold_ms / 1e3)
                producer.commit_transaction()
            sleep(((job.process_ms if found else 0) + job.rest_ms) / 1e3)


if __name__ == "__main__":
    serve(version("kafka-python"), work)
