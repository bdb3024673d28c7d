"""confluent-kafka (librdkafka): a producer, a consumer, an admin client, in a process of their own."""

import time
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from sluice.audit.probes import GROUP, TOPIC, Call, Consume, Produce
from sluice.audit.subjects.subject import Job, Tell

from .reporting import Teller, job_from_stdin, print_line

_POLL_S = 0.1
_FOREVER_S = 1e6
_BEGINNING = -2


def run(job: Job, tell: Tell) -> None:
    """Works until the process is ended."""
    teller = Teller(tell)
    config: dict[str, Any] = {"bootstrap.servers": job.bootstrap, "client.id": f"audit-{job.role}", **job.settings}
    while True:
        try:
            match job.workload:
                case Produce():
                    _produce(config, job.workload, teller)
                case Consume():
                    _consume(config, job.workload, teller)
                case Call():
                    _call(config, job.workload, teller)
        except KafkaException as error:
            teller.event("rejected", _told(error.args[0]))
            time.sleep(_FOREVER_S)
        teller.event("closed")


def _told(error: KafkaError) -> str:
    """As an application would see it."""
    return f"{error.name()}: {error.str()}"


def _until(lives_ms: int) -> float:
    return time.monotonic() + (lives_ms / 1000 if lives_ms else _FOREVER_S)


class _Sending:
    """Records of one partition, so many at once: callbacks come out of `poll`."""

    def __init__(self, producer: Producer, partition: int, workload: Produce, teller: Teller) -> None:
        self._producer = producer
        self._partition = partition
        self._pause_s = workload.pause_ms / 1000
        self._teller = teller
        self.due_s = [time.monotonic()] * workload.pending

    def send_due(self) -> None:
        """Hands over what it is time for."""
        now_s = time.monotonic()
        due, self.due_s = [at for at in self.due_s if at <= now_s], [at for at in self.due_s if at > now_s]
        for _ in due:
            number = self._teller.sent(self._partition)
            try:
                self._producer.produce(
                    TOPIC, b"%d" % number, partition=self._partition, on_delivery=partial(self._ended, number)
                )
            except KafkaException as error:
                self._ended(number, error.args[0], None)

    def _ended(self, number: int, error: KafkaError | None, message: Message | None) -> None:
        if error is not None:
            self._teller.failed(number, self._partition, _told(error))
        else:
            assert message is not None
            offset = message.offset()
            self._teller.delivered(number, self._partition, -1 if offset is None else offset)
        self.due_s.append(time.monotonic() + self._pause_s)


def _produce(config: dict[str, Any], workload: Produce, teller: Teller) -> None:
    producer = Producer(config)
    teller.event("started")
    teller.event("ready")
    sendings = [_Sending(producer, partition, workload, teller) for partition in range(workload.partitions)]
    until_s = _until(workload.lives_ms)
    while (now_s := time.monotonic()) < until_s:
        for sending in sendings:
            sending.send_due()
        due_s = min((at for sending in sendings for at in sending.due_s), default=now_s + _POLL_S)
        producer.poll(max(0.0, min(due_s - time.monotonic(), _POLL_S)))
    producer.purge()


def _consume(config: dict[str, Any], workload: Consume, teller: Teller) -> None:
    consumer = Consumer({**config, "group.id": GROUP})
    teller.event("started")
    until_s, due_s, position = _until(workload.lives_ms), time.monotonic(), 0
    try:
        if workload.in_group:
            consumer.subscribe([TOPIC])
        else:
            consumer.assign([TopicPartition(TOPIC, 0, _BEGINNING)])
        teller.event("ready")
        while time.monotonic() < until_s:
            message = consumer.poll(workload.commit_every_ms / 1000 or _POLL_S)
            if message is not None:
                position = _tell_message(message, teller) or position
            if workload.commit_every_ms and position and time.monotonic() >= due_s:
                due_s = time.monotonic() + workload.commit_every_ms / 1000
                try:
                    consumer.commit(offsets=[TopicPartition(TOPIC, 0, position)], asynchronous=False)
                except KafkaException as error:
                    teller.event("call-failed", _told(error.args[0]))
    finally:
        consumer.close()


def _tell_message(message: Message, teller: Teller) -> int:
    """Returns where to go on reading; 0: that is not known. What is committed already, the library would not commit."""
    error, value = message.error(), message.value()
    if error is not None:
        teller.event("call-failed", _told(error))
        return 0
    partition, offset = message.partition(), message.offset()
    assert isinstance(value, bytes)
    assert offset is not None
    teller.received(value, -1 if partition is None else partition, offset)
    return offset + 1


def _call(config: dict[str, Any], workload: Call, teller: Teller) -> None:
    admin = AdminClient(config)
    teller.event("started")
    teller.event("ready")
    while True:
        for future in admin.describe_consumer_groups([GROUP]).values():
            try:
                future.result()
            except KafkaException as error:
                teller.event("call-failed", _told(error.args[0]))
        time.sleep(workload.pause_ms / 1000)


if __name__ == "__main__":
    run(job_from_stdin(), print_line)
