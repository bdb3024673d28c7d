"""A broker that is killed repeatedly, and a producer that keeps sending: the implementation of the campaign `crash`.

The producer is a real client with acks=all in this process; the broker is a separate process with a data directory. A
consumer must then find each acknowledged record, and each partition in the order of the sends. Records of an idempotent
producer are found once, and those of a transactional one only if their transaction was committed.
"""

import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from threading import Event, Thread
from time import monotonic, sleep

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.support.broker_process import BrokerProcess, overrides
from tests.support.ports import free_ports

TOPIC = "survivors"
PARTITIONS = 3
# Time from an acknowledgement until the broker is killed.
_LONGEST_LIFE_S = 0.5
_GIVES_UP_AFTER_S = 60

# Settings of the kinds of producers. Retries of a plain one keep the order with one request in flight.
KINDS: dict[str, dict[str, str | int | bool]] = {
    "idempotent": {"enable.idempotence": True},
    "plain": {"enable.idempotence": False, "max.in.flight.requests.per.connection": 1},
    "transactional": {"transactional.id": "writer"},
}
_RECORDS_AT_ONCE = 50


class Writer:
    """Sends numbers at full speed; keeps the acknowledged ones by partition, those of a transaction once committed."""

    def __init__(self, bootstrap: str, kind: str) -> None:
        self.sent = 0
        self.acknowledged: list[list[int]] = [[] for _ in range(PARTITIONS)]
        self.failed: list[str] = []
        self._ends = Event()
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "linger.ms": 1,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "message.timeout.ms": 0,
                "logger": None,
                "log_level": 0,
                **KINDS[kind],
            }
        )
        self._thread = Thread(target=self._run_transactions if kind == "transactional" else self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._ends.is_set():
            for number in self._next_numbers():
                self._produce(number, self._delivered)
            self._producer.poll(0.005)
            while len(self._producer) > 5000 and not self._ends.is_set():
                self._producer.poll(0.01)

    def _run_transactions(self) -> None:
        try:
            self._repeat(self._producer.init_transactions)
            while not self._ends.is_set():
                numbers = self._next_numbers()
                self._producer.begin_transaction()
                for number in numbers:
                    self._produce(number, lambda *_: None)
                if self._commits():
                    for number in numbers:
                        self.acknowledged[number % PARTITIONS].append(number)
        except KafkaException as error:
            self.failed.append(str(error))

    def _commits(self) -> bool:
        try:
            self._repeat(self._producer.commit_transaction)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            self._repeat(self._producer.abort_transaction)
            return False
        return True

    def _repeat(self, call: Callable[[float], None]) -> None:
        """Call until the outcome is known; raises KafkaException for an error that repetitions do not change."""
        deadline = monotonic() + _GIVES_UP_AFTER_S
        while True:
            try:
                return call(1.0)
            except KafkaException as error:
                if not error.args[0].retriable() or monotonic() > deadline:
                    raise

    def _next_numbers(self) -> range:
        numbers = range(self.sent, self.sent + _RECORDS_AT_ONCE)
        self.sent = numbers.stop
        return numbers

    def _produce(self, number: int, on_delivery: Callable[[object, Message], None]) -> None:
        partition = number % PARTITIONS
        self._producer.produce(TOPIC, str(number).encode(), partition=partition, on_delivery=on_delivery)

    def _delivered(self, error: object, message: Message) -> None:
        if error is None:
            self.acknowledged[message.partition() or 0].append(int(message.value() or b""))
        else:
            self.failed.append(str(error))

    def wait_for_acknowledgement(self) -> None:
        """Wait until another record is acknowledged."""
        before, deadline = self._count(), monotonic() + _GIVES_UP_AFTER_S
        while self._count() == before and not self.failed:
            assert monotonic() < deadline, "no record is acknowledged any more"
            sleep(0.005)

    def _count(self) -> int:
        return sum(map(len, self.acknowledged))

    def finish(self) -> None:
        """Stop sending, and wait for pending records."""
        self._ends.set()
        self._thread.join()
        assert self._producer.flush(_GIVES_UP_AFTER_S) == 0, "the producer could not deliver its records"


def survive(folder: Path, kind: str, kills: int, seed: int, properties: Sequence[str] = ()) -> int:
    """Kill a broker `kills` times during writes of a kind of producer; return the number of acknowledged records."""
    random = Random(seed)
    (port,) = free_ports(1)
    arguments = ["--port", str(port), "--admin-port", "0", "--data-dir", str(folder / "data")]
    arguments += overrides(f"num.partitions={PARTITIONS}", *properties)
    bootstrap = f"127.0.0.1:{port}"
    broker = BrokerProcess(folder / "log", *arguments)
    try:
        _create_topic(bootstrap)
        writer = Writer(bootstrap, kind)
        try:
            for kill in range(kills):
                writer.wait_for_acknowledgement()
                sleep(random.uniform(0, _LONGEST_LIFE_S))
                broker.process.send_signal(signal.SIGKILL)
                broker.process.communicate()
                broker = BrokerProcess(folder / f"log-{kill}", *arguments)
        finally:
            writer.finish()
        assert not writer.failed, f"seed {seed}: {writer.failed[:3]}"
        found = _consume(bootstrap, sum(map(len, writer.acknowledged)))
        if kind == "plain":  # a batch whose response was lost may be there twice
            found = [list(dict.fromkeys(those)) for those in found]
        assert found == writer.acknowledged, f"seed {seed}: {_difference(found, writer.acknowledged)}"
        if kind != "transactional":  # all sent records were acknowledged in the end
            assert found == [list(range(one, writer.sent, PARTITIONS)) for one in range(PARTITIONS)]
        return sum(map(len, found))
    finally:
        broker.kill()


def _create_topic(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS)])[TOPIC].result(timeout=_GIVES_UP_AFTER_S)


def _consume(bootstrap: str, count: int) -> list[list[int]]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "judge", "enable.partition.eof": True})
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    found: list[list[int]] = [[] for _ in range(PARTITIONS)]
    ended: set[int | None] = set()
    deadline = monotonic() + _GIVES_UP_AFTER_S
    while len(ended) < PARTITIONS:
        assert monotonic() < deadline, f"{sum(map(len, found))} of {count} records were read"
        for message in consumer.consume(1000, timeout=0.2):
            if message.error() is not None:
                ended.add(message.partition())
            else:
                found[message.partition() or 0].append(int(message.value() or b""))
    consumer.close()
    return found


def _difference(found: list[list[int]], expected: list[list[int]]) -> str:
    for partition, (there, sent) in enumerate(zip(found, expected, strict=True)):
        if there != sent:
            lost, extra = sorted(set(sent) - set(there)), len(there) - len(set(there))
            return f"partition {partition}: lost {lost[:5]} ({len(lost)}), {extra} twice, of {len(sent)}"
    return ""
