"""The producer against a real broker in virtual time."""

import asyncio
import logging
from collections import Counter
from itertools import pairwise
from random import Random

import pytest

from sluice import Broker, testing
from sluice.broker.faults.actions.delay import Delay
from sluice.broker.faults.actions.error_response import Error
from sluice.client import errors
from sluice.client.errors import KafkaException, TimeoutException
from sluice.client.producer import Producer
from sluice.errors import ConfigError
from sluice.protocol.errors import ErrorCode
from tests.support.producing import TOPIC, producing, values_in


class TestRecords:
    @pytest.mark.parametrize("acks", ["0", "1", "all"])
    async def test_futures_return_offsets_unless_acks_is_0(self, acks: str) -> None:
        async with producing({"acks": acks, "enable.idempotence": acks == "all"}) as stage:
            await stage.ended(await stage.send(b"v"))
            await asyncio.sleep(1)
            end = stage.ends[b"v"]
            assert end.metadata is not None
            assert end.metadata.offset == (-1 if acks == "0" else 1)
            assert stage.log() == [b"v"]

    async def test_records_without_a_key_change_partition_after_each_batch(self) -> None:
        async with producing({"batch.size": 1000}, broker_config={"num.partitions": 4}) as stage:
            futures = [await stage.producer.send(TOPIC, bytes(100)) for _ in range(400)]
            partitions = [(await future).partition for future in futures]
            switches = sum(one != other for one, other in pairwise(partitions))
            assert set(partitions) == {0, 1, 2, 3}
            assert switches < 60, "about 9 records in each batch"

    async def test_records_wait_for_linger_ms(self) -> None:
        async with producing({"linger.ms": 100}) as stage:
            first = await stage.send(b"first")
            await asyncio.sleep(0.05)
            await stage.ended(first, await stage.send(b"second"))
            assert [end.at_ms for end in stage.ends.values()] == [pytest.approx(100, abs=1)] * 2
            assert len(stage.produced) == 1

    async def test_flush_sends_lingering_records(self) -> None:
        async with producing({"linger.ms": 60_000}) as stage:
            await stage.send(b"v")
            await stage.producer.flush()
            await asyncio.sleep(0)
            assert stage.ends[b"v"].at_ms == pytest.approx(0, abs=1)
            late = await stage.send(b"after the flush")
            await asyncio.sleep(1)
            assert not late.done()


WITHOUT_METADATA = [
    (None, r"^Topic unknown not present in metadata after 1500 ms.$"),
    (3, r"^Partition 3 of topic unknown not present in metadata after 1500 ms.$"),
]


class TestSending:
    async def test_sending_waits_for_an_auto_created_topic(self) -> None:
        async with Broker() as broker, Producer({"bootstrap.servers": broker.bootstrap}) as producer:
            assert (await (await producer.send("new", b"v"))).offset == 0

    @pytest.mark.parametrize(("partition", "message"), WITHOUT_METADATA)
    async def test_sending_fails_without_metadata_after_max_block_ms(self, partition: int | None, message: str) -> None:
        async with Broker(config={"auto.create.topics.enable": "false"}) as broker:
            given: dict[str, str | int] = {"bootstrap.servers": broker.bootstrap, "max.block.ms": 1500}
            async with Producer(given, random=Random(1)) as producer:
                loop = asyncio.get_running_loop()
                began = loop.time()
                with pytest.raises(TimeoutException, match=message):
                    await producer.send("unknown", b"v", partition=partition)
                assert loop.time() - began == pytest.approx(1.5, abs=0.001)

    async def test_sending_fails_without_memory_after_max_block_ms(self) -> None:
        async with producing({"buffer.memory": 5000, "batch.size": 1, "max.block.ms": 2000}) as stage:
            stage.broker.faults.add(Delay(ms=10_000), api="Produce")
            for _ in range(4):
                await stage.send(bytes(1000))
            with pytest.raises(TimeoutException, match="Failed to allocate 1082 bytes within the configured max block"):
                await stage.send(bytes(1000))
            assert stage.now_ms == pytest.approx(2000, abs=1)

    async def test_sending_continues_when_memory_is_returned(self) -> None:
        async with producing({"buffer.memory": 3000, "batch.size": 1}) as stage:
            stage.broker.faults.add(Delay(ms=1000), api="Produce")
            futures = [await stage.send(b"%d" % number * 500) for number in range(9)]
            assert stage.now_ms >= 4000, "the broker accepts one per second, and five fit in the buffer"
            await stage.ended(*futures)
            assert stage.log() == [b"%d" % number * 500 for number in range(9)]

    async def test_cancelled_send_leaves_memory_to_others(self) -> None:
        async with producing({"buffer.memory": 3000, "batch.size": 1}) as stage:
            stage.broker.faults.add(Delay(ms=1000), api="Produce")
            await stage.send(bytes(2000))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(stage.send(bytes(1500)), 0.5)
            await stage.ended(await stage.send(b"after"))
            assert stage.ends[b"after"].metadata is not None

    @pytest.mark.parametrize("name", ["max.request.size", "buffer.memory"])
    async def test_too_large_record_is_rejected(self, name: str) -> None:
        async with producing({name: 10_000, "batch.size": 1000}) as stage:
            message = rf"The message is 10082 bytes when serialized which is larger than 10000, .* {name} configuration"
            with pytest.raises(errors.exception_of(10).__class__, match=message):
                await stage.send(bytes(10_000))

    async def test_buffer_smaller_than_a_batch_is_rejected(self) -> None:
        async with Broker() as broker:
            given: dict[str, str | int] = {"bootstrap.servers": broker.bootstrap, "buffer.memory": 10_000}
            async with Producer(given) as producer:
                with pytest.raises(KafkaException, match=r"16384 bytes exceeds buffer\.memory=10000"):
                    await producer.send(TOPIC, b"v")


