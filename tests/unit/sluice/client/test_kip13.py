"""KIP-13, client side: a throttled client waits for the throttle time and reports it in metrics.

Against a broker with quotas, in virtual time. With a quota of 1,000 bytes/s an idle client may send 10,000 bytes
at once (ten seconds' worth); each further byte costs one millisecond.
"""

import asyncio
from itertools import pairwise

import pytest

from sluice.broker.faults.actions.throttle import Throttle
from sluice.journal_events import Request
from tests.support.consuming import P0, TOPIC, Settings, reading
from tests.support.producing import producing

QUOTA = 1000
PRODUCER_QUOTA: dict[str, str | float] = {"quota.producer.default": QUOTA}
SLACK_MS = 3.0
# A batch larger than an idle client's allowance would never be accepted.
EACH_ALONE: Settings = {"batch.size": 1}
NOTHING = {"produce-throttle-time-avg": 0.0, "produce-throttle-time-max": 0.0}


def pauses(requests: list[Request]) -> list[tuple[float, int]]:
    """Return the gaps between each response and the next request of its connection, and the throttle times."""
    assert len({request.connection for request in requests}) == 1
    return [
        ((after.received_ns - (before.written_ns or 0)) / 1e6, before.throttle_time_ms)
        for before, after in pairwise(requests)
    ]


async def test_kip13_20_throttled_producer_sends_nothing_until_the_throttle_ends() -> None:
    async with producing(broker_config=PRODUCER_QUOTA) as stage:
        for number in range(6):
            await stage.ended(await stage.send(b"%d" % number * 4000))
        throttled = [pause for pause in pauses(stage.produced) if pause[1] > 0]
        assert len(throttled) >= 3, "some responses are throttled"
        assert all(throttle_ms <= waited_ms <= throttle_ms + SLACK_MS for waited_ms, throttle_ms in throttled)


async def test_kip13_20_throttled_consumer_fetches_nothing_until_the_throttle_ends() -> None:
    async with reading({"max.partition.fetch.bytes": 1}) as stage:
        await stage.produce(*[bytes(4000)] * 8, config=EACH_ALONE)
        stage.broker.quota(fetch=QUOTA)
        stage.consumer.assign([P0])
        assert len(await stage.read(8, within_ms=600_000)) == 8, "all records arrive, later"
        throttled = [pause for pause in pauses(stage.requests("Fetch")) if pause[1] > 0]
        assert len(throttled) >= 2, "some responses are throttled"
        assert all(throttle_ms <= waited_ms <= throttle_ms + SLACK_MS for waited_ms, throttle_ms in throttled)


class TestMetrics:
    async def test_producer_metrics_are_0_without_a_throttle(self) -> None:
        async with producing() as stage:
            await stage.ended(await stage.send())
            assert stage.producer.metrics() == NOTHING

    async def test_producer_metrics_equal_the_throttle_times(self) -> None:
        async with producing(broker_config=PRODUCER_QUOTA) as stage:
            for number in range(4):
                await stage.ended(await stage.send(b"%d" % number * 5000))
            throttles = [request.throttle_time_ms for request in stage.produced]
            metrics = stage.producer.metrics()
            assert metrics["produce-throttle-time-max"] == max(throttles) > 0
            assert 0 < metrics["produce-throttle-time-avg"] <= max(throttles), "unthrottled responses count too"

    async def test_producer_metrics_return_to_0_after_the_window(self) -> None:
        config: dict[str, str | int] = {"metrics.num.samples": 2, "metrics.sample.window.ms": 1000}
        async with producing(config, broker_config=PRODUCER_QUOTA) as stage:
            await stage.ended(await stage.send(bytes(12_000)))
            assert stage.producer.metrics()["produce-throttle-time-max"] > 0
            await asyncio.sleep(1.9)
            assert stage.producer.metrics()["produce-throttle-time-max"] > 0
            await asyncio.sleep(0.1)
            assert stage.producer.metrics() == NOTHING

    async def test_metrics_are_separate_per_node(self) -> None:
        async with producing(broker_config={"sluice.brokers": 2, "num.partitions": 2}) as stage:
            partition = stage.broker.cluster.partition(TOPIC, 0)
            throttled, other = partition.leader, 3 - partition.leader
            stage.broker.faults.add(Throttle(throttle_time_ms=700), broker=throttled, api="Produce", times=1)
            await stage.ended(await stage.send(partition=0), await stage.send(b"w", partition=1))
            assert stage.producer.metrics(throttled)["produce-throttle-time-max"] == 700
            assert stage.producer.metrics(other) == NOTHING
            assert stage.producer.metrics()["produce-throttle-time-max"] == 700
            assert (
                stage.producer.metrics()["produce-throttle-time-avg"]
                < stage.producer.metrics(throttled)["produce-throttle-time-avg"]
            )

    @pytest.mark.parametrize("is_throttled", [True, False], ids=["with a quota", "without"])
    async def test_consumer_metrics_equal_the_throttle_times(self, is_throttled: bool) -> None:
        async with reading({"max.partition.fetch.bytes": 1}) as stage:
            await stage.produce(*[bytes(4000)] * 6, config=EACH_ALONE)
            if is_throttled:
                stage.broker.quota(fetch=QUOTA)
            stage.consumer.assign([P0])
            assert len(await stage.read(6, within_ms=600_000)) == 6
            most = max(request.throttle_time_ms for request in stage.requests("Fetch"))
            assert (most > 0) is is_throttled
            metrics = stage.consumer.metrics()
            assert metrics["fetch-throttle-time-max"] == most
            assert (0 < metrics["fetch-throttle-time-avg"] <= most) is is_throttled
