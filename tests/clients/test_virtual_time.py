"""aiokafka and our broker in virtual time."""

import asyncio
import sys
import time
from collections.abc import Coroutine
from dataclasses import dataclass, field
from types import FrameType
from typing import NamedTuple

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError

from sluice import Broker, testing
from sluice.journal_events import AnyEvent

pytestmark = pytest.mark.filterwarnings("error")

DURATION_S = 700.0  # of three restarts


class Read(NamedTuple):
    partition: int
    offset: int
    timestamp: int
    value: bytes


@dataclass
class Outcome:
    """The outcome of a run."""

    sent: list[bytes] = field(default_factory=list)
    read: list[Read] = field(default_factory=list)
    events: list[AnyEvent] = field(default_factory=list)
    passed_s: float = 0.0
    throttled_ms: int = 0


async def consume(consumer: AIOKafkaConsumer, outcome: Outcome) -> None:
    async for record in consumer:
        outcome.read.append(Read(record.partition, record.offset, record.timestamp, record.value))


async def restart(broker: Broker) -> None:
    """Restart one broker after the other, every second one without a controlled shutdown."""
    is_controlled = True
    while True:
        for node_id in broker.brokers:
            await asyncio.sleep(180)
            await broker.cluster.stop(node_id, controlled=is_controlled)
            await asyncio.sleep(20)
            await broker.cluster.start(node_id)
            is_controlled = not is_controlled


async def produce(producer: AIOKafkaProducer, until_s: float, outcome: Outcome) -> None:
    number = 0
    while time.monotonic() < until_s:
        value = b"%d " % number
        number += 1
        await producer.send("t", value + bytes(1000), key=value[-3:])
        outcome.sent.append(value)
        await asyncio.sleep(4)


async def live(seconds: float) -> Outcome:
    """Run three restarting brokers on a network with delays, a producer above its quota, and a consumer group."""
    outcome, began = Outcome(), time.monotonic()
    config = {"num.partitions": "3", "default.replication.factor": "3", "quota.producer.default": "300"}
    async with Broker(brokers=3, config=config) as broker:
        testing.network().link("app", latency_s=0.002, jitter_s=0.004)
        with testing.network().host("app"):
            producer = AIOKafkaProducer(
                bootstrap_servers=broker.bootstrap, client_id="app", enable_idempotence=True, linger_ms=5
            )
            consumers = [
                AIOKafkaConsumer(
                    "t",
                    bootstrap_servers=broker.bootstrap,
                    group_id="g",
                    auto_offset_reset="earliest",
                    fetch_max_wait_ms=10_000,
                )
                for _ in range(2)
            ]
            for client in (producer, *consumers):
                await client.start()
            reading = [asyncio.create_task(consume(consumer, outcome)) for consumer in consumers]
            restarting = asyncio.create_task(restart(broker))
        await produce(producer, began + seconds, outcome)
        restarting.cancel()
        await producer.stop()
        await asyncio.sleep(60)
        for task, consumer in zip(reading, consumers, strict=True):
            task.cancel()
            await consumer.stop()
        outcome.events = broker.journal.events()
        outcome.throttled_ms = sum(
            request.throttle_time_ms for request in broker.journal.requests(client_id="app", api="Produce")
        )
    outcome.passed_s = time.monotonic() - began
    return outcome


@pytest.fixture(scope="module")
def lived() -> Outcome:
    return testing.run(live(DURATION_S), seed=3)


class TestTraffic:
    def test_all_records_are_read_in_order(self, lived: Outcome) -> None:
        assert len(lived.sent) > 150
        assert {read.value.split(b" ")[0] for read in lived.read} == {value.strip() for value in lived.sent}
        logs = {(read.partition, read.offset): read.value for read in lived.read}
        for partition in range(3):
            numbers = [int(value.split(b" ")[0]) for (where, _), value in sorted(logs.items()) if where == partition]
            assert numbers == sorted(set(numbers))

    def test_producer_is_throttled_by_its_quota(self, lived: Outcome) -> None:
        assert lived.throttled_ms > 0

    def test_records_have_virtual_timestamps(self, lived: Outcome) -> None:
        stamps_s = [read.timestamp / 1000 - 1_700_000_000 for read in lived.read]
        assert lived.passed_s > DURATION_S
        assert min(stamps_s) < 10
        assert DURATION_S - 10 < max(stamps_s) < DURATION_S + 10

    def test_same_seed_alone_gives_the_same_run(self, lived: Outcome) -> None:
        again, other = (testing.run(live(DURATION_S), seed=seed) for seed in (3, 4))
        assert again.read == lived.read
        assert again.events == lived.events
        assert other.events != lived.events


async def busy(seconds: float, linger_ms: int) -> int:
    """Send a record every 10 ms; return the number of Produce requests."""
    async with Broker() as broker:
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap, linger_ms=linger_ms)
        await producer.start()
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            await producer.send("t", bytes(100))
            await asyncio.sleep(0.01)
        await producer.stop()
        return sum(event.api == "Produce" for event in broker.journal.requests())


# Event-loop iterations in half a minute: 9,700 with the locked version of aiokafka.
MAX_ITERATIONS = 12_500
# Calls of Python functions meanwhile, aiokafka's included: 343,899 with the locked versions on Python 3.11.
MAX_CALLS = 420_000


async def calls_of(work: Coroutine[object, object, int]) -> tuple[int, int]:
    """Return the result of `work` and the number of Python functions called by the event loop meanwhile.

    Unlike the processor time, it does not depend on the machine.
    """
    calls = 0

    def count(frame: FrameType, event: str, arg: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        result = await work
    finally:
        sys.setprofile(before)
    return result, calls


def test_half_a_minute_of_a_busy_producer_needs_few_and_cheap_iterations() -> None:
    produced, calls = testing.run(calls_of(busy(30, linger_ms=100)), max_turns=MAX_ITERATIONS)
    assert produced > 200
    assert 0 < calls < MAX_CALLS


async def partitioned(seconds: float) -> tuple[str, float]:
    """Partition the network from a producer; return its record's error and the time until then."""
    async with Broker() as broker:
        with testing.network().host("app"):
            producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap, request_timeout_ms=30_000)
            await producer.start()
            await producer.send_and_wait("t", b"before")
            testing.network().partition("app")
            asyncio.get_running_loop().call_later(seconds, testing.network().heal)
            began_s = time.monotonic()
            try:
                await producer.send_and_wait("t", b"meanwhile")
                failed = ""
            except KafkaError as error:
                failed = type(error).__name__
            waited_s = time.monotonic() - began_s
            testing.network().heal()
            await producer.stop()
            return failed, round(waited_s)


PARTITIONED_S = {"short, survived": (10, ("", 10)), "long, times out": (600, ("RequestTimedOutError", 30))}


@pytest.mark.parametrize(("seconds", "expected"), PARTITIONED_S.values(), ids=PARTITIONED_S)
def test_network_partition(seconds: float, expected: tuple[str, int]) -> None:
    assert testing.run(partitioned(seconds)) == expected
