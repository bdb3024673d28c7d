"""Transactions against our broker, in virtual time; what is committed is what a consumer of aiokafka's reads."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from random import Random
from typing import TypeVar

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AiokafkaPartition

from sluice import Broker, testing
from sluice.broker.faults.actions.delay import Delay
from sluice.broker.faults.actions.error_response import Error
from sluice.broker.faults.actions.no_response import Close
from sluice.client.errors import ApiException, KafkaException, TimeoutException
from sluice.client.metadata.cluster import TopicPartition
from sluice.client.producer import Producer
from sluice.client.producer.transaction_requests import GroupMetadata

T = TypeVar("T")

# By what the broker says of transaction.version.
RELEASES = {"both ways: partitions are added by requests": "kafka-3.9", "brokers add partitions": "kafka-4.4"}
release = pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)


def producer_for(broker: Broker, seed: int = 0) -> Producer:
    given: dict[str, str | int] = {
        "bootstrap.servers": broker.bootstrap,
        "transactional.id": "tx",
        "delivery.timeout.ms": 10_000,
        "request.timeout.ms": 2000,
        "max.block.ms": 20_000,
    }
    return Producer(given, random=Random(seed))


def with_producer(release: str, test: Callable[[Broker, Producer], Awaitable[T]], brokers: int = 1) -> T:
    """Runs a test with a producer whose transactions are initialized."""

    async def main() -> T:
        config: dict[str, str | float] = {"sluice.kafka.release": release, "num.partitions": 2}
        async with Broker(brokers=brokers, config=config) as broker, producer_for(broker) as producer:
            await producer.init_transactions()
            return await test(broker, producer)

    return testing.run(main(), until=3600)


async def committed(broker: Broker) -> list[bytes]:
    """The values that are read by who reads committed ones only."""
    consumer = AIOKafkaConsumer(bootstrap_servers=broker.bootstrap, isolation_level="read_committed")
    await consumer.start()
    partitions = [AiokafkaPartition("t", number) for number in range(2)]
    consumer.assign(partitions)
    await consumer.seek_to_beginning()
    found = await consumer.getmany(timeout_ms=2000)
    for _ in range(3):
        for partition, records in (await consumer.getmany(timeout_ms=1000)).items():
            found.setdefault(partition, []).extend(records)
    await consumer.stop()
    return sorted(record.value for records in found.values() for record in records)


async def committed_after_abort(broker: Broker, producer: Producer) -> list[bytes]:
    """Abort the transaction, commit the next one, and return what is committed."""
    await producer.abort_transaction()
    await transaction(producer, b"after")
    await producer.commit_transaction()
    return await committed(broker)


async def transaction(producer: Producer, *values: bytes) -> None:
    producer.begin_transaction()
    for number, value in enumerate(values):
        await producer.send("t", value, partition=number % 2)


@release
class TestATransaction:
    def test_that_is_committed_is_read(self, release: str) -> None:
        async def test(broker: Broker, producer: Producer) -> list[bytes]:
            for first in (b"a", b"c"):
                await transaction(producer, first, bytes([first[0] + 1]))
                await producer.commit_transaction()
            return await committed(broker)

        assert with_producer(release, test) == [b"a", b"b", b"c", b"d"]

    def test_that_is_aborted_is_not(self, release: str) -> None:
        async def test(broker: Broker, producer: Producer) -> list[bytes]:
            await transaction(producer, b"sent and aborted")
            await producer.flush()
            await producer.abort_transaction()
            await transaction(producer, b"never sent")
            await producer.abort_transaction()
            await transaction(producer, b"committed")
            await producer.commit_transaction()
            return await committed(broker)

        assert with_producer(release, test) == [b"committed"]

    def test_without_anything_ends_at_once(self, release: str) -> None:
        async def test(broker: Broker, producer: Producer) -> list[bytes]:
            producer.begin_transaction()
            await producer.commit_transaction()
            producer.begin_transaction()
            await producer.abort_transaction()
            return [request.api.encode() for request in broker.journal.requests(api="EndTxn")]

        assert with_producer(release, test) == []

    def test_is_aborted_when_its_producer_is_closed(self, release: str) -> None:
        async def main() -> list[bytes]:
            config: dict[str, str | float] = {"sluice.kafka.release": release, "num.partitions": 2}
            async with Broker(config=config) as broker:
                async with producer_for(broker) as producer:
                    await producer.init_transactions()
                    await transaction(producer, b"left open")
                    await producer.flush()
                (end,) = broker.journal.requests(api="EndTxn")
                assert end.error_codes in ([], [0])
                return await committed(broker)

        assert testing.run(main(), until=3600) == []

    @pytest.mark.parametrize(
        ("api", "fault"),
        [
            *[
                (api, Error(code))
                for api, code in (
                    ("AddPartitionsToTxn", "CONCURRENT_TRANSACTIONS"),
                    ("AddPartitionsToTxn", "NOT_COORDINATOR"),
                    ("EndTxn", "COORDINATOR_NOT_AVAILABLE"),
                    ("EndTxn", "COORDINATOR_LOAD_IN_PROGRESS"),
                    ("Produce", "NOT_LEADER_OR_FOLLOWER"),
                    ("FindCoordinator", "COORDINATOR_NOT_AVAILABLE"),
                )
            ],
            ("EndTxn", Close(when="before")),
            ("EndTxn", Close(when="after")),
            ("Produce", Close(when="after")),
        ],
        ids=str,
    )
    def test_survives_what_is_worth_another_try(self, release: str, api: str, fault: Error | Close) -> None:
        async def test(broker: Broker, producer: Producer) -> list[bytes]:
            broker.faults.add(fault, api=api, times=2)
            await transaction(producer, b"a", b"b")
            await producer.commit_transaction()
            return await committed(broker)

        assert with_producer(release, test) == [b"a", b"b"]

    def test_whose_record_failed_can_only_be_aborted(self, release: str) -> None:
        async def test(broker: Broker, producer: Producer) -> list[bytes]:
            broker.faults.add(Error("INVALID_RECORD"), api="Produce", times=1)
            await transaction(producer, b"refused")
            await producer.flush()
            with pytest.raises(KafkaException, match=r"the transaction has failed: .*; abort it"):
                await producer.send("t", b"more")
            with pytest.raises(KafkaException, match=r"the transaction has failed: .*; abort it"):
                await producer.commit_transaction()
            return await committed_after_abort(broker, producer)

        assert with_producer(release, test) == [b"after"]

    def test_whose_record_was_written_and_then_refused_keeps_nothing_from_the_next_one(self, release: str) -> None:
        """The next one's record must not have the same number: it would pass for a copy of the one that was written."""

        async def test(broker: Broker, producer: Producer) -> list[bytes]:
            broker.faults.add(Error("REQUEST_TIMED_OUT", when="after"), api="Produce", times=1)
            await transaction(producer, b"written and refused")
            await broker.wait_for(lambda: len(broker.journal.requests(api="Produce")) == 1)
            broker.faults.add(Error("INVALID_RECORD"), api="Produce", times=1)
            with pytest.raises(KafkaException):
                await producer.commit_transaction()
            return await committed_after_abort(broker, producer)

        assert with_producer(release, test) == [b"after"]

    def test_that_ran_out_of_time_can_be_aborted_too(self, release: str) -> None:
        async def test(broker: Broker, producer: Producer) -> list[bytes]:
            with broker.faults.add(Error("REQUEST_TIMED_OUT"), api="Produce"):
                await transaction(producer, b"never")
                with pytest.raises(KafkaException):
                    await producer.commit_transaction()
            return await committed_after_abort(broker, producer)

        assert with_producer(release, test) == [b"after"]

    def test_whose_record_was_never_sent_is_not_committed_without_it(self, release: str) -> None:
        async def test(broker: Broker, producer: Producer) -> list[bytes]:
            await transaction(producer, b"sent")
            await producer.flush()
            testing.network().partition("localhost")
            await producer.send("t", b"never sent", partition=1)
            asyncio.get_running_loop().call_later(15, testing.network().heal)
            with pytest.raises(TimeoutException):
                await producer.commit_transaction()
            await producer.abort_transaction()
            return await committed(broker)

        assert with_producer(release, test) == []

    def test_of_which_nobody_knows_whether_it_began_can_be_aborted(self, release: str) -> None:
        async def test(broker: Broker, producer: Producer) -> list[bytes]:
            api = "AddPartitionsToTxn" if release == "kafka-3.9" else "Produce"
            with broker.faults.add(Close(when="after"), api=api):
                await transaction(producer, b"unknown")
                with pytest.raises(KafkaException):
                    await producer.commit_transaction()
            return await committed_after_abort(broker, producer)

        assert with_producer(release, test) == [b"after"]

    def test_is_not_ended_by_the_end_of_the_one_before_that_comes_late(self, release: str) -> None:
        async def test(broker: Broker, producer: Producer) -> list[bytes]:
            broker.faults.add(Delay(ms=3000), api="EndTxn", times=1)  # a second longer than it is waited for
            await transaction(producer, b"one")
            await producer.commit_transaction()
            await transaction(producer, b"two")
            await producer.flush()
            await asyncio.sleep(5)
            await producer.abort_transaction()
            await transaction(producer, b"three")
            await producer.commit_transaction()
            return await committed(broker)

        assert with_producer(release, test) == [b"one", b"three"]

    def test_of_a_producer_that_was_fenced_is_the_end(self, release: str) -> None:
        async def test(broker: Broker, producer: Producer) -> list[bytes]:
            await transaction(producer, b"of the old one")
            await producer.flush()
            async with producer_for(broker, seed=1) as other:
                await other.init_transactions()
                await transaction(other, b"of the new one")
                await other.commit_transaction()
            with pytest.raises(ApiException) as fenced:
                await producer.commit_transaction()
            assert fenced.value.code.name in ("PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")
            with pytest.raises(ApiException):
                producer.begin_transaction()
            return await committed(broker)

        assert with_producer(release, test) == [b"of the new one"]

    def test_takes_offsets_along(self, release: str) -> None:
        async def test(broker: Broker, producer: Producer) -> int | None:
            await transaction(producer, b"a")
            await producer.send_offsets_to_transaction({TopicPartition("t", 0): 7}, GroupMetadata("g"))
            await producer.commit_transaction()
            await transaction(producer, b"b")
            await producer.send_offsets_to_transaction({TopicPartition("t", 0): 9}, GroupMetadata("g"))
            await producer.abort_transaction()
            consumer = AIOKafkaConsumer(bootstrap_servers=broker.bootstrap, group_id="g", enable_auto_commit=False)
            await consumer.start()
            consumer.assign([AiokafkaPartition("t", 0)])
            offset: int | None = await consumer.committed(AiokafkaPartition("t", 0))
            await consumer.stop()
            return offset

        assert with_producer(release, test) == 7

    def test_moves_with_its_coordinator(self, release: str) -> None:
        async def test(broker: Broker, producer: Producer) -> list[bytes]:
            await transaction(producer, b"a", b"b")
            await producer.flush()
            for node_id in broker.brokers:
                await broker.cluster.stop(node_id)
                await asyncio.sleep(1)
                await broker.cluster.start(node_id)
                await asyncio.sleep(1)
            await producer.commit_transaction()
            return await committed(broker)

        assert with_producer(release, test, brokers=3) == [b"a", b"b"]


