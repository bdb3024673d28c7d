"""Under any failures, every record is delivered once and in order, or fails in time (KIP-91, KIP-98).

A seed is some minutes of virtual time: an idempotent producer sends to three brokers, while connections break, hosts
are partitioned, requests are delayed, lost or answered with errors, and brokers stop and start. A thousand seeds are a
week. The campaign `week` runs them; `pytest tests/property/test_week_of_failures.py --week-seed N` runs one.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random

import pytest

from sluice import Broker, testing
from sluice.broker.faults.actions import AnyAction
from sluice.broker.faults.actions.delay import Delay
from sluice.broker.faults.actions.error_response import Error
from sluice.broker.faults.actions.no_response import BlackHole, Close
from sluice.client.producer import Producer
from sluice.errors import SluiceError
from tests.support.producing import TOPIC, values_in

DURATION_S = 600
DELIVERY_TIMEOUT_MS = 20_000
PARTITIONS = 3
# Event-loop iterations, and waits for memory and metadata, which do not count.
LATE_MS = 5.0

ACTIONS: list[AnyAction] = [
    *(
        Error(code, when="before")
        for code in ("NOT_LEADER_OR_FOLLOWER", "NOT_ENOUGH_REPLICAS", "REQUEST_TIMED_OUT", "KAFKA_STORAGE_ERROR")
    ),
    # The record is written but the response is an error: the case that sequence numbers solve.
    *(Error(code, when="after") for code in ("REQUEST_TIMED_OUT", "NOT_ENOUGH_REPLICAS_AFTER_APPEND")),
    Delay(min=0, max=4000, when="before"),
    Delay(min=0, max=4000, when="after"),
    Close(when="before"),
    Close(when="after", how="rst"),
    Close(when="mid-response"),
    BlackHole(when="before"),
    BlackHole(when="after"),
]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    one, many = metafunc.config.getoption("--week-seed"), metafunc.config.getoption("--week-seeds")
    metafunc.parametrize("seed", range(many or 2) if one is None else [one])


@dataclass
class Sent:
    """A record and its outcome."""

    number: int
    partition: int
    sent_ms: float
    offset: int | None = None
    ended_ms: float | None = None


async def fail(broker: Broker, random: Random, until_s: float) -> None:
    """Start a random failure now and then, and end it."""
    network, loop = testing.network(), asyncio.get_running_loop()
    places = [*broker.brokers.values(), "*"]
    bad: list[Callable[[], object]] = [
        partial(network.reset, "app"),
        partial(_part, network, random, places),
        partial(_slow, network, random),
        partial(_refuse, network, random, places),
        partial(_restart, broker, random),
        *[partial(_fault, broker, random, action) for action in ACTIONS],
    ]
    while loop.time() < until_s:
        await asyncio.sleep(random.expovariate(1 / 8))
        for _ in range(random.choice((1, 1, 1, 2, 3))):
            random.choice(bad)()


def _later(random: Random, mean_s: float, undo: Callable[[], object]) -> None:
    asyncio.get_running_loop().call_later(random.expovariate(1 / mean_s), undo)


def _part(network: testing.Network, random: Random, places: list[str]) -> None:
    place = random.choice(places)
    network.partition("app", place)
    _later(random, 5, partial(network.heal, "app", place))


def _slow(network: testing.Network, random: Random) -> None:
    network.link("app", latency_s=random.random() / 5, jitter_s=random.random(), loss=random.choice((0.0, 0.2)))
    _later(random, 10, partial(network.link, "app"))


def _refuse(network: testing.Network, random: Random, places: list[str]) -> None:
    place = random.choice(places)
    network.refuse(place)
    _later(random, 3, partial(network.accept, place))


def _restart(broker: Broker, random: Random) -> None:
    node_id = random.choice(list(broker.brokers))
    tasks.append(
        asyncio.create_task(_stop_and_start(broker, node_id, random.random() < 0.5, random.expovariate(1 / 5)))
    )


tasks: list[asyncio.Task[None]] = []


async def _stop_and_start(broker: Broker, node_id: int, controlled: bool, seconds: float) -> None:
    try:
        await broker.cluster.stop(node_id, controlled=controlled)
    except SluiceError:
        return  # it is stopped already, or it is the last one
    await asyncio.sleep(seconds)
    await broker.cluster.start(node_id)


def _fault(broker: Broker, random: Random, action: AnyAction) -> None:
    fault = broker.faults.add(action, api="Produce", probability=random.choice((0.3, 0.7, 1.0)), times=5)
    _later(random, 5, fault.remove)


async def produce(producer: Producer, random: Random, until_s: float) -> list[Sent]:
    loop = asyncio.get_running_loop()
    sent: list[Sent] = []
    while loop.time() < until_s:
        for _ in range(random.choice((1, 3, 10))):
            one = Sent(len(sent), random.randrange(PARTITIONS), 0)
            try:
                future = await producer.send(TOPIC, b"%d" % one.number, partition=one.partition)
            except SluiceError:
                continue  # no metadata for max.block.ms
            one.sent_ms = loop.time() * 1e3
            future.add_done_callback(partial(_ended, one))
            sent.append(one)
        await asyncio.sleep(random.expovariate(1))
    return sent


def _ended(one: Sent, future: "asyncio.Future[object]") -> None:
    one.ended_ms = asyncio.get_running_loop().time() * 1e3
    if future.exception() is None:
        one.offset = getattr(future.result(), "offset", None)


async def week(seed: int) -> tuple[list[Sent], list[list[int]]]:
    """Return the sent records, and the contents of the logs."""
    random = Random(seed)
    config: dict[str, str | float] = {
        "num.partitions": PARTITIONS,
        "default.replication.factor": 3,
        "sluice.journal.events": 0,
    }
    async with Broker(brokers=3, config=config, seed=seed) as broker:
        with testing.network().host("app"):
            given: dict[str, str | int] = {
                "bootstrap.servers": broker.bootstrap,
                "delivery.timeout.ms": DELIVERY_TIMEOUT_MS,
                "request.timeout.ms": 3000,
                "linger.ms": random.choice((0, 5, 200)),
                "batch.size": random.choice((1, 200, 16384)),
                "max.in.flight.requests.per.connection": random.choice((1, 2, 5)),
                "compression.type": random.choice(("none", "lz4")),
            }
            async with Producer(given, random=Random(seed)) as producer:
                await producer.partitions_for(TOPIC)
                until_s = asyncio.get_running_loop().time() + DURATION_S
                failing = asyncio.create_task(fail(broker, random, until_s))
                sent = await produce(producer, Random(seed + 1), until_s)
                await failing
                await asyncio.sleep(60)
                broker.faults.clear()
                testing.network().heal()
        await asyncio.gather(*tasks)
        tasks.clear()
        return sent, [[int(value) for value in values_in(broker, number)] for number in range(PARTITIONS)]


def test_every_record_is_delivered_once_in_order_or_fails_in_time(seed: int) -> None:
    sent, logs = testing.run(week(seed), seed=seed)
    again = f"seed {seed}: pytest {__file__} --week-seed {seed}"
    assert len(sent) > 100, again
    for number, log in enumerate(logs):
        assert log == sorted(set(log)), f"partition {number} has duplicate or unordered records; {again}"
    for one in sent:
        assert one.ended_ms is not None, f"record {one.number} never ended; {again}"
        took_ms = one.ended_ms - one.sent_ms
        assert took_ms <= DELIVERY_TIMEOUT_MS + LATE_MS, f"record {one.number} took {took_ms:.0f} ms; {again}"
        if one.offset is not None and one.offset >= 0:
            log = logs[one.partition]
            found = log[one.offset] if one.offset < len(log) else None
            assert found == one.number, f"offset {one.offset} of {one.partition} has {found}, not {one.number}; {again}"
        elif one.offset == -1:
            assert one.number in logs[one.partition], f"record {one.number} is lost; {again}"
    delivered = sum(one.offset is not None for one in sent)
    assert delivered > len(sent) / 10, f"{delivered} of {len(sent)} were delivered; {again}"
