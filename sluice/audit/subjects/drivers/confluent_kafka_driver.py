"""The driver of confluent-kafka (librdkafka)."""

import time
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from sluice.audit.probes.probe import GROUP, TOPIC, Call, Consume, Produce
from sluice.audit.subjects.subject import Job, OnCallback

from .reporting import FOREVER_S, DriverReporter, deadline_s, job_from_stdin, print_line

_POLL_S = 0.1
_BEGINNING = -2


def run(job: Job, on_callback: OnCallback) -> None:
    reporter = DriverReporter(on_callback)
    config: dict[str, Any] = {"bootstrap.servers": job.bootstrap, "client.id": f"audit-{job.role}", **job.settings}
    while True:
        try:
            match job.workload:
                case Produce():
                    _produce(config, job.workload, reporter)
                case Consume():
                    _consume(config, job.workload, reporter)
                case Call():
                    _call(config, job.workload, reporter)
        except KafkaException as error:
            reporter.event("rejected", _error_text(error.args[0]))
            time.sleep(FOREVER_S)
        reporter.event("closed")


def _error_text(error: KafkaError) -> str:
    return f"{error.name()}: {error.str()}"


class _Sending:
    """The records of one partition; callbacks are called by `poll`."""

    def __init__(self, producer: Producer, partition: int, workload: Produce, reporter: DriverReporter) -> None:
        self._producer = producer
        self._partition = partition
        self._pause_s = workload.pause_ms / 1000
        self._reporter = reporter
        self.due_s = [time.monotonic()] * workload.pending

    def send_due(self) -> None:
        now_s = time.monotonic()
        due, self.due_s = [at for at in self.due_s if at <= now_s], [at for at in self.due_s if at > now_s]
        for _ in due:
            number = self._reporter.sent(self._partition)
            try:
                self._producer.produce(
                    TOPIC, b"%d" % number, partition=self._partition, on_delivery=partial(self._ended, number)
                )
            except KafkaException as error:
                self._ended(number, error.args[0], None)

    def _ended(self, number: int, error: KafkaError | None, message: Message | None) -> None:
        if error is not None:
            self._reporter.failed(number, self._partition, _error_text(error))
        else:
            assert message is not None
            offset = message.offset()
            self._reporter.delivered(number, self._partition, -1 if offset is None else offset)
        self.due_s.append(time.monotonic() + self._pause_s)


def _produce(config: dict[str, Any], workload: Produce, reporter: DriverReporter) -> None:
    reporter.event("started")
    producer = Producer(config)
    reporter.event("ready")
    sendings = [_Sending(producer, partition, workload, reporter) for partition in range(workload.partitions)]
    until_s = deadline_s(workload.lifetime_ms)
    while (now_s := time.monotonic()) < until_s:
        for sending in sendings:
            sending.send_due()
        due_s = min((at for sending in sendings for at in sending.due_s), default=now_s + _POLL_S)
        producer.poll(max(0.0, min(due_s - time.monotonic(), _POLL_S)))
    producer.purge()


def _consume(config: dict[str, Any], workload: Consume, reporter: DriverReporter) -> None:
    reporter.event("started")
    consumer = Consumer({**config, "group.id": GROUP})
    until_s, due_s, position = deadline_s(workload.lifetime_ms), time.monotonic(), 0
    try:
        if workload.in_group:
            consumer.subscribe([TOPIC])
        else:
            consumer.assign([TopicPartition(TOPIC, 0, _BEGINNING)])
        reporter.event("ready")
        while time.monotonic() < until_s:
            message = consumer.poll(workload.commit_every_ms / 1000 or _POLL_S)
            if message is not None:
                position = _report_message(message, reporter) or position
            if workload.commit_every_ms and position and time.monotonic() >= due_s:
                due_s = time.monotonic() + workload.commit_every_ms / 1000
                try:
                    # Without `offsets`, the library would not commit a position twice.
                    consumer.commit(offsets=[TopicPartition(TOPIC, 0, position)], asynchronous=False)
                except KafkaException as error:
                    reporter.event("call-failed", _error_text(error.args[0]))
    finally:
        consumer.close()


def _report_message(message: Message, reporter: DriverReporter) -> int:
    """Return the position after a message, or 0 for an error."""
    error, value = message.error(), message.value()
    if error is not None:
        reporter.event("call-failed", _error_text(error))
        return 0
    partition, offset = message.partition(), message.offset()
    assert isinstance(value, bytes)
    assert offset is not None
    reporter.received(value, -1 if partition is None else partition, offset)
    return offset + 1


def _call(config: dict[str, Any], workload: Call, reporter: DriverReporter) -> None:
    reporter.event("started")
    admin = AdminClient(config)
    reporter.event("ready")
    while True:
        for future in admin.describe_consumer_groups([GROUP]).values():
            try:
                future.result()
            except KafkaException as error:
                reporter.event("call-failed", _error_text(error.args[0]))
        time.sleep(workload.pause_ms / 1000)


if __name__ == "__main__":
    run(job_from_stdin(), print_line)