def test_what_was_aborted_is_no_surprise(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with Broker() as broker, producer_for(broker) as producer:
            await producer.init_transactions()
            await transaction(producer, b"aborted")
            await producer.abort_transaction()
            await transaction(producer, b"left open")

    testing.run(main())
    gc.collect()
    assert "never retrieved" not in caplog.text


def test_what_cannot_be_is_told() -> None:
    async def main() -> None:
        async with Broker() as broker:
            async with producer_for(broker) as producer:
                with pytest.raises(KafkaException, match="invalid transition from UNINITIALIZED to IN_TRANSACTION"):
                    producer.begin_transaction()
                await producer.init_transactions()
                with pytest.raises(KafkaException, match="no transaction is in progress"):
                    await producer.send("t", b"v")
            async with Producer({"bootstrap.servers": broker.bootstrap}) as producer:
                with pytest.raises(KafkaException, match=r"transactional\.id is not set"):
                    producer.begin_transaction()

    testing.run(main())


def test_an_operation_that_takes_too_long_goes_on_when_it_is_repeated() -> None:
    async def main() -> None:
        async with Broker() as broker, producer_for(broker) as producer:
            testing.network().partition("localhost")
            asyncio.get_running_loop().call_later(30, testing.network().heal)
            with pytest.raises(TimeoutException, match="did not complete within 20000 ms; call it again to continue"):
                await producer.init_transactions()
            await producer.init_transactions()
            await transaction(producer, b"v")
            await producer.commit_transaction()

    testing.run(main())
