"""KIP-580, retry backoff: the testable statements about producing, in virtual time with real brokers.

Each test name has the number of its statement.
"""

import asyncio
from random import Random

import pytest

from sluice import Broker
from sluice.broker.faults.actions.error_response import Error
from sluice.client.producer import Producer
from tests.support.client_network import Middle
from tests.support.consuming import gaps, within
from tests.support.producing import Stage, producing

STEPS = [100, 200, 400, 800, 1000, 1000]
SLACK_MS = 2
RETRIED = Error("NOT_ENOUGH_REPLICAS")


def times_of_batches(stage: Stage) -> list[list[float]]:
    """Return the send times of each batch; batches in order of their first attempt."""
    by_batch: dict[str, list[float]] = {}
    for request, at_ms in zip(stage.produced, stage.produced_at_ms, strict=True):
        for key in request.attempt_key.split(","):
            by_batch.setdefault(key, []).append(at_ms)
    return list(by_batch.values())


@pytest.mark.parametrize("seed", range(3))
async def test_kip580_01_batch_retry_backoff_doubles(seed: int) -> None:
    async with producing({"delivery.timeout.ms": 6000, "request.timeout.ms": 2000}, seed=seed) as stage:
        stage.broker.faults.add(RETRIED, api="Produce")
        await stage.ended(await stage.send())
        (times,) = times_of_batches(stage)
        assert within(gaps(times), STEPS, SLACK_MS), gaps(times)


PATIENT: dict[str, str | int] = {"delivery.timeout.ms": 20_000, "request.timeout.ms": 2000}


async def retries_for_20_s(config: dict[str, str | int], seed: int = 0, random: Random | None = None) -> list[float]:
    """Return the send times of a record that is rejected until it expires."""
    async with producing({**PATIENT, **config}, seed=seed, random=random) as stage:
        stage.broker.faults.add(RETRIED, api="Produce")
        await stage.ended(await stage.send())
        (times,) = times_of_batches(stage)
        return times


@pytest.mark.parametrize("seed", range(3))
async def test_kip580_02_batch_backoff_at_the_cap_is_800_to_1000_ms(seed: int) -> None:
    at_the_cap = gaps(await retries_for_20_s({}, seed))[4:]
    assert len(at_the_cap) >= 15
    assert all(800 <= gap <= 1002 for gap in at_the_cap), at_the_cap


WITHOUT_JITTER = {"03 base above the maximum": (500, 200), "04 equal base and maximum": (200, 200)}


@pytest.mark.parametrize(("base", "maximum"), WITHOUT_JITTER.values(), ids=WITHOUT_JITTER)
async def test_kip580_03_and_04_batch_waits_the_maximum_without_jitter(base: int, maximum: int) -> None:
    found = gaps(await retries_for_20_s({"retry.backoff.ms": base, "retry.backoff.max.ms": maximum}))
    assert len(found) > 90
    assert all(maximum <= gap <= maximum + 1 for gap in found), found


async def test_kip580_05_batches_of_two_partitions_back_off_independently() -> None:
    config: dict[str, str | int] = {"delivery.timeout.ms": 6000, "request.timeout.ms": 2000}
    async with producing(config, broker_config={"num.partitions": 2}) as stage:
        stage.broker.faults.add(RETRIED, api="Produce")
        first = await stage.send(b"one", partition=0)
        await asyncio.sleep(1.6)
        second = await stage.send(b"two", partition=1)
        await stage.ended(first, second)
        one, two = times_of_batches(stage)
        assert two[0] >= 1600
        assert within(gaps(one), STEPS[:5], SLACK_MS), gaps(one)
        assert within(gaps(two), STEPS[:5], SLACK_MS), gaps(two)


async def test_kip580_06_success_resets_the_backoff() -> None:
    async with producing() as stage:
        stage.broker.faults.add(RETRIED, api="Produce", times=4)
        await stage.ended(await stage.send(b"one"))
        stage.broker.faults.add(RETRIED, api="Produce", times=1)
        await stage.ended(await stage.send(b"two"))
        one, two = times_of_batches(stage)
        assert within(gaps(one), STEPS[:4], SLACK_MS), gaps(one)
        assert within(gaps(two), STEPS[:1], SLACK_MS), gaps(two)
        assert stage.log() == [b"one", b"two"]


async def test_kip580_07_newer_leader_is_tried_at_once() -> None:
    async with producing(broker_config={"sluice.brokers": 2, "default.replication.factor": 2}) as stage:
        leader = stage.broker.cluster.partition("t", 0).leader
        await stage.broker.cluster.move_leader("t", 0, 3 - leader)
        await stage.ended(await stage.send())
        old, new = stage.produced
        assert (old.broker, new.broker) == (leader, 3 - leader)
        (gap,) = gaps(stage.produced_at_ms)
        assert gap < 50, "no backoff, except for a new connection"


async def test_kip580_16_batches_of_two_producers_are_not_synchronized() -> None:
    one, two = await retries_for_20_s({}, 1), await retries_for_20_s({}, 2)
    assert all(abs(first - second) > 5 for first, second in zip(one[3:10], two[3:10], strict=True)), (one, two)


def in_the_first_second(times: list[float]) -> int:
    return sum(at_ms - times[0] < 1000 for at_ms in times)


@pytest.mark.parametrize("seed", range(5))
async def test_kip580_17_batch_is_tried_four_times_in_the_first_second(seed: int) -> None:
    assert in_the_first_second(await retries_for_20_s({}, seed)) in (4, 5)


async def test_kip580_17_example_has_4_attempts_per_second_instead_of_10_with_a_constant_100_ms() -> None:
    growing = await retries_for_20_s({}, random=Middle(0))
    constant = await retries_for_20_s({"retry.backoff.max.ms": 100})
    assert gaps(growing)[:6] == [100, 200, 400, 800, 1000, 1000]
    assert in_the_first_second(growing) == 4
    assert in_the_first_second(constant) == 10


async def test_kip580_14_init_producer_id_retries_wait_the_same_each_time() -> None:
    async with Broker() as broker:
        broker.faults.add(Error("COORDINATOR_LOAD_IN_PROGRESS"), api="InitProducerId", times=6)
        async with Producer({"bootstrap.servers": broker.bootstrap}, random=Random(0)) as producer:
            await (await producer.send("t", b"v"))
        found = gaps([request.received_ns / 1e6 for request in broker.journal.requests(api="InitProducerId")])
    assert len(found) == 6
    assert all(100 <= gap < 103 for gap in found), found
