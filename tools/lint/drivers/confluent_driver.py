"""The confluent-kafka (librdkafka) driver."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from time import monotonic, sleep, time

from confluent_kafka import Consumer, Message, Producer, TopicPartition

from tools.lint.drivers.serving import serve
from tools.lint.job import OFFSETS_APART, Job, Settings

WAIT_S = 10.0  # for acknowledgements
left_open: list[Producer] = []


def work(bootstrap: str, job: Job) -> None:
    """Do the job; errors end it, as they would end an application."""
    {"produce": _produce, "consume": _consume, "copy": _copy}[job.role](bootstrap, job)


def _settings(bootstrap: str, job: Job, settings: Settings, **more: str | bool) -> Settings:
    # Messages on standard error are not for the harness.
    own: Settings = {"bootstrap.servers": bootstrap, "log_level": 0}
    own |= {name.replace("_", "."): value for name, value in more.items()}
    return own | settings | ({"client.id": job.client_id} if job.client_id else {})


def _producer(bootstrap: str, job: Job, settings: Settings) -> Producer:
    more = {"transactional_id": job.transactional_id} if job.transactional_id else {}
    producer = Producer(_settings(bootstrap, job, settings, **more))
    if job.transactional_id:
        producer.init_transactions(WAIT_S)
    return producer


def _send(producer: Producer, job: Job, burst: int) -> None:
    for number in range(burst * job.records, (burst + 1) * job.records):
        stamp = int(time() * 1000) + job.skew_ms if job.skew_ms else 0  # 0: now
        topic = job.topics[number % len(job.topics)]
        producer.produce(topic, job.value_of(number), job.key_of(number), timestamp=stamp)
        producer.poll(0)
        if job.wait_each:
            producer.flush(WAIT_S)
    if job.wait:
        producer.flush(WAIT_S)


def _bursts(producer: Producer, job: Job, numbers: range) -> None:
    for burst in numbers:
        if not job.transactional_id:
            _send(producer, job, burst)
        else:
            producer.begin_transaction()
            _send(producer, job, burst)
            producer.flush(WAIT_S)
            sleep(job.hold_ms / 1e3)
            if not job.leaves_open(burst):
                (producer.abort_transaction if job.abort else producer.commit_transaction)(WAIT_S)
        producer.poll(job.every_ms / 1e3)
        _rest(job.every_ms / 1e3)


def _rest(seconds: float) -> None:
    if seconds:
        sleep(seconds)


def _produce(bootstrap: str, job: Job) -> None:
    parts = [range(burst, burst + 1) for burst in range(job.bursts)] if job.new_client else [range(job.bursts)]
    for part in parts:
        producer = _producer(bootstrap, job, job.settings)
        _bursts(producer, job, part)
        producer.flush(WAIT_S)
        if not job.leave:
            left_open.append(producer)
        del producer  # closes it


@contextmanager
def _consumer(bootstrap: str, job: Job) -> Iterator[Consumer]:
    more: dict[str, str | bool] = {"auto_offset_reset": "earliest", "group_id": job.group or "none"}
    if not job.group or job.commit != "auto" or job.role == "copy":
        more["enable_auto_commit"] = False
    if job.instance_id:
        more["group_instance_id"] = job.instance_id
    consumer = Consumer(_settings(bootstrap, job, job.settings, **more))
    try:
        if job.group:
            consumer.subscribe(list(job.topics))
        else:
            topics = {topic: consumer.list_topics(topic, WAIT_S).topics[topic] for topic in job.topics}
            consumer.assign(
                [
                    TopicPartition(name, index, 0)
                    for name in topics
                    for index in topics[name].partitions
                    if not job.partitions or index < job.partitions
                ]
            )
        yield consumer
    finally:
        if job.leave:
            consumer.close()


def _polled(consumer: Consumer, job: Job) -> list[Message]:
    return [each for each in consumer.consume(job.most, job.poll_ms / 1e3) if each.error() is None]


def _positions(records: list[Message]) -> dict[tuple[str, int], int]:
    return {(each.topic() or "", each.partition() or 0): (each.offset() or 0) + 1 for each in records}


def _commit(consumer: Consumer, job: Job, records: list[Message]) -> None:
    for apart in OFFSETS_APART[job.commit]:
        offsets = [
            TopicPartition(topic, partition, max(0, offset + apart))
            for (topic, partition), offset in _positions(records).items()
        ]
        consumer.commit(offsets=offsets, asynchronous=False)


def _consume(bootstrap: str, job: Job) -> None:
    ends = monotonic() + job.for_ms / 1e3
    while monotonic() < ends:
        until = min(ends, monotonic() + job.rejoin_ms / 1e3) if job.rejoin_ms else ends
        with _consumer(bootstrap, job.next_life()) as consumer:
            while monotonic() < until:
                _poll(consumer, job)
                if job.new_client:
                    break


def _poll(consumer: Consumer, job: Job) -> None:
    records = _polled(consumer, job)
    if records and job.group and job.commit == "record":
        for record in records:
            _commit(consumer, job, [record])
    elif records and job.group and job.commit in OFFSETS_APART:
        _commit(consumer, job, records)
    _rest(((job.process_ms if records else 0) + job.rest_ms) / 1e3)


def _copy(bootstrap: str, job: Job) -> None:
    ends = monotonic() + job.for_ms / 1e3
    producer = _producer(bootstrap, job, job.output_settings)
    with _consumer(bootstrap, job) as consumer:
        while monotonic() < ends:
            if records := _polled(consumer, job):
                producer.begin_transaction()
                for record in records:
                    producer.produce(job.output, record.value())
                offsets = [TopicPartition(*place, offset) for place, offset in _positions(records).items()]
                producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), WAIT_S)
                _rest(job.hold_ms / 1e3)
                producer.commit_transaction(WAIT_S)
            _rest(((job.process_ms if records else 0) + job.rest_ms) / 1e3)


if __name__ == "__main__":
    serve(version("confluent-kafka"), work)
