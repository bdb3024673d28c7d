"""Under any failures, a transaction is read completely, once and in order, or not at all (KIP-98, KIP-890).

Uses some failures of tests/property/test_week_of_failures.py with a transactional producer. The outcome of a
transaction is the one that the producer reports: committed or aborted.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from random import Random

import pytest

from sluice import Broker, testing
from sluice.broker.faults.actions import AnyAction
from sluice.broker.faults.actions.delay import Delay
from sluice.broker.faults.actions.error_response import Error
from sluice.broker.faults.actions.no_response import Close
from sluice.client.errors import KafkaException, TimeoutException
from sluice.client.producer import Producer
from tests.support.producing import TOPIC, committed_in

DURATION_S = 300
PARTITIONS = 2
APIS = ("Produce", "AddPartitionsToTxn", "EndTxn", "FindCoordinator", "InitProducerId")
ACTIONS: list[tuple[str, AnyAction]] = [
    *((api, Error("NOT_COORDINATOR")) for api in APIS[1:3]),
    *((api, Error("COORDINATOR_LOAD_IN_PROGRESS", when="after")) for api in APIS[1:3]),
    *((api, Close(when="before")) for api in APIS),
    *((api, Close(when="after", how="rst")) for api in APIS),
    *((api, Delay(min=0, max=3000)) for api in APIS),
    ("Produce", Error("NOT_LEADER_OR_FOLLOWER")),
    ("Produce", Error("REQUEST_TIMED_OUT", when="after")),
    ("Produce", Error("INVALID_RECORD")),
]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    one, many = metafunc.config.getoption("--week-seed"), metafunc.config.getoption("--week-seeds")
    metafunc.parametrize("seed", range(many or 2) if one is None else [one])


async def fail(broker: Broker, random: Random, until_s: float) -> None:
    """Start a random failure now and then, and end it."""
    network, loop = testing.network(), asyncio.get_running_loop()
    while loop.time() < until_s:
        await asyncio.sleep(random.expovariate(1 / 8))
        match random.randrange(6):
            case 0:
                network.reset("app")
            case 1:
                place = random.choice([*broker.brokers.values(), "*"])
                network.partition("app", place)
                loop.call_later(random.expovariate(1 / 4), partial(network.heal, "app", place))
            case _:
                api, action = random.choice(ACTIONS)
                fault = broker.faults.add(action, api=api, probability=random.choice((0.3, 1.0)), times=3)
                loop.call_later(random.expovariate(1 / 5), fault.remove)


async def produce(producer: Producer, random: Random, until_s: float) -> list[list[bytes]]:
    """Return the values of the committed transactions."""
    loop, committed, number = asyncio.get_running_loop(), [], 0
    while loop.time() < until_s:
        producer.begin_transaction()
        values = [b"%d" % (number := number + 1) for _ in range(random.choice((1, 2, 5)))]
        try:
            for value in values:
                await producer.send(TOPIC, value, partition=random.randrange(PARTITIONS))
            if random.random() < 0.2:
                await until_ended(producer.abort_transaction)
            else:
                await until_ended(producer.commit_transaction)
                committed.append(values)
        except KafkaException:
            await until_ended(producer.abort_transaction)
        await asyncio.sleep(random.expovariate(1))
    return committed


async def until_ended(operation: Callable[[], Awaitable[None]]) -> None:
    """Repeat an operation while it times out."""
    while True:
        try:
            await operation()
        except TimeoutException as error:
            if "call it again" not in str(error):
                raise
        else:
            return


async def week(seed: int) -> tuple[list[list[bytes]], list[list[bytes]]]:
    """Return the committed values, and the values read."""
    random = Random(seed)
    release = random.choice(("kafka-3.9", "kafka-4.4"))
    config: dict[str, str | float] = {
        "num.partitions": PARTITIONS,
        "sluice.kafka.release": release,
        "sluice.journal.events": 0,
    }
    async with Broker(brokers=3, config=config, seed=seed) as broker:
        with testing.network().host("app"):
            given: dict[str, str | int] = {
                "bootstrap.servers": broker.bootstrap,
                "transactional.id": "tx",
                "delivery.timeout.ms": 10_000,
                "request.timeout.ms": 2000,
                "max.block.ms": 15_000,
                "linger.ms": random.choice((0, 50)),
                "batch.size": random.choice((1, 16384)),
            }
            async with Producer(given, random=Random(seed)) as producer:
                await until_ended(producer.init_transactions)
                until_s = asyncio.get_running_loop().time() + DURATION_S
                failing = asyncio.create_task(fail(broker, random, until_s))
                committed = await produce(producer, Random(seed + 1), until_s)
                await failing
                await asyncio.sleep(30)
                broker.faults.clear()
                testing.network().heal()
                producer.begin_transaction()
                await producer.commit_transaction()
        await asyncio.sleep(30)
        return committed, [committed_in(broker, number) for number in range(PARTITIONS)]


def test_transaction_is_read_completely_once_in_order_or_not_at_all(seed: int) -> None:
    committed, logs = testing.run(week(seed), seed=seed)
    again = f"seed {seed}: pytest {__file__} --week-seed {seed}"
    assert len(committed) > 30, again
    read = sorted(int(value) for log in logs for value in log)
    assert read == [int(value) for values in committed for value in values], again
    for number, log in enumerate(logs):
        assert log == sorted(log, key=int), f"partition {number} is out of order; {again}"
