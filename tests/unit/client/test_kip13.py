"""KIP-13, the client's side: who is told a throttle time waits for so long, and can say how long that was. Against the
broker with quotas, in virtual time.

The arithmetic: with a quota of 1,000 bytes/s an idle client has ten seconds' worth, 10,000 bytes, at once; each byte
more is a millisecond.
"""

import asyncio
from itertools import pairwise

import pytest

from sluice.broker.faults.actions.throttle import Throttle
from sluice.journal_events import Request
from tests.support.consuming import P0, TOPIC, Reading, Settings, reading
from tests.support.producing import Stage, on_stage

QUOTA = 1000
PRODUCER_QUOTA: dict[str, str | float] = {"quota.producer.default": QUOTA}
SLACK_MS = 3.0
# A batch that is more than an idle client may have would be refused for ever.
EACH_ALONE: Settings = {"batch.size": 1}
NOTHING = {"produce-throttle-time-avg": 0.0, "produce-throttle-time-max": 0.0}


def pauses(requests: list[Request]) -> list[tuple[float, int]]:
    """How long it took from each answer to the next request of the same connection, and what the answer told."""
    assert len({request.connection for request in requests}) == 1
    return [
        ((after.received_ns - (before.written_ns or 0)) / 1e6, before.throttle_time_ms)
        for before, after in pairwise(requests)
    ]


def test_kip13_20_a_producer_that_is_throttled_sends_nothing_until_it_is_over() -> None:
    async def test(stage: Stage) -> None:
        for number in range(6):
            await stage.ended(await stage.send(b"%d" % number * 4000))
        throttled = [pause for pause in pauses(stage.produced) if pause[1] > 0]
        assert len(throttled) >= 3, "the test is about those"
        assert all(waited_ms >= told_ms for waited_ms, told_ms in throttled)
        assert all(waited_ms <= told_ms + SLACK_MS for waited_ms, told_ms in throttled)

    on_stage(test, broker_config=PRODUCER_QUOTA)


def test_kip13_20_a_consumer_that_is_throttled_asks_for_nothing_until_it_is_over() -> None:
    async def test(stage: Reading) -> None:
        await stage.produce(*[bytes(4000)] * 8, config=EACH_ALONE)
        stage.broker.quota(fetch=QUOTA)
        stage.consumer.assign([P0])
        assert len(await stage.read(8, within_ms=600_000)) == 8, "all come, later"
        throttled = [pause for pause in pauses(stage.asked("Fetch")) if pause[1] > 0]
        assert len(throttled) >= 2, "the test is about those"
        assert all(told_ms <= waited_ms <= told_ms + SLACK_MS for waited_ms, told_ms in throttled)

    reading(test, {"max.partition.fetch.bytes": 1})


class TestMetrics:
    def test_of_a_producer_are_0_without_a_throttle(self) -> None:
        async def test(stage: Stage) -> None:
            await stage.ended(await stage.send())
            assert stage.producer.metrics() == NOTHING

        on_stage(test)

    def test_of_a_producer_tell_what_the_quota_made_it_wait(self) -> None:
        async def test(stage: Stage) -> None:
            for number in range(4):
                await stage.ended(await stage.send(b"%d" % number * 5000))
            told = [request.throttle_time_ms for request in stage.produced]
            metrics = stage.producer.metrics()
            assert metrics["produce-throttle-time-max"] == max(told) > 0
            assert 0 < metrics["produce-throttle-time-avg"] <= max(told), "answers that were not throttled count too"

        on_stage(test, broker_config=PRODUCER_QUOTA)

    def test_of_a_producer_are_0_again_when_the_window_has_passed(self) -> None:
        async def test(stage: Stage) -> None:
            await stage.ended(await stage.send(bytes(12_000)))
            assert stage.producer.metrics()["produce-throttle-time-max"] > 0
            await asyncio.sleep(1.9)
            assert stage.producer.metrics()["produce-throttle-time-max"] > 0
            await asyncio.sleep(0.1)
            assert stage.producer.metrics() == NOTHING

        config: dict[str, str | int] = {"metrics.num.samples": 2, "metrics.sample.window.ms": 1000}
        on_stage(test, config, broker_config=PRODUCER_QUOTA)

    def test_tell_nodes_apart(self) -> None:
        async def test(stage: Stage) -> None:
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

        on_stage(test, broker_config={"sluice.brokers": 2, "num.partitions": 2})

    @pytest.mark.parametrize("is_throttled", [True, False], ids=["with a quota", "without"])
    def test_of_a_consumer_tell_what_the_quota_made_it_wait(self, is_throttled: bool) -> None:
        async def test(stage: Reading) -> None:
            await stage.produce(*[bytes(4000)] * 6, config=EACH_ALONE)
            if is_throttled:
                stage.broker.quota(fetch=QUOTA)
            stage.consumer.assign([P0])
            assert len(await stage.read(6, within_ms=600_000)) == 6
            most = max(request.throttle_time_ms for request in stage.asked("Fetch"))
            assert (most > 0) is is_throttled
            metrics = stage.consumer.metrics()
            assert metrics["fetch-throttle-time-max"] == most
            assert (0 < metrics["fetch-throttle-time-avg"] <= most) is is_throttled

        reading(test, {"max.partition.fetch.bytes": 1})