class TestClosing:
    async def test_close_sends_queued_records(self) -> None:
        async with Broker() as broker:
            async with Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 60_000}) as producer:
                await producer.send(TOPIC, b"v")
            assert values_in(broker, 0) == [b"v"]

    async def test_close_fails_records_after_its_timeout(self) -> None:
        async with producing() as stage:
            stage.broker.faults.add(Delay(ms=60_000), api="Produce")
            future = await stage.send()
            await stage.producer.close(timeout_ms=5000)
            assert stage.now_ms == pytest.approx(5000, abs=1)
            with pytest.raises(KafkaException, match="the producer was closed before the record was sent"):
                await future
            with pytest.raises(KafkaException, match="the producer is closed"):
                await stage.send()

    async def test_close_fails_pending_sends(self) -> None:
        async with producing({"buffer.memory": 3000, "batch.size": 1}) as stage:
            stage.broker.faults.add(Delay(ms=60_000), api="Produce")
            first = await stage.send(bytes(2000))
            waiting = asyncio.create_task(stage.send(bytes(2000)))
            await asyncio.sleep(1)
            await stage.producer.close(timeout_ms=0)
            with pytest.raises(KafkaException, match="the producer is closed"):
                await waiting
            await stage.ended(first)


class TestWhatTheBrokerRefuses:
    async def test_record_error_fails_only_that_record(self) -> None:
        async with producing({"linger.ms": 10}) as stage:
            await stage.broker.cluster.create_topic("compacted", 1, config={"cleanup.policy": "compact"})
            futures = [await stage.producer.send("compacted", b"v", key=key) for key in (b"k", None, b"k")]
            await stage.ended(*futures)
            messages = [str(future.exception()) for future in futures]
            assert messages[0] == messages[2] == "it was in a batch with invalid records, which was not written"
            assert messages[1] != messages[0]

    async def test_rejected_batch_is_followed_by_accepted_ones(self) -> None:
        async with producing() as stage:
            stage.broker.faults.add(Error("INVALID_RECORD"), api="Produce", times=1)
            refused = await stage.send(b"refused")
            await stage.ended(refused)
            await stage.ended(await stage.send(b"taken"))
            assert stage.ends[b"taken"].metadata is not None
            assert stage.log() == [b"taken"]
            assert stage.produced[-1].attempt_key.endswith(".1.0"), "in the next epoch, from sequence 0"


async def test_written_batch_reported_as_failed_is_stored_once() -> None:
    async with producing() as stage:
        stage.broker.faults.add(Error("REQUEST_TIMED_OUT", when="after"), api="Produce", times=3)
        await stage.ended(await stage.send(b"v"))
        assert stage.ends[b"v"].metadata == (TOPIC, 0, 1, 1_700_000_000_000)
        assert stage.log() == [b"v"]
        assert len(stage.produced) == 4


async def test_batch_with_a_late_attempt_is_not_sent_in_another_epoch() -> None:
    """A batch expires, and a late attempt arrives after the next one was rejected for the gap between them.

    In another epoch the broker could not detect the duplicate.
    """
    async with producing({"request.timeout.ms": 1000, "delivery.timeout.ms": 3500}) as stage:
        network = testing.network()
        network.link("localhost", latency_s=3.55)
        older = await stage.send(b"older")
        await asyncio.sleep(0.9)
        network.link("localhost", latency_s=2.65)
        younger = await stage.send(b"younger")
        await asyncio.sleep(0.1)
        network.link("localhost")
        with stage.broker.faults.add(Error("REQUEST_TIMED_OUT"), api="Produce"):
            await asyncio.wait([older])
        assert isinstance(older.exception(), TimeoutException)
        assert stage.log() == []
        assert (await younger).offset == 2
        assert stage.log() == [b"older", b"younger"]
        refused, *late, again = stage.produced[-4:]
        assert refused.error_codes == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
        assert again.connection == refused.connection
        assert again.connection not in [one.connection for one in late]


async def test_moved_leader_is_followed_without_backoff() -> None:
    async with Broker(brokers=2, config={"default.replication.factor": 2}) as broker:
        given: dict[str, str | int] = {"bootstrap.servers": broker.bootstrap, "linger.ms": 0, "retry.backoff.ms": 1000}
        async with Producer(given, random=Random(1)) as producer:
            await (await producer.send(TOPIC, b"first", partition=0))
            leader = broker.cluster.partition(TOPIC, 0).leader
            await broker.cluster.move_leader(TOPIC, 0, 3 - leader)
            loop = asyncio.get_running_loop()
            began = loop.time()
            await (await producer.send(TOPIC, b"second", partition=0))
            assert values_in(broker, 0) == [b"first", b"second"]
            assert loop.time() - began < 0.1


def test_invalid_setting_fails_at_once() -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers is missing"):
        Producer({})


async def test_unavailable_broker_is_contacted_by_backoff_whatever_the_number_of_records(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="sluice.client")
    async with producing() as stage:
        await stage.broker.cluster.stop(1)
        await asyncio.sleep(1)
        loop = asyncio.get_running_loop()
        waiting = [loop.create_task(stage.send(b"%d" % number)) for number in range(10)]
        await asyncio.sleep(30)
        assert not any(one.done() for one in waiting), "no broker serves metadata"
        await stage.broker.cluster.start(1)
        await stage.ended(*await asyncio.gather(*waiting))
        assert sorted(stage.log()) == sorted(stage.ends)
    counts = Counter(record.message for record in caplog.records if record.name == "sluice.client")
    assert counts["rebootstrap"] == 1
    assert 30 < counts["disconnected"] < 45, "0.8 to 1 s each at the cap"
