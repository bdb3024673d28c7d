"""KIP-144, reconnect backoff, from the view of a failing broker: the statements of test_kip144.py with a real producer.

In virtual time; each test name has a statement's number. A wait is the time from the broker's close of a connection
to the next connection.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from statistics import mean

import pytest

from sluice import Broker, testing
from sluice.broker.faults.actions.connections import RefuseConnections, SilentConnections
from sluice.broker.faults.actions.no_response import Close
from sluice.client.errors import SaslAuthenticationException
from sluice.client.producer import Producer
from sluice.journal_events import ConnectionClosed, ConnectionOpened
from tests.support.consuming import within
from tests.support.producing import TOPIC, Stage, producing

STEPS = [50, 100, 200, 400, 800, 1000, 1000]
SLACK_MS = 2.0
# Kafka's default rebootstraps in between, over a connection with a separate backoff.
ONE_CONNECTION: dict[str, str | int] = {"metadata.recovery.strategy": "none"}
AT_THE_DOOR = RefuseConnections(how="fin")  # accepted, and closed at once


def waits(broker: Broker, node: int = 1) -> list[float]:
    """Return the waits from each connection's end to the next connection's start, per broker."""
    found: list[float] = []
    closed_ns: int | None = None
    for event in broker.journal.events(broker=node):
        if isinstance(event, ConnectionClosed):
            closed_ns = event.at_ns
        elif isinstance(event, ConnectionOpened) and closed_ns is not None:
            found.append((event.at_ns - closed_ns) / 1e6)
            closed_ns = None
    return found


def led_by(broker: Broker, node: int) -> int:
    """Return a partition that this node leads."""
    return next(number for number in (0, 1) if broker.cluster.partition(TOPIC, number).leader == node)


TWO_BROKERS: dict[str, str | float] = {"sluice.brokers": 2, "num.partitions": 2}


@asynccontextmanager
async def lost(
    fault: RefuseConnections | SilentConnections | Close = AT_THE_DOOR,
    *,
    seed: int = 0,
    given: dict[str, str | int] | None = None,
    broker_config: dict[str, str | float] | None = None,
) -> AsyncIterator[Stage]:
    """Start a producer that lost its connections and cannot reconnect."""
    async with producing({**ONE_CONNECTION, **(given or {})}, seed=seed, broker_config=broker_config) as stage:
        if isinstance(fault, Close):
            stage.broker.faults.add(fault, api="ApiVersions")
        else:
            stage.broker.faults.add(fault, broker=1)
        testing.network().reset("localhost")
        sent = await stage.send(partition=led_by(stage.broker, 1))
        yield stage
        stage.broker.faults.clear()
        await stage.ended(sent)


SEEDS = pytest.mark.parametrize("seed", range(3))


@SEEDS
async def test_kip144_01_at_a_broker_each_consecutive_failure_doubles_the_backoff(seed: int) -> None:
    async with lost(seed=seed) as stage:
        await asyncio.sleep(5)
        assert within(waits(stage.broker), STEPS, SLACK_MS), waits(stage.broker)


@SEEDS
async def test_kip144_02_at_a_broker_backoff_at_the_cap_is_800_to_1000_ms(seed: int) -> None:
    async with lost(seed=seed) as stage:
        await asyncio.sleep(15)
        at_the_cap = waits(stage.broker)[5:]
        assert len(at_the_cap) >= 10
        assert all(800 <= wait <= 1000 + SLACK_MS for wait in at_the_cap), at_the_cap


@SEEDS
async def test_kip144_03_at_a_broker_api_versions_response_resets_the_backoff(seed: int) -> None:
    async with lost(seed=seed) as stage:
        await asyncio.sleep(3)
        assert waits(stage.broker)[-1] > 300
        stage.broker.faults.clear()
        await stage.ended(await stage.send())
        testing.network().reset("localhost")
        await stage.ended(await stage.send())
        assert within(waits(stage.broker)[-1:], STEPS[:1], SLACK_MS), waits(stage.broker)


@SEEDS
async def test_kip144_04_at_a_broker_connection_without_api_versions_does_not_reset_the_backoff(seed: int) -> None:
    async with lost(Close(), seed=seed) as stage:
        await asyncio.sleep(5)
        assert within(waits(stage.broker), STEPS, SLACK_MS), waits(stage.broker)


@SEEDS
async def test_kip144_05_at_a_broker_backoff_applies_after_a_successful_connection(seed: int) -> None:
    async with producing(ONE_CONNECTION, seed=seed) as stage:
        for _ in range(5):
            testing.network().reset("localhost")
            await stage.ended(await stage.send())
        assert len(waits(stage.broker)) == 5
        assert all(within([wait], STEPS[:1], SLACK_MS) for wait in waits(stage.broker)), waits(stage.broker)


@SEEDS
async def test_kip144_06_at_two_brokers_nodes_back_off_independently(seed: int) -> None:
    async with lost(seed=seed, broker_config=TWO_BROKERS) as stage:
        await asyncio.sleep(4)
        assert waits(stage.broker, 1)[-1] > 300
        before = len(waits(stage.broker, 2))
        for _ in range(3):
            testing.network().reset(stage.broker.brokers[2])
            await stage.ended(await stage.send(b"two", partition=led_by(stage.broker, 2)))
        found = waits(stage.broker, 2)[before:]
        assert len(found) == 3
        assert all(within([wait], STEPS[:1], SLACK_MS) for wait in found), found


@pytest.mark.parametrize(
    ("given", "constant"),
    [
        pytest.param({"reconnect.backoff.ms": 200}, 200, id="07 only the base set"),
        pytest.param(
            {"reconnect.backoff.ms": 500, "reconnect.backoff.max.ms": 200}, 200, id="08 maximum below the base"
        ),
    ],
)
async def test_kip144_07_and_08_at_a_broker_constant_backoff_has_no_jitter(
    given: dict[str, str | int], constant: int
) -> None:
    async with lost(given=given) as stage:
        await asyncio.sleep(2)
        found = waits(stage.broker)
        assert len(found) >= 8
        assert all(constant <= wait <= constant + SLACK_MS for wait in found), found


async def test_kip144_09_at_a_broker_jitter_is_uniform_and_drawn_once_per_disconnect() -> None:
    third: list[float] = []
    for seed in range(40):
        async with lost(seed=seed) as stage:
            await asyncio.sleep(0.7)
            third.append(waits(stage.broker)[2])
    assert all(160 <= wait <= 240 + SLACK_MS for wait in third)
    assert min(third) < 170
    assert max(third) > 230
    # The mean of 40 draws with a deviation of 23 has a standard error of 3.7: three times that.
    assert abs(mean(third) - 200) < 12


async def test_kip144_10_at_a_silent_broker_only_one_connection_is_pending() -> None:
    async with lost(SilentConnections(), given={"request.timeout.ms": 5000}) as stage:
        opened = len(stage.broker.journal.events(kind="connection-opened"))
        await asyncio.sleep(4)
        assert len(stage.broker.journal.events(kind="connection-opened")) == opened + 1
        assert testing.network().connections("localhost") == 1


async def test_kip144_11_at_two_brokers_closed_connection_is_reopened_only_for_a_record() -> None:
    config = {**ONE_CONNECTION, "metadata.max.age.ms": 3_600_000}
    async with producing(config, broker_config=TWO_BROKERS) as stage:
        there = led_by(stage.broker, 2)
        await stage.ended(await stage.send(partition=led_by(stage.broker, 1)), await stage.send(partition=there))
        testing.network().reset(stage.broker.brokers[2])
        await asyncio.sleep(60)
        assert waits(stage.broker, 2) == [], "metadata requests use the open connection"
        await stage.ended(await stage.send(partition=there))
        (wait,) = waits(stage.broker, 2)
        assert wait >= 60_000
        assert waits(stage.broker, 1) == []


@SEEDS
async def test_kip144_12_at_a_broker_authentication_failure_counts_twice(seed: int) -> None:
    config: dict[str, str | float] = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sluice.sasl.users": "alice:alice-secret",
    }
    given: dict[str, str | int] = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": 'M required username="alice" password="guessed";',
    }
    async with Broker(config=config, seed=seed) as broker:
        servers = {"bootstrap.servers": broker.bootstrap}
        async with Producer({**ONE_CONNECTION, **servers, **given}, random=Random(seed)) as producer:
            until_s = asyncio.get_running_loop().time() + 4
            while asyncio.get_running_loop().time() < until_s:
                with pytest.raises(SaslAuthenticationException):
                    await producer.partitions_for(TOPIC)
        found = waits(broker)
    assert within(found, [100, 400, 1000], SLACK_MS), found


async def test_kip144_13_at_a_stopped_broker_client_rebootstraps() -> None:
    async with producing() as stage:
        stage.broker.faults.add(AT_THE_DOOR)
        testing.network().reset("localhost")
        sent = await stage.send()
        await asyncio.sleep(3)
        first, second, *others = waits(stage.broker)
        assert within([first], STEPS[:1], SLACK_MS)
        assert second < 0.8 * STEPS[1], "no doubling: it is a separate connection, to the bootstrap address"
        assert within(others, STEPS[1:4], SLACK_MS), others
        stage.broker.faults.clear()
        await stage.ended(sent)
        assert stage.ends[b"v"].error is None
