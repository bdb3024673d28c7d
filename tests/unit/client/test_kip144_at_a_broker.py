"""KIP-144, reconnect backoff, as a broker sees it that fails: the testable statements of test_kip144.py once more, with
a producer of ours at a broker of ours, in virtual time. Each test is one of them, by its number.

What is measured is the time from when the broker closed a connection to when it was connected to again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from statistics import mean

import pytest

from sluice import Broker, testing
from sluice.broker.faults.actions.connections import RefuseConnections, SilentConnections
from sluice.broker.faults.actions.no_response import Close
from sluice.client.errors import SaslAuthenticationException
from sluice.client.producer import Producer
from sluice.journal_events import ConnectionClosed, ConnectionOpened
from tests.support.producing import TOPIC, Stage, on_stage

STEPS = [50, 100, 200, 400, 800, 1000, 1000]
SLACK_MS = 2.0
# Kafka's default goes back to bootstrap in between, over a connection that counts for itself.
ONE_CONNECTION: dict[str, str | int] = {"metadata.recovery.strategy": "none"}
AT_THE_DOOR = RefuseConnections(how="fin")  # taken, and closed at once


def waits(broker: Broker, node: int = 1) -> list[float]:
    """How long it took from each connection's end to the beginning of the next one, of all connections to a broker."""
    found: list[float] = []
    closed_ns: int | None = None
    for event in broker.journal.events(broker=node):
        if isinstance(event, ConnectionClosed):
            closed_ns = event.at_ns
        elif isinstance(event, ConnectionOpened) and closed_ns is not None:
            found.append((event.at_ns - closed_ns) / 1e6)
            closed_ns = None
    return found


def within(found: list[float], steps: list[int], most: int = 1000) -> bool:
    """Whether waits are 20 % around steps, and at most so long."""
    return len(found) >= len(steps) and all(
        0.8 * step - 1 <= wait <= min(1.2 * step, most) + SLACK_MS for wait, step in zip(found, steps, strict=False)
    )


def led_by(broker: Broker, node: int) -> int:
    """A partition whose leader that is."""
    return next(number for number in (0, 1) if broker.cluster.partition(TOPIC, number).leader == node)


TWO_BROKERS: dict[str, str | float] = {"sluice.brokers": 2, "num.partitions": 2}


def lost(
    test: Callable[[Stage], Awaitable[None]],
    fault: RefuseConnections | SilentConnections | Close = AT_THE_DOOR,
    *,
    seed: int = 0,
    given: dict[str, str | int] | None = None,
    broker_config: dict[str, str | float] | None = None,
) -> None:
    """Runs a test with a producer that has lost its connections, and cannot come back."""

    async def main(stage: Stage) -> None:
        if isinstance(fault, Close):
            stage.broker.faults.add(fault, api="ApiVersions")
        else:
            stage.broker.faults.add(fault, broker=1)
        testing.network().reset("localhost")
        sent = await stage.send(partition=led_by(stage.broker, 1))
        await test(stage)
        stage.broker.faults.clear()
        await stage.ended(sent)

    on_stage(main, {**ONE_CONNECTION, **(given or {})}, seed=seed, broker_config=broker_config)


SEEDS = pytest.mark.parametrize("seed", range(3))


@SEEDS
def test_kip144_01_at_a_broker_each_failure_in_a_row_doubles_the_wait(seed: int) -> None:
    async def test(stage: Stage) -> None:
        await asyncio.sleep(5)
        assert within(waits(stage.broker), STEPS), waits(stage.broker)

    lost(test, seed=seed)


@SEEDS
def test_kip144_02_at_a_broker_it_is_800_to_1000_ms_at_the_cap(seed: int) -> None:
    async def test(stage: Stage) -> None:
        await asyncio.sleep(15)
        at_the_cap = waits(stage.broker)[5:]
        assert len(at_the_cap) >= 10
        assert all(800 <= wait <= 1000 + SLACK_MS for wait in at_the_cap), at_the_cap

    lost(test, seed=seed)


@SEEDS
def test_kip144_03_at_a_broker_an_answer_to_api_versions_resets_it(seed: int) -> None:
    async def test(stage: Stage) -> None:
        await asyncio.sleep(3)
        assert waits(stage.broker)[-1] > 300
        stage.broker.faults.clear()
        await stage.ended(await stage.send())
        testing.network().reset("localhost")
        await stage.ended(await stage.send())
        assert within(waits(stage.broker)[-1:], STEPS[:1]), waits(stage.broker)

    lost(test, seed=seed)


@SEEDS
def test_kip144_04_at_a_broker_a_connection_without_api_versions_resets_nothing(seed: int) -> None:
    async def test(stage: Stage) -> None:
        await asyncio.sleep(5)
        assert within(waits(stage.broker), STEPS), waits(stage.broker)

    lost(test, Close(), seed=seed)


