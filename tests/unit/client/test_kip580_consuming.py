"""KIP-580, retry backoff: the testable statements that are about consuming, in virtual time with brokers of ours. Each
test is one of them, by its number.
"""

import pytest

from sluice.broker.faults.actions.error import Error
from tests.support.consuming import P0, Reading, gaps, reading, within

# Metadata goes first, where it is due at about the same time: so much later may the question leave.
METADATA_FIRST_MS = 23


@pytest.mark.parametrize("seed", range(3))
def test_kip580_13_asking_for_offsets_to_reset_waits_the_same_each_time(seed: int) -> None:
    async def test(stage: Reading) -> None:
        await stage.produce(b"v")
        stage.broker.faults.add(Error("NOT_LEADER_OR_FOLLOWER"), api="ListOffsets", times=6)
        stage.consumer.assign([P0])
        assert await stage.read(1) == [b"v"]
        found = gaps(stage.asked_at_ms("ListOffsets"))
        assert len(found) == 6
        assert all(100 <= gap < 100 + METADATA_FIRST_MS for gap in found), found

    reading(test, seed=seed)


def test_kip580_13_as_the_text_has_it_it_grows() -> None:
    async def test(stage: Reading) -> None:
        await stage.produce(b"v")
        stage.broker.faults.add(Error("NOT_LEADER_OR_FOLLOWER"), api="ListOffsets", times=5)
        stage.consumer.assign([P0])
        assert await stage.read(1) == [b"v"]
        found = gaps(stage.asked_at_ms("ListOffsets"))
        assert within(found, [100, 200, 400, 800], METADATA_FIRST_MS), found

    reading(test, profile="kip")


def test_a_fetch_that_failed_waits_for_metadata() -> None:
    async def test(stage: Reading) -> None:
        await stage.produce(b"v")
        stage.consumer.assign([P0])
        await stage.read(1)
        stage.broker.faults.add(Error("NOT_LEADER_OR_FOLLOWER"), api="Fetch", times=5)
        await stage.produce(b"w")
        assert await stage.read(1) == [b"w"], "to which the answer was waiting before"
        await stage.produce(b"x")
        assert await stage.read(1) == [b"x"]
        failed = [request for request in stage.asked("Fetch") if request.error_codes]
        times = [request.received_ns / 1e6 for request in failed]
        assert len(times) == 5
        found = gaps(times)
        assert all(gap >= 80 for gap in found), found
        assert found[3] > found[0], "metadata that teaches nothing is asked for ever later"

    reading(test)


def test_nothing_is_asked_of_a_broker_that_is_gone() -> None:
    async def test(stage: Reading) -> None:
        await stage.produce(b"v")
        stage.consumer.assign([P0])
        await stage.read(1)
        await stage.broker.cluster.stop(1)
        assert await stage.consumer.poll(10_000) == []
        await stage.broker.cluster.start(1)
        await stage.produce(b"w")
        assert await stage.read(1) == [b"w"]

    reading(test)
