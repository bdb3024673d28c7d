"""KIP-580, retry backoff: the testable statements about consuming, in virtual time with real brokers.

Each test name has the number of its statement.
"""

import asyncio
from itertools import pairwise

import pytest

from sluice.broker.faults.actions.error_response import Error
from sluice.client.consumer import OffsetAndMetadata
from tests.support.consuming import P0, Settings, gaps, reading, within

# If metadata is due at the same time, it is requested first, and ListOffsets after its response.
METADATA_FIRST_MS = 2


@pytest.mark.parametrize("seed", range(3))
async def test_kip580_13_offset_reset_retries_wait_the_same_each_time(seed: int) -> None:
    async with reading(seed=seed) as stage:
        await stage.produce(b"v")
        stage.broker.faults.add(Error("NOT_LEADER_OR_FOLLOWER"), api="ListOffsets", times=6)
        stage.consumer.assign([P0])
        assert await stage.read(1) == [b"v"]
        found = gaps(stage.request_times_ms("ListOffsets"))
        assert len(found) == 6
        assert all(100 <= gap < 100 + METADATA_FIRST_MS for gap in found), found


async def test_kip580_13_with_the_kip_profile_the_backoff_grows() -> None:
    async with reading(profile="kip") as stage:
        await stage.produce(b"v")
        stage.broker.faults.add(Error("NOT_LEADER_OR_FOLLOWER"), api="ListOffsets", times=5)
        stage.consumer.assign([P0])
        assert await stage.read(1) == [b"v"]
        found = gaps(stage.request_times_ms("ListOffsets"))
        assert within(found, [100, 200, 400, 800], METADATA_FIRST_MS), found


async def test_failed_fetch_waits_for_metadata() -> None:
    async with reading() as stage:
        await stage.produce(b"v")
        stage.consumer.assign([P0])
        await stage.read(1)
        stage.broker.faults.add(Error("NOT_LEADER_OR_FOLLOWER"), api="Fetch", times=5)
        await stage.produce(b"w")
        assert await stage.read(1) == [b"w"], "returned by the fetch pending before the fault"
        await stage.deliver(b"x")
        failed = [request for request in stage.requests("Fetch") if request.error_codes]
        times = [request.received_ns / 1e6 for request in failed]
        assert len(times) == 5
        found = gaps(times)
        assert all(gap >= 80 for gap in found), found
        assert found[3] > found[0], "metadata without news is requested with growing backoff"


async def test_no_request_is_sent_to_a_removed_broker() -> None:
    async with reading() as stage:
        await stage.produce(b"v")
        stage.consumer.assign([P0])
        await stage.read(1)
        await stage.broker.cluster.stop(1)
        assert await stage.consumer.poll(10_000) == []
        await stage.broker.cluster.start(1)
        await stage.deliver(b"w")


STEPS = [100, 200, 400, 800, 1000]
MEMBER: Settings = {"group.id": "g", "heartbeat.interval.ms": 1000}
AT_ONCE: dict[str, str | float] = {"group.initial.rebalance.delay.ms": 0}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("code", ["COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS"])
async def test_kip580_10_coordinator_lookup_backoff_doubles(seed: int, code: str) -> None:
    async with reading(MEMBER, broker_config=AT_ONCE, seed=seed) as stage:
        stage.broker.faults.add(Error(code), api="FindCoordinator", times=5)
        stage.consumer.subscribe(["t"])
        await stage.deliver(b"v")
        times = stage.request_times_ms("FindCoordinator")
        # Each failure also waits for fresh metadata; the longer of both backoffs counts.
        assert within(gaps(times), STEPS, METADATA_FIRST_MS + 200), gaps(times)
        requested_ms = stage.request_times_ms("Metadata")
        assert all(any(one <= at <= two for at in requested_ms) for one, two in pairwise(times)), (
            "fresh metadata between the attempts"
        )


@pytest.mark.parametrize("seed", range(3))
async def test_kip580_11_failed_heartbeats_double_their_backoff(seed: int) -> None:
    async with reading(MEMBER, broker_config=AT_ONCE, seed=seed) as stage:
        stage.consumer.subscribe(["t"])
        await stage.produce(b"v")
        await stage.read(1)
        await asyncio.sleep(2.5)
        before = len(stage.requests("Heartbeat"))
        stage.broker.faults.add(Error("COORDINATOR_LOAD_IN_PROGRESS"), api="Heartbeat", times=5)
        await asyncio.sleep(6)
        found = gaps(stage.request_times_ms("Heartbeat")[before : before + 6])
        assert within(found, STEPS, 100), found


@pytest.mark.parametrize("api", ["JoinGroup", "SyncGroup"])
async def test_kip580_12_join_retries_wait_the_same_each_time(api: str) -> None:
    async with reading(MEMBER, broker_config=AT_ONCE) as stage:
        stage.broker.faults.add(Error("COORDINATOR_LOAD_IN_PROGRESS"), api=api, times=6)
        stage.consumer.subscribe(["t"])
        await stage.deliver(b"v")
        failed = [request.received_ns / 1e6 for request in stage.requests(api) if 14 in request.error_codes]
        found = gaps(failed)
        assert len(found) == 5
        assert all(99 <= gap <= 160 for gap in found), found


async def test_kip580_12_unknown_member_rejoins_at_once() -> None:
    async with reading(MEMBER, broker_config=AT_ONCE) as stage:
        stage.broker.faults.add(Error("UNKNOWN_MEMBER_ID"), api="JoinGroup", times=3)
        stage.consumer.subscribe(["t"])
        await stage.deliver(b"v")
        times = stage.request_times_ms("JoinGroup")
        assert times[3] - times[0] < 50, times


@pytest.mark.parametrize("api", ["OffsetCommit", "OffsetFetch"])
async def test_offset_commit_and_fetch_backoffs_double(api: str) -> None:
    async with reading({**MEMBER, "enable.auto.commit": "false"}, broker_config=AT_ONCE) as stage:
        stage.broker.faults.add(Error("COORDINATOR_LOAD_IN_PROGRESS"), api=api, times=5)
        stage.consumer.assign([P0])
        if api == "OffsetCommit":
            await stage.consumer.commit({P0: OffsetAndMetadata(1)})
        else:
            assert await stage.consumer.committed([P0]) == {P0: None}
        found = gaps(stage.request_times_ms(api))
        assert within(found, STEPS), found
