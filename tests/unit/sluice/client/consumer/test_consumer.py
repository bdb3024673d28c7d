"""The consumer with manually assigned partitions, against a real broker in virtual time."""

import asyncio
from contextlib import suppress
from random import Random

import pytest
from aiokafka import AIOKafkaProducer

from sluice import Broker
from sluice.broker.faults.actions.error_response import Error
from sluice.broker.faults.actions.records import CorruptRecords
from sluice.broker.faults.actions.throttle import Throttle
from sluice.client import consumer as api
from sluice.client import errors
from sluice.client.errors import KafkaException, TimeoutException
from sluice.client.producer import Producer
from tests.support.consuming import P0, TOPIC, Reading, gaps, reading

THREE: dict[str, str | float] = {"num.partitions": 3}


def numbers(count: int, first: int = 0) -> list[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


async def produce_and_assign(stage: Reading, count: int) -> None:
    await stage.produce(*numbers(count))
    stage.consumer.assign([P0])


class TestRecords:
    @pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
    async def test_records_arrive_in_order_with_every_compression(self, compression: str) -> None:
        async with reading() as stage:
            await stage.produce(*numbers(1200), config={"compression.type": compression, "batch.size": 3000})
            stage.consumer.assign([P0])
            assert await stage.read(1200) == numbers(1200)

    async def test_poll_returns_at_most_max_poll_records(self) -> None:
        async with reading({"max.poll.records": 10}) as stage:
            await produce_and_assign(stage, 25)
            sizes = [len(await stage.consumer.poll(1000)) for _ in range(3)]
            assert sizes == [10, 10, 5]

    async def test_poll_that_is_cancelled_loses_no_records(self) -> None:
        async with reading({"max.poll.records": 1}) as stage:
            await produce_and_assign(stage, 30)
            returned = await stage.read(1)
            for steps in range(1, 12):
                poll = asyncio.create_task(stage.consumer.poll(1000))
                for _ in range(steps):
                    await asyncio.sleep(0)
                poll.cancel()
                with suppress(asyncio.CancelledError):
                    returned += [record.value for record in await poll]
            assert await stage.consumer.position(P0) == len(returned)

    async def test_records_carry_key_headers_timestamp_and_epoch(self) -> None:
        async with reading() as stage:
            async with Producer({"bootstrap.servers": stage.broker.bootstrap}) as producer:
                await producer.send(TOPIC, None, key=b"k" * 200, timestamp_ms=123, headers=[("a", b"b"), ("c", None)])
            stage.consumer.assign([P0])
            (record,) = await stage.consumer.poll(1000)
            assert (record.key, record.value, record.timestamp) == (b"k" * 200, None, 123)
            assert record.headers == (("a", b"b"), ("c", None))
            assert (record.offset, record.leader_epoch) == (0, 0)

    async def test_records_of_paused_partitions_are_kept(self) -> None:
        async with reading({"max.poll.records": 10}) as stage:
            await produce_and_assign(stage, 30)
            await stage.consumer.poll(1000)
            stage.consumer.pause([P0])
            request = len(stage.requests("Fetch"))
            assert await stage.consumer.poll(1000) == []
            assert stage.consumer.paused() == {P0}
            stage.consumer.resume([P0])
            assert await stage.read(20) == numbers(20, 10)
            assert len(stage.requests("Fetch")) <= request + 1, "buffered records are not fetched again"

    async def test_poll_waits_no_longer_than_its_timeout(self) -> None:
        async with reading() as stage:
            stage.consumer.assign([P0])
            assert await stage.consumer.poll(1234) == []
            assert stage.now_ms == pytest.approx(1234, abs=1)

    async def test_poll_returns_when_records_arrive(self) -> None:
        async with reading() as stage:
            stage.consumer.assign([P0])
            waiting = asyncio.ensure_future(stage.consumer.poll(60_000))
            await asyncio.sleep(5)
            await stage.produce(b"late")
            (record,) = await waiting
            assert record.value == b"late"
            assert stage.now_ms < 5500

    async def test_corrupt_record_raises_until_the_application_seeks_past_it(self) -> None:
        async with reading() as stage:
            await stage.produce(b"good")
            await stage.produce(b"bad")
            await stage.produce(b"better")
            stage.consumer.assign([P0])
            assert await stage.read(3) == [b"good", b"bad", b"better"]
            stage.broker.faults.add(CorruptRecords(), api="Fetch")
            stage.consumer.seek(P0, 1)
            for _ in range(2):
                with pytest.raises(KafkaException, match=r"the next record of t-0, at offset 1, cannot be read"):
                    await stage.consumer.poll(1000)
            stage.broker.faults.clear()
            stage.consumer.seek(P0, 2)
            assert await stage.read(1) == [b"better"]


ISOLATION_LEVELS = [
    ("read_uncommitted", [b"plain", b"kept", b"gone", b"last", b"open"]),
    ("read_committed", [b"plain", b"kept", b"last"]),
]


class TestTransactions:
    @pytest.mark.parametrize(("isolation", "expected"), ISOLATION_LEVELS)
    async def test_transactional_records_follow_the_isolation_level(
        self, isolation: str, expected: list[bytes]
    ) -> None:
        async with reading({"isolation.level": isolation}) as stage:
            await stage.produce(b"plain")
            sender = AIOKafkaProducer(bootstrap_servers=stage.broker.bootstrap, transactional_id="tx")
            await sender.start()
            for value, commits in ((b"kept", True), (b"gone", False), (b"last", True)):
                await sender.begin_transaction()
                await sender.send_and_wait(TOPIC, value, partition=0)
                await (sender.commit_transaction() if commits else sender.abort_transaction())
            await sender.begin_transaction()
            await sender.send_and_wait(TOPIC, b"open", partition=0)
            stage.consumer.assign([P0])
            assert await stage.read(len(expected) + 1, 3000) == expected
            ends = await stage.consumer.end_offsets([P0])
            assert ends == {P0: 7 if isolation == "read_committed" else 8}
            assert stage.consumer.current_lag(P0) == 0
            await sender.abort_transaction()
            await sender.stop()


class TestPositions:
    @pytest.mark.parametrize(("ago", "expected"), [("PT1H30M", [b"old", b"new"]), ("PT30M", [b"new"]), ("PT1S", [])])
    async def test_position_can_start_a_duration_ago(self, ago: str, expected: list[bytes]) -> None:
        async with reading({"auto.offset.reset": f"by_duration:{ago}"}) as stage:
            await stage.produce(b"old")
            await asyncio.sleep(3600)
            await stage.produce(b"new")
            await asyncio.sleep(60)
            stage.consumer.assign([P0])
            assert await stage.read(2, 2000) == expected
            await stage.deliver(b"next")

    async def test_without_a_reset_policy_a_seek_is_required(self) -> None:
        async with reading({"auto.offset.reset": "none"}) as stage:
            await produce_and_assign(stage, 3)
            with pytest.raises(api.NoOffsetForPartitionError, match=r"^no committed offset, .*: t-0; seek first$"):
                await stage.consumer.poll(1000)
            stage.consumer.seek(P0, 1)
            assert await stage.read(2) == numbers(2, 1)
            stage.consumer.seek(P0, 99)
            with pytest.raises(api.OffsetOutOfRangeError, match=r"auto.offset.reset=none: t-0 at 99$") as raised:
                await stage.consumer.poll(1000)
            assert raised.value.offsets == {P0: 99}

    async def test_position_out_of_range_is_reset(self) -> None:
        async with reading() as stage:
            await produce_and_assign(stage, 3)
            stage.consumer.seek(P0, 99)
            assert await stage.read(3) == numbers(3)

    async def test_seek_sets_the_position(self) -> None:
        async with reading() as stage:
            await produce_and_assign(stage, 10)
            assert await stage.read(10) == numbers(10)
            stage.consumer.seek(P0, 7)
            assert await stage.read(3) == numbers(3, 7)
            stage.consumer.seek(P0, api.OffsetAndMetadata(8, "", 0))
            assert await stage.read(2) == numbers(2, 8)
            stage.consumer.seek_to_beginning([P0])
            assert await stage.read(10) == numbers(10)
            stage.consumer.seek_to_end([P0])
            assert await stage.read(1, 2000) == []
            assert await stage.consumer.position(P0) == 10

    async def test_unassigned_partition_has_no_position(self) -> None:
        async with reading() as stage:
            with pytest.raises(api.NoSubscriptionError, match=r"^partition t-0 is not assigned to this consumer$"):
                stage.consumer.seek(P0, 1)
            with pytest.raises(api.NoSubscriptionError, match=r"^nothing to read; subscribe to topics, or assign"):
                await stage.consumer.poll(0)


TWO_BROKERS: dict[str, str | float] = {"sluice.brokers": 2, "default.replication.factor": 2}


class TestLeaders:
    async def test_moved_leader_is_followed(self) -> None:
        async with reading(broker_config=TWO_BROKERS) as stage:
            await produce_and_assign(stage, 3)
            assert await stage.read(3) == numbers(3)
            for number in range(3, 9):
                leader = stage.broker.cluster.partition(TOPIC, 0).leader
                await stage.broker.cluster.move_leader(TOPIC, 0, 3 - leader)
                await stage.produce(b"%d" % number)
                assert await stage.read(1) == [b"%d" % number]

    async def test_new_leader_validates_the_position(self) -> None:
        async with reading(broker_config=TWO_BROKERS) as stage:
            await produce_and_assign(stage, 3)
            await stage.read(3)
            leader = stage.broker.cluster.partition(TOPIC, 0).leader
            await stage.broker.cluster.move_leader(TOPIC, 0, 3 - leader)
            await stage.deliver(b"3")
            assert len(stage.requests("OffsetForLeaderEpoch")) == 1

    @pytest.mark.parametrize("policy", ["earliest", "none"])
    async def test_truncated_log_moves_the_position_back(self, policy: str) -> None:
        async with reading({"auto.offset.reset": policy}, broker_config=TWO_BROKERS) as stage:
            cluster = stage.broker.cluster
            await stage.produce(*numbers(3))
            leader = cluster.partition(TOPIC, 0).leader
            stage.consumer.assign([P0])
            stage.consumer.seek(P0, 0)
            await stage.read(3)
            # A position beyond the log end, as after an unclean election.
            stage.consumer.seek(P0, api.OffsetAndMetadata(7, "", 0))
            await cluster.move_leader(TOPIC, 0, 3 - leader)
            await stage.produce(b"other")
            if policy == "none":
                with pytest.raises(api.LogTruncationError, match=r"t-0 at 7$") as raised:
                    await stage.read(1)
                (one,) = raised.value.truncations
                assert one.divergent == api.OffsetAndMetadata(3, "", 0)
            else:
                assert await stage.read(1) == [b"other"]


class TestSessions:
    async def test_lost_fetch_session_is_restarted(self) -> None:
        async with reading() as stage:
            await produce_and_assign(stage, 3)
            await stage.read(3)
            stage.broker.faults.add(Error("FETCH_SESSION_ID_NOT_FOUND"), api="Fetch", times=2)
            await stage.produce(*numbers(3, 3))
            assert await stage.read(3) == numbers(3, 3)


class TestThrottling:
    async def test_throttle_time_delays_fetches_and_is_counted(self) -> None:
        async with reading() as stage:
            await produce_and_assign(stage, 3)
            await stage.read(3)
            stage.broker.faults.add(Throttle(throttle_time_ms=2000), api="Fetch", times=1)
            await stage.consumer.poll(5000)
            metrics = stage.consumer.metrics()
            assert metrics["fetch-throttle-time-max"] == 2000
            assert 0 < metrics["fetch-throttle-time-avg"] < 2000
            times = stage.request_times_ms("Fetch")
            assert max(gaps(times)) >= 2000

    async def test_throttle_metrics_are_zero_without_throttling(self) -> None:
        async with reading() as stage:
            stage.consumer.assign([P0])
            await stage.consumer.poll(1000)
            assert stage.consumer.metrics() == {"fetch-throttle-time-avg": 0, "fetch-throttle-time-max": 0}


class TestQuestions:
    async def test_query_of_an_unknown_topic_times_out(self) -> None:
        async with reading(broker_config={"auto.create.topics.enable": "false"}) as stage:
            with pytest.raises(TimeoutException, match=r"^topic unknown was not known in time$"):
                await stage.consumer.partitions_for("unknown", timeout_ms=1500)
            assert stage.now_ms == pytest.approx(1500, abs=1)

    async def test_query_of_an_invalid_topic_fails(self) -> None:
        async with reading() as stage:
            with pytest.raises(errors.InvalidTopicException):
                await stage.consumer.partitions_for("not/a/topic")


async def test_closed_consumer_raises() -> None:
    async with Broker() as broker:
        async with api.Consumer({"bootstrap.servers": broker.bootstrap}, random=Random(0)) as consumer:
            consumer.assign([P0])
            waiting = asyncio.ensure_future(consumer.poll(60_000))
            await asyncio.sleep(1)
        with pytest.raises(KafkaException, match=r"^the consumer is closed$"):
            await waiting
