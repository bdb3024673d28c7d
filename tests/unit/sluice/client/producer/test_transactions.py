"""Transactions against a real broker in virtual time; aiokafka's consumer reads the committed records."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AiokafkaPartition

from sluice import Broker, testing
from sluice.broker.faults.actions.delay import Delay
from sluice.broker.faults.actions.error_response import Error
from sluice.broker.faults.actions.no_response import Close
from sluice.client.admin import AdminClient
from sluice.client.committed_offsets import GroupMetadata, OffsetAndMetadata
from sluice.client.errors import ApiException, KafkaException, TimeoutException, UnsupportedVersionException
from sluice.client.metadata.cluster import TopicPartition
from sluice.client.producer import Producer

# Selected by the broker's transaction.version.
RELEASES = {"clients add partitions": "kafka-3.9", "brokers add partitions": "kafka-4.4"}
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


@asynccontextmanager
async def initialized(release: str, brokers: int = 1) -> AsyncIterator[tuple[Broker, Producer]]:
    """Start a broker, and a producer whose transactions are initialized."""
    config: dict[str, str | float] = {"sluice.kafka.release": release, "num.partitions": 2}
    async with (
        asyncio.timeout(3600),
        Broker(brokers=brokers, config=config) as broker,
        producer_for(broker) as producer,
    ):
        await producer.init_transactions()
        yield broker, producer


async def committed(broker: Broker) -> list[bytes]:
    """Return the values that a read_committed consumer reads."""
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
    """Abort the transaction, commit the next one, and return the committed values."""
    await producer.abort_transaction()
    await commit(producer, b"after")
    return await committed(broker)


async def transaction(producer: Producer, *values: bytes) -> None:
    producer.begin_transaction()
    for number, value in enumerate(values):
        await producer.send("t", value, partition=number % 2)


async def commit(producer: Producer, *values: bytes) -> None:
    await transaction(producer, *values)
    await producer.commit_transaction()


@release
class TestATransaction:
    async def test_empty_transaction_ends_at_once(self, release: str) -> None:
        async with initialized(release) as (broker, producer):
            producer.begin_transaction()
            await producer.commit_transaction()
            producer.begin_transaction()
            await producer.abort_transaction()
            assert [request.api.encode() for request in broker.journal.requests(api="EndTxn")] == []

    async def test_closing_the_producer_aborts_the_transaction(self, release: str) -> None:
        config: dict[str, str | float] = {"sluice.kafka.release": release, "num.partitions": 2}
        async with Broker(config=config) as broker:
            async with producer_for(broker) as producer:
                await producer.init_transactions()
                await transaction(producer, b"left open")
                await producer.flush()
            (end,) = broker.journal.requests(api="EndTxn")
            assert end.error_codes in ([], [0])
            assert await committed(broker) == []

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
    async def test_retriable_error_is_retried(self, release: str, api: str, fault: Error | Close) -> None:
        async with initialized(release) as (broker, producer):
            broker.faults.add(fault, api=api, times=2)
            await commit(producer, b"a", b"b")
            assert await committed(broker) == [b"a", b"b"]

    async def test_failed_record_allows_only_an_abort(self, release: str) -> None:
        async with initialized(release) as (broker, producer):
            broker.faults.add(Error("INVALID_RECORD"), api="Produce", times=1)
            await transaction(producer, b"refused")
            await producer.flush()
            with pytest.raises(KafkaException, match=r"the transaction has failed: .*; abort it"):
                await producer.send("t", b"more")
            with pytest.raises(KafkaException, match=r"the transaction has failed: .*; abort it"):
                await producer.commit_transaction()
            assert await committed_after_abort(broker, producer) == [b"after"]

    async def test_record_written_and_reported_as_failed_does_not_hide_later_records(self, release: str) -> None:
        """The next record must not reuse the sequence, or the broker would treat it as a duplicate."""
        async with initialized(release) as (broker, producer):
            broker.faults.add(Error("REQUEST_TIMED_OUT", when="after"), api="Produce", times=1)
            await transaction(producer, b"written and refused")
            await broker.wait_for(lambda: len(broker.journal.requests(api="Produce")) == 1)
            broker.faults.add(Error("INVALID_RECORD"), api="Produce", times=1)
            with pytest.raises(KafkaException):
                await producer.commit_transaction()
            assert await committed_after_abort(broker, producer) == [b"after"]

    async def test_expired_record_allows_an_abort(self, release: str) -> None:
        async with initialized(release) as (broker, producer):
            with broker.faults.add(Error("REQUEST_TIMED_OUT"), api="Produce"):
                await transaction(producer, b"never")
                with pytest.raises(KafkaException):
                    await producer.commit_transaction()
            assert await committed_after_abort(broker, producer) == [b"after"]

    async def test_expired_unsent_record_prevents_the_commit(self, release: str) -> None:
        async with initialized(release) as (broker, producer):
            await transaction(producer, b"sent")
            await producer.flush()
            testing.network().partition("localhost")
            await producer.send("t", b"never sent", partition=1)
            asyncio.get_running_loop().call_later(15, testing.network().heal)
            with pytest.raises(TimeoutException):
                await producer.commit_transaction()
            await producer.abort_transaction()
            assert await committed(broker) == []

    async def test_transaction_of_unknown_state_can_be_aborted(self, release: str) -> None:
        async with initialized(release) as (broker, producer):
            api = "AddPartitionsToTxn" if release == "kafka-3.9" else "Produce"
            with broker.faults.add(Close(when="after"), api=api):
                await transaction(producer, b"unknown")
                with pytest.raises(KafkaException):
                    await producer.commit_transaction()
            assert await committed_after_abort(broker, producer) == [b"after"]

    async def test_late_end_of_the_previous_transaction_does_not_end_the_next(self, release: str) -> None:
        async with initialized(release) as (broker, producer):
            broker.faults.add(Delay(ms=3000), api="EndTxn", times=1)  # one second longer than the client's timeout
            await commit(producer, b"one")
            await transaction(producer, b"two")
            await producer.flush()
            await asyncio.sleep(5)
            await producer.abort_transaction()
            await commit(producer, b"three")
            assert await committed(broker) == [b"one", b"three"]

    async def test_fenced_producer_fails_permanently(self, release: str) -> None:
        async with initialized(release) as (broker, producer):
            await transaction(producer, b"of the old one")
            await producer.flush()
            async with producer_for(broker, seed=1) as other:
                await other.init_transactions()
                await commit(other, b"of the new one")
            with pytest.raises(ApiException) as fenced:
                await producer.commit_transaction()
            assert fenced.value.code.name in ("PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")
            with pytest.raises(ApiException):
                producer.begin_transaction()
            assert await committed(broker) == [b"of the new one"]

    async def test_offsets_are_committed_with_the_transaction(self, release: str) -> None:
        async with initialized(release) as (broker, producer):
            await transaction(producer, b"a")
            offsets: dict[TopicPartition, int | OffsetAndMetadata] = {
                TopicPartition("t", 0): OffsetAndMetadata(7, "seven", 2),
                TopicPartition("t", 1): 8,
            }
            await producer.send_offsets_to_transaction(offsets, GroupMetadata("g"))
            await producer.commit_transaction()
            await transaction(producer, b"b")
            await producer.send_offsets_to_transaction({TopicPartition("t", 0): 9}, GroupMetadata("g"))
            await producer.abort_transaction()
            async with AdminClient({"bootstrap.servers": broker.bootstrap}) as admin:
                found = await admin.list_consumer_group_offsets("g")
            assert found == offsets | {TopicPartition("t", 1): OffsetAndMetadata(8)}

    async def test_transaction_survives_a_coordinator_move(self, release: str) -> None:
        async with initialized(release, brokers=3) as (broker, producer):
            await transaction(producer, b"a", b"b")
            await producer.flush()
            for node_id in broker.brokers:
                await broker.cluster.stop(node_id)
                await asyncio.sleep(1)
                await broker.cluster.start(node_id)
                await asyncio.sleep(1)
            await producer.commit_transaction()
            assert await committed(broker) == [b"a", b"b"]


EPOCH_BUMPS = {
    "client's bump": ("kafka-3.9", True, 1),
    "none for an error during the commit": ("kafka-3.9", False, 0),
    "broker's bump": ("kafka-4.4", True, 0),
}


@pytest.mark.parametrize(("release", "fails_before_commit", "bumps"), EPOCH_BUMPS.values(), ids=EPOCH_BUMPS)
async def test_client_requests_an_epoch_bump_after_an_abort(
    release: str, fails_before_commit: bool, bumps: int
) -> None:
    async with initialized(release) as (broker, producer):
        broker.faults.add(Error("INVALID_RECORD"), api="Produce", times=1)
        await transaction(producer, b"refused")
        if fails_before_commit:
            await producer.flush()
        with pytest.raises(KafkaException):
            await producer.commit_transaction()
        await producer.abort_transaction()
        assert len(broker.journal.requests(api="InitProducerId")) == 1 + bumps


async def test_closing_after_an_abort_succeeds(caplog: pytest.LogCaptureFixture) -> None:
    async with Broker() as broker, producer_for(broker) as producer:
        await producer.init_transactions()
        await transaction(producer, b"aborted")
        await producer.abort_transaction()
        await transaction(producer, b"left open")
    gc.collect()
    assert "never retrieved" not in caplog.text


async def test_invalid_state_is_reported() -> None:
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


async def test_timed_out_operation_continues_when_repeated() -> None:
    async with Broker() as broker, producer_for(broker) as producer:
        testing.network().partition("localhost")
        asyncio.get_running_loop().call_later(30, testing.network().heal)
        with pytest.raises(TimeoutException, match="did not complete within 20000 ms; call it again to continue"):
            await producer.init_transactions()
        await producer.init_transactions()
        await commit(producer, b"v")


async def test_broker_without_transactions_causes_a_fatal_error() -> None:
    async with Broker(config={"sluice.kafka.release": "kafka-0.10.2"}) as broker, producer_for(broker) as producer:
        with pytest.raises(UnsupportedVersionException):
            await producer.init_transactions()
        with pytest.raises(UnsupportedVersionException):
            producer.begin_transaction()


async def test_first_partition_of_a_transaction_waits_20_ms_for_the_previous_one_to_end() -> None:
    async with initialized(RELEASES["clients add partitions"]) as (broker, producer):
        broker.faults.add(Error("CONCURRENT_TRANSACTIONS"), api="AddPartitionsToTxn", times=1)
        await commit(producer, b"a")
        first, second = (request.received_ns / 1e6 for request in broker.journal.requests(api="AddPartitionsToTxn"))
        assert second - first == pytest.approx(20, abs=2)
