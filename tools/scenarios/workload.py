"""The clients during a scenario: a producer and a consumer group of librdkafka, and their results.

The producer writes the numbers 0, 1, 2, ... to `orders`, n to partition n % 3, about 200 per second.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import monotonic

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

TOPIC, PARTITIONS = "orders", 3
PRODUCER, CONSUMER, GROUP = "orders-producer", "orders-consumer", "orders-group"
_EVERY_S = 0.005
# Short timeouts, so that effects that take applications minutes appear in seconds.
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
_QUIET_S = 2.0  # without a record, after which reading ends


@dataclass
class Observed:
    """The results of the clients."""

    acknowledged: dict[int, float] = field(default_factory=dict)  # number -> time, monotonic
    failed: dict[int, str] = field(default_factory=dict)  # number -> error name
    slowest_s: dict[int, float] = field(default_factory=dict)  # partition -> longest time from a send to its outcome
    read: list[tuple[int, int]] = field(default_factory=list)  # by the group: partition, number
    read_errors: list[str] = field(default_factory=list)
    log: list[list[int]] = field(default_factory=list)  # numbers of each partition at the end

    @property
    def lost(self) -> set[int]:
        """Acknowledged numbers that are not in the log at the end."""
        return self.acknowledged.keys() - {number for numbers in self.log for number in numbers}

    @property
    def missed(self) -> set[int]:
        """Acknowledged numbers that the group has not read."""
        return self.acknowledged.keys() - {number for _, number in self.read}

    @property
    def doubled(self) -> int:
        """Number of records that are in the log more than once."""
        return sum(len(numbers) - len({*numbers}) for numbers in self.log)

    @property
    def out_of_order(self) -> bool:
        """Whether a partition has its numbers in another order than they were sent."""
        return any(numbers != sorted(numbers) for numbers in self.log)


class Workload:
    """A producer and a consumer, each in its own thread."""

    def __init__(self, bootstrap: str, producer: Mapping[str, object]) -> None:
        """Create the clients; `producer` has additional settings."""
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
        """Start, and return when the consumer reads records."""
        self._producing.start()
        self._consuming.start()
        until = monotonic() + patience_s
        while not self.observed.read:
            assert monotonic() < until, f"no record is read: {self.observed}"
            self._enough.wait(0.02)

    def continue_until_accepted(self, since: float, patience_s: float) -> None:
        """Keep writing until every partition has accepted a record after `since`, or time runs out."""
        until = monotonic() + patience_s
        while monotonic() < until:
            acknowledged = dict(self.observed.acknowledged)
            if len({number % PARTITIONS for number, when in acknowledged.items() if when > since}) == PARTITIONS:
                return
            self._enough.wait(0.05)

    def finish(self, patience_s: float) -> None:
        """Stop writing, and read until all acknowledged records have arrived or no more arrive."""
        self._enough.set()
        self._producing.join(_JOIN_S)
        until, seen = monotonic() + patience_s, -1
        while self.observed.missed and monotonic() < until and len(self.observed.read) != seen:
            seen = len(self.observed.read)
            self._read_all.wait(_QUIET_S)
        self._read_all.set()
        self._consuming.join(_JOIN_S)
        assert not self._producing.is_alive(), "the producer does not stop"
        assert not self._consuming.is_alive(), "the consumer does not stop"
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

        def delivered(error: KafkaError | None, _: object) -> None:
            if error is not None:
                observed.failed[number] = str(error.name())
                return
            now = observed.acknowledged[number] = monotonic()
            observed.slowest_s[partition] = max(observed.slowest_s.get(partition, 0.0), now - sent)

        try:
            producer.produce(TOPIC, b"%d" % number, partition=partition, on_delivery=delivered)
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
    """Return the contents of each partition, read by a new consumer."""
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
