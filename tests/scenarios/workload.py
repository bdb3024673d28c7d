"""What runs while a scenario does: a producer and a consumer group of librdkafka, and what the two of them saw.

The producer writes the numbers 0, 1, 2, ... to `orders`, n to partition n % 3, about 200 a second.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import monotonic

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

TOPIC, PARTITIONS = "orders", 3
PRODUCER, CONSUMER, GROUP = "orders-producer", "orders-consumer", "orders-group"
_EVERY_S = 0.005
# Impatient, so that what takes applications minutes is seen in seconds.
_BOTH: Mapping[str, str | int | float | bool] = {
    "socket.timeout.ms": 1500,
    "socket.connection.setup.timeout.ms": 1500,
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 500,
    "retry.backoff.ms": 50,
    "retry.backoff.max.ms": 500,
    "topic.metadata.refresh.fast.interval.ms": 50,
    "log_level": 0,
}
_PRODUCER = {"enable.idempotence": True, "linger.ms": 1, "request.timeout.ms": 1500, "message.timeout.ms": 20_000}
_CONSUMER = {
    "auto.offset.reset": "earliest",
    "auto.commit.interval.ms": 500,
    "session.timeout.ms": 6000,
    "heartbeat.interval.ms": 200,
    "fetch.wait.max.ms": 100,
    "fetch.error.backoff.ms": 100,
    "check.crcs": True,
}
_LAST_ANSWERS_S = 10.0
_JOIN_S = 20.0
_QUIET_S = 2.0  # after which nothing more comes


@dataclass
class Observed:
    """What the clients saw."""

    acknowledged: dict[int, float] = field(default_factory=dict)  # number -> when, monotonic
    failed: dict[int, str] = field(default_factory=dict)  # number -> the error's name
    slowest_s: dict[int, float] = field(default_factory=dict)  # partition -> of its records, from send to answer
    read: list[tuple[int, int]] = field(default_factory=list)  # by the group: partition, number
    read_errors: list[str] = field(default_factory=list)
    log: list[list[int]] = field(default_factory=list)  # at the end: the numbers of each partition

    @property
    def lost(self) -> set[int]:
        """Numbers that were acknowledged and are not there at the end."""
        return self.acknowledged.keys() - {number for numbers in self.log for number in numbers}

    @property
    def missed(self) -> set[int]:
        """Numbers that were acknowledged and that the group has not read."""
        return self.acknowledged.keys() - {number for _, number in self.read}

    @property
    def doubled(self) -> int:
        """How many records are in the log more than once."""
        return sum(len(numbers) - len({*numbers}) for numbers in self.log)

    @property
    def out_of_order(self) -> bool:
        """Whether a partition has its numbers in another order than they were sent in."""
        return any(numbers != sorted(numbers) for numbers in self.log)


class Workload:
    """A producer and a consumer, each in a thread of its own."""

    def __init__(self, bootstrap: str, producer: Mapping[str, object]) -> None:
        """`producer`: settings of its own."""
        self.observed = Observed()
        self._bootstrap = bootstrap
        self._producer = {**_BOTH, **_PRODUCER, "bootstrap.servers": bootstrap, "client.id": PRODUCER, **producer}
        self._consumer = {
            **_BOTH,
            **_CONSUMER,
            "bootstrap.servers": bootstrap,
            "client.id": CONSUMER,
            "group.id": GROUP,
        }
        self._enough, self._read_all = threading.Event(), threading.Event()
        self._producing = threading.Thread(target=self._produce, daemon=True)
        self._consuming = threading.Thread(target=self._consume, daemon=True)

    def start(self, patience_s: float) -> None:
        """Returns when records go all the way."""
        self._producing.start()
        self._consuming.start()
        until = monotonic() + patience_s
        while not self.observed.read:
            assert monotonic() < until, f"nothing is read: {self.observed}"
            self._enough.wait(0.02)

    def go_on(self, since: float, patience_s: float) -> None:
        """Writes on until all partitions have taken something after a moment, or it is given up."""
        until = monotonic() + patience_s
        while monotonic() < until:
            acknowledged = dict(self.observed.acknowledged)
            if len({number % PARTITIONS for number, when in acknowledged.items() if when > since}) == PARTITIONS:
                return
            self._enough.wait(0.05)

    def finish(self, patience_s: float) -> None:
        """Writes no more, and reads until there is all that was acknowledged, or nothing more comes."""
        self._enough.set()
        self._producing.join(_JOIN_S)
        until, seen = monotonic() + patience_s, -1
        while self.observed.missed and monotonic() < until and len(self.observed.read) != seen:
            seen = len(self.observed.read)
            self._read_all.wait(_QUIET_S)
        self._read_all.set()
        self._consuming.join(_JOIN_S)
        assert not self._producing.is_alive(), "the producer does not come to its end"
        assert not self._consuming.is_alive(), "the consumer does not come to its end"
        self.observed.log = _log(self._bootstrap)

    def _produce(self) -> None:
        producer = Producer(self._producer)
        number = 0
        while not self._enough.wait(_EVERY_S):
            self._send(producer, number)
            producer.poll(0)
            number += 1
        producer.flush(_LAST_ANSWERS_S)

    def _send(self, producer: Producer, number: int) -> None:
        observed, partition, sent = self.observed, number % PARTITIONS, monotonic()

        def told(error: KafkaError | None, _: object) -> None:
            if error is not None:
                observed.failed[number] = str(error.name())
                return
            now = observed.acknowledged[number] = monotonic()
            observed.slowest_s[partition] = max(observed.slowest_s.get(partition, 0.0), now - sent)

        try:
            producer.produce(TOPIC, b"%d" % number, partition=partition, on_delivery=told)
        except (BufferError, KafkaException) as error:
            observed.failed[number] = str(error)

    def _consume(self) -> None:
        consumer = Consumer(self._consumer)
        consumer.subscribe([TOPIC])
        while not self._read_all.is_set():
            message = consumer.poll(0.1)
            if message is None:
                continue
            error = message.error()
            if error is not None:
                self.observed.read_errors.append(str(error.name()))
                continue
            self.observed.read.append((_partition(message), int(message.value() or b"")))
        consumer.close()


def _partition(message: Message) -> int:
    partition = message.partition()
    assert partition is not None
    return partition


def _log(bootstrap: str) -> list[list[int]]:
    """What is in each partition, read by who has seen nothing before."""
    consumer = Consumer({**_BOTH, **_CONSUMER, "bootstrap.servers": bootstrap, "client.id": "log", "group.id": "log"})
    log: list[list[int]] = []
    for partition in range(PARTITIONS):
        _, end = consumer.get_watermark_offsets(TopicPartition(TOPIC, partition), timeout=_LAST_ANSWERS_S)
        consumer.assign([TopicPartition(TOPIC, partition, 0)])
        numbers: list[int] = []
        while len(numbers) < end:
            message = consumer.poll(_LAST_ANSWERS_S)
            assert message is not None, f"{TOPIC}-{partition} has {len(numbers)} of {end} records"
            assert message.error() is None, message.error()
            numbers.append(int(message.value() or b""))
        log.append(numbers)
    consumer.close()
    return log