@SEEDS
def test_kip144_05_at_a_broker_there_is_a_wait_after_a_good_connection_too(seed: int) -> None:
    async def test(stage: Stage) -> None:
        for _ in range(5):
            testing.network().reset("localhost")
            await stage.ended(await stage.send())
        assert len(waits(stage.broker)) == 5
        assert all(within([wait], STEPS[:1]) for wait in waits(stage.broker)), waits(stage.broker)

    on_stage(test, ONE_CONNECTION, seed=seed)


@SEEDS
def test_kip144_06_at_two_brokers_the_failures_of_one_are_not_the_others(seed: int) -> None:
    async def test(stage: Stage) -> None:
        await asyncio.sleep(4)
        assert waits(stage.broker, 1)[-1] > 300
        before = len(waits(stage.broker, 2))
        for _ in range(3):
            testing.network().reset(stage.broker.brokers[2])
            await stage.ended(await stage.send(b"two", partition=led_by(stage.broker, 2)))
        found = waits(stage.broker, 2)[before:]
        assert len(found) == 3
        assert all(within([wait], STEPS[:1]) for wait in found), found

    lost(test, seed=seed, broker_config=TWO_BROKERS)


@pytest.mark.parametrize(
    ("given", "constant"),
    [
        pytest.param({"reconnect.backoff.ms": 200}, 200, id="07 the base set alone"),
        pytest.param({"reconnect.backoff.ms": 500, "reconnect.backoff.max.ms": 200}, 200, id="08 a maximum below it"),
    ],
)
def test_kip144_07_and_08_at_a_broker_a_constant_has_no_jitter(given: dict[str, str | int], constant: int) -> None:
    async def test(stage: Stage) -> None:
        await asyncio.sleep(2)
        found = waits(stage.broker)
        assert len(found) >= 8
        assert all(constant <= wait <= constant + SLACK_MS for wait in found), found

    lost(test, given=given)


def test_kip144_09_at_a_broker_jitter_is_drawn_once_a_disconnect_and_even() -> None:
    third: list[float] = []

    async def test(stage: Stage) -> None:
        await asyncio.sleep(0.7)
        third.append(waits(stage.broker)[2])

    for seed in range(40):
        lost(test, seed=seed)
    assert all(160 <= wait <= 240 + SLACK_MS for wait in third)
    assert min(third) < 170
    assert max(third) > 230
    assert abs(mean(third) - 200) < 12  # the mean of 40 draws with a deviation of 23 is off by 3.7: three times that


def test_kip144_10_at_a_broker_that_is_silent_one_connection_is_pending_and_no_more() -> None:
    async def test(stage: Stage) -> None:
        opened = len(stage.broker.journal.events(kind="connection-opened"))
        await asyncio.sleep(4)
        assert len(stage.broker.journal.events(kind="connection-opened")) == opened + 1
        assert testing.network().connections("localhost") == 1

    lost(test, SilentConnections(), given={"request.timeout.ms": 5000})


def test_kip144_11_at_two_brokers_a_connection_that_was_closed_is_made_again_for_a_record_and_not_before() -> None:
    async def test(stage: Stage) -> None:
        there = led_by(stage.broker, 2)
        await stage.ended(await stage.send(partition=led_by(stage.broker, 1)), await stage.send(partition=there))
        testing.network().reset(stage.broker.brokers[2])
        await asyncio.sleep(60)
        assert waits(stage.broker, 2) == [], "metadata is asked of the one that is connected"
        await stage.ended(await stage.send(partition=there))
        (wait,) = waits(stage.broker, 2)
        assert wait >= 60_000
        assert waits(stage.broker, 1) == []

    config = {**ONE_CONNECTION, "metadata.max.age.ms": 3_600_000}
    on_stage(test, config, broker_config=TWO_BROKERS)


@SEEDS
def test_kip144_12_at_a_broker_an_authentication_that_fails_counts_twice(seed: int) -> None:
    async def main() -> list[float]:
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
            return waits(broker)

    found = testing.run(main(), seed=seed)
    assert within(found, [100, 400, 1000]), found


def test_kip144_13_at_a_broker_that_is_down_the_client_goes_back_to_bootstrap() -> None:
    async def test(stage: Stage) -> None:
        stage.broker.faults.add(AT_THE_DOOR)
        testing.network().reset("localhost")
        sent = await stage.send()
        await asyncio.sleep(3)
        first, second, *others = waits(stage.broker)
        assert within([first], STEPS[:1])
        assert second < 0.8 * STEPS[1], "it does not double: it is another connection, of the bootstrap address"
        assert within(others, STEPS[1:4]), others
        stage.broker.faults.clear()
        await stage.ended(sent)
        assert stage.ends[b"v"].error is None

    on_stage(test)
