"""One test of the suite, with each client: create a topic, produce records, consume them in a group, commit, close.

Each client has its default settings, apart from `auto.offset.reset` and `enable.auto.commit`. A run returns the time
when each phase of figures.py ended, as time.time_ns().
"""

import asyncio
import subprocess
import time
from collections.abc import Callable

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewTopic as AIOKafkaTopic
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic as ConfluentTopic
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.admin import NewTopic as KafkaPythonTopic

from tools.clients.built import BUILT, JAVA, ROOT, missing

RECORDS = 100
_VALUE = bytes(100)
_TIMEOUT_S = 30

Run = Callable[[str, str, bool], list[int]]  # with bootstrap servers, the topic and group, and whether to create it


def confluent_kafka(bootstrap: str, name: str, creates: bool) -> list[int]:
    servers: dict[str, str | int | float | bool] = {"bootstrap.servers": bootstrap}
    ends = []
    if creates:
        admin = AdminClient(servers)
        admin.create_topics([ConfluentTopic(name, 1, 1)])[name].result(_TIMEOUT_S)
    ends.append(time.time_ns())
    producer = Producer(servers)
    for _ in range(RECORDS):
        producer.produce(name, _VALUE)
    assert producer.flush(_TIMEOUT_S) == 0
    ends.append(time.time_ns())
    consumer = Consumer(servers | {"group.id": name, "auto.offset.reset": "earliest", "enable.auto.commit": False})
    consumer.subscribe([name])
    assert len(consumer.consume(RECORDS, _TIMEOUT_S)) == RECORDS
    ends.append(time.time_ns())
    consumer.commit(asynchronous=False)
    ends.append(time.time_ns())
    consumer.close()
    ends.append(time.time_ns())
    return ends


def kafka_python(bootstrap: str, name: str, creates: bool) -> list[int]:
    ends = []
    if creates:
        admin = KafkaAdminClient(bootstrap_servers=bootstrap)
        admin.create_topics([KafkaPythonTopic(name, 1, 1)])
        admin.close()
    ends.append(time.time_ns())
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for _ in range(RECORDS):
        producer.send(name, _VALUE)
    producer.close(_TIMEOUT_S)
    ends.append(time.time_ns())
    consumer = KafkaConsumer(
        name, bootstrap_servers=bootstrap, group_id=name, auto_offset_reset="earliest", enable_auto_commit=False
    )
    for _ in range(RECORDS):
        next(consumer)
    ends.append(time.time_ns())
    consumer.commit()
    ends.append(time.time_ns())
    consumer.close()
    ends.append(time.time_ns())
    return ends


def aiokafka(bootstrap: str, name: str, creates: bool) -> list[int]:
    return asyncio.run(_aiokafka(bootstrap, name, creates))


async def _aiokafka(bootstrap: str, name: str, creates: bool) -> list[int]:
    ends = []
    if creates:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        await admin.create_topics([AIOKafkaTopic(name, 1, 1)])
        await admin.close()
    ends.append(time.time_ns())
    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
        for _ in range(RECORDS):
            await producer.send(name, _VALUE)
    ends.append(time.time_ns())
    consumer = AIOKafkaConsumer(
        name, bootstrap_servers=bootstrap, group_id=name, auto_offset_reset="earliest", enable_auto_commit=False
    )
    await consumer.start()
    for _ in range(RECORDS):
        await consumer.getone()
    ends.append(time.time_ns())
    await consumer.commit()
    ends.append(time.time_ns())
    await consumer.stop()
    ends.append(time.time_ns())
    return ends


class Java:
    """A Java process that runs a test for each line of its standard input."""

    def __init__(self) -> None:
        reason = missing("java-4")
        assert reason is None, reason
        jars = str(BUILT / "java-4" / "lib" / "*")
        options = JAVA[: JAVA.index("-cp")]
        self._process = subprocess.Popen(
            [*options, "-cp", jars, str(ROOT / "tools" / "suite" / "Suite.java")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._read()  # it has been compiled and has started

    def __call__(self, bootstrap: str, name: str, creates: bool) -> list[int]:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{bootstrap} {name} {RECORDS} {str(creates).lower()}\n")
        self._process.stdin.flush()
        return [int(word) for word in self._read().split()]

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the Java process ended"
        return line


CLIENTS: dict[str, Callable[[], Run]] = {
    "aiokafka": lambda: aiokafka,
    "confluent-kafka": lambda: confluent_kafka,
    "kafka-python": lambda: kafka_python,
    "java": Java,
}
