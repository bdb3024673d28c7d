"""The reference consumer passes the same tests on our broker in virtual time and on any other broker in real time.

`python -m tests.client_against HOST:PORT` runs the tests on another broker. They use no faults and no journal.
"""

import asyncio
import re

import pytest

from sluice.client import consumer as api
from tests.support.place import Place, numbers, polling, until


class TestConsumer:
    async def test_positions(self, place: Place) -> None:
        await place.create(2)
        await place.send(*numbers(10))
        async with place.consumer(max_poll_records=4) as consumer:
            consumer.assign([place[0], place[1]])
            assert await place.read(consumer, 4) == numbers(4)
            assert await consumer.position(place[0]) == 4
            consumer.seek(place[0], 8)
            assert await place.read(consumer, 2) == numbers(2, 8)
            assert consumer.current_lag(place[0]) == 0
            consumer.seek_to_beginning([place[0]])
            assert await consumer.position(place[0]) == 0
            consumer.seek_to_end([place[0]])
            assert await consumer.position(place[0]) == 10
            consumer.pause([place[0]])
            consumer.seek(place[0], 0)
            assert await consumer.poll(300) == []
            consumer.resume([place[0]])
            assert await place.read(consumer, 4) == numbers(4)

    async def test_partitions_and_offsets_of_a_topic(self, place: Place) -> None:
        await place.create(2)
        async with place.producer() as producer:
            for number in range(5):
                await (await producer.send(place.topic, b"v", partition=0, timestamp_ms=1000 + number))
        async with place.consumer() as consumer:
            assert list(await consumer.partitions_for(place.topic)) == [0, 1]
            assert await consumer.beginning_offsets([place[0], place[1]]) == {place[0]: 0, place[1]: 0}
            assert await consumer.end_offsets([place[0], place[1]]) == {place[0]: 5, place[1]: 0}
            found = await consumer.offsets_for_times({place[0]: 1003, place[1]: 1003})
            assert {one: at and at.offset for one, at in found.items()} == {place[0]: 3, place[1]: None}

    async def test_auto_offset_reset(self, place: Place) -> None:
        await place.create()
        await place.send(*numbers(3))
        async with place.consumer(auto_offset_reset="latest") as consumer:
            consumer.assign([place[0]])
            assert await consumer.position(place[0]) == 3
            await place.send(b"3")
            assert await place.read(consumer, 1) == [b"3"]
            consumer.seek(place[0], 100)
            assert await consumer.poll(1000) == []
            assert await consumer.position(place[0]) == 4, "an offset out of range applies the reset policy"
        async with place.consumer(auto_offset_reset="none") as consumer:
            consumer.assign([place[0]])
            with pytest.raises(api.NoOffsetForPartitionError):
                await consumer.poll(5000)
            consumer.seek(place[0], 100)
            with pytest.raises(api.OffsetOutOfRangeError):
                await place.read(consumer, 1)

    async def test_large_record_is_returned_despite_the_fetch_limits(self, place: Place) -> None:
        await place.create()
        await place.send(bytes(300_000), b"next", linger_ms=0, batch_size=1)
        async with place.consumer(max_partition_fetch_bytes=1000, fetch_max_bytes=1000) as consumer:
            consumer.assign([place[0]])
            assert [len(value or b"") for value in await place.read(consumer, 2)] == [300_000, 4]


class TestGroups:
    @pytest.mark.parametrize("assignor", ["range", "roundrobin", "cooperative-sticky"])
    async def test_members_share_partitions_and_take_over(self, place: Place, assignor: str) -> None:
        await place.create(4)
        config: dict[str, str | int] = {"partition_assignment_strategy": assignor, "heartbeat_interval_ms": 500}
        async with polling(place, **config) as one:
            await until(lambda: len(one.assignment()) == 4)
            async with polling(place, **config) as two:
                await until(lambda: len(one.assignment()) == len(two.assignment()) == 2)
                assert one.assignment() | two.assignment() == {place[number] for number in range(4)}
            await until(lambda: len(one.assignment()) == 4)

    async def test_next_member_starts_at_the_committed_offset(self, place: Place) -> None:
        await place.create()
        await place.send(*numbers(6))
        config: dict[str, str | int] = {"group_id": place.group, "enable_auto_commit": "false"}
        async with place.consumer(**config, max_poll_records=4) as consumer:
            consumer.subscribe([place.topic])
            assert await place.read(consumer, 4) == numbers(4)
            await consumer.commit()
            await consumer.commit({place[0]: api.OffsetAndMetadata(3, "mine")})
            assert (await consumer.committed([place[0]]))[place[0]] == api.OffsetAndMetadata(3, "mine")
        async with place.consumer(**config) as consumer:
            consumer.subscribe(re.compile(re.escape(place.topic)))
            assert await place.read(consumer, 3) == numbers(3, 3)

    async def test_static_member_keeps_its_partitions_after_a_restart(self, place: Place) -> None:
        await place.create(2)
        generations = []
        for _ in range(2):
            async with polling(place, group_instance_id="i") as member:
                await until(lambda member=member: len(member.assignment()) == 2)  # type: ignore[misc]
                generations.append(member.group_metadata().generation_id)
        assert generations[0] == generations[1]

    async def test_member_that_does_not_poll_is_removed(self, place: Place) -> None:
        await place.create()
        timeouts: dict[str, str | int] = {"max_poll_interval_ms": 6000, "session_timeout_ms": 6000}
        async with place.consumer(group_id=place.group, enable_auto_commit="false", **timeouts) as consumer:
            consumer.subscribe([place.topic])
            while not consumer.assignment():
                await consumer.poll(500)
            await asyncio.sleep(8)
            with pytest.raises(api.CommitFailedError):
                await consumer.commit({place[0]: api.OffsetAndMetadata(0)})
            await consumer.poll(500)
            while not consumer.assignment():
                await consumer.poll(500)
