"""The Python clients back off from a broker that is down behind `sluice proxy` as without the proxy, and recover.

tests/unit/sluice/proxy/upstream/test_connector.py has the kinds of outages.
"""

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import kafka
import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import Producer

from sluice import SyncBroker, SyncProxy
from tests.clients.driver import TIMEOUT_S

OUTAGE_S = 2
PAUSE_S = 0.05
# At the proxy, a client is accepted once before the port is closed, which may reset its backoff; each client connects
# for requests and for metadata.
MORE_ATTEMPTS = 10

_ports: list[int] = []  # to which this process has tried to connect, since the last call of `attempts_at`


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if event == "socket.connect":
        _, address = arguments
        if isinstance(address, tuple):
            _ports.append(address[1])


class _LibrdkafkaLog(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        _, found, address = record.getMessage().partition("Connecting to ipv4#")
        if found:
            _ports.append(int(address.partition(":")[2].partition(" ")[0]))


@pytest.fixture(scope="module", autouse=True)
def _noted() -> None:
    sys.addaudithook(_note)  # cannot be removed


def with_kafka_python(bootstrap: str, sent: threading.Event, stop: threading.Event) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap)
    while not stop.is_set():
        future = producer.send("t", b"x")
        if not sent.is_set():
            future.get(TIMEOUT_S)
            sent.set()
        time.sleep(PAUSE_S)
    future.get(TIMEOUT_S)
    producer.close()


def with_aiokafka(bootstrap: str, sent: threading.Event, stop: threading.Event) -> None:
    async def produce() -> None:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap) as producer:
            while not stop.is_set():
                future = await producer.send("t", b"x")
                if not sent.is_set():
                    await future
                    sent.set()
                await asyncio.sleep(PAUSE_S)
            async with asyncio.timeout(TIMEOUT_S):
                await future

    asyncio.run(produce())


def with_confluent_kafka(bootstrap: str, sent: threading.Event, stop: threading.Event) -> None:
    log = logging.Logger("librdkafka")
    log.addHandler(_LibrdkafkaLog())
    producer = Producer({"bootstrap.servers": bootstrap, "debug": "broker"}, logger=log)
    while not stop.is_set():
        producer.produce("t", b"x", on_delivery=lambda *_: sent.set())
        producer.poll(PAUSE_S)
    assert producer.flush(TIMEOUT_S) == 0


Client = Callable[[str, threading.Event, threading.Event], None]
CLIENTS: dict[str, Client] = {
    "kafka-python": with_kafka_python,
    "aiokafka": with_aiokafka,
    "confluent-kafka": with_confluent_kafka,
}


@contextmanager
def producing(client: Client, bootstrap: str) -> Iterator[None]:
    """Run a producer from its first acknowledged record until the end, when all records must be acknowledged."""
    sent, stop = threading.Event(), threading.Event()
    failures: list[BaseException] = []

    def run() -> None:
        try:
            client(bootstrap, sent, stop)
        except BaseException as failure:
            failures.append(failure)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert sent.wait(TIMEOUT_S)
        yield
    finally:
        stop.set()
        thread.join()
    assert not failures


def attempts(client: Client, broker: SyncBroker, bootstrap: str) -> int:
    """Return how often a producer tries to connect while the broker is down."""
    with producing(client, bootstrap):
        broker.cluster.stop(controlled=False)
        _ports.clear()
        time.sleep(OUTAGE_S)
        found = _ports.count(int(bootstrap.rpartition(":")[2]))
        broker.cluster.start()
    return found


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
def test_a_client_tries_as_often_as_without_the_proxy_and_recovers(client: Client) -> None:
    with SyncBroker() as broker:
        direct = attempts(client, broker, broker.bootstrap)
        with SyncProxy(broker.bootstrap) as proxy:
            proxied = attempts(client, broker, proxy.bootstrap)
    assert 1 < proxied <= 2 * direct + MORE_ATTEMPTS
