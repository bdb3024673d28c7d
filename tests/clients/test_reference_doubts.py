"""The reference producer after responses that leave open whether a batch was written, on any broker.

Its behaviour differs from that of Kafka's producer (docs/producer.md): the tests show that brokers, including Kafka's,
accept it and that the log is correct at the end. `mishear` replaces responses, so no faults are needed.
"""

from collections.abc import Awaitable, Callable

import pytest

from sluice.client.errors import ApiException, KafkaException
from sluice.client.producer import Producer
from sluice.protocol.errors import ErrorCode
from tests.support.mishearing import LOST, mishear
from tests.support.place import Place


async def committed(place: Place, count: int) -> list[bytes | None]:
    async with place.consumer(isolation_level="read_committed") as consumer:
        consumer.assign([place[0]])
        values = await place.read(consumer, count)
        return values + [record.value for record in await consumer.poll(500)]


async def transaction(producer: Producer, place: Place, value: bytes) -> None:
    producer.begin_transaction()
    await (await producer.send(place.topic, value))


class TestBatchWrittenButRejectedOnRetry:
    async def test_next_batch_is_written_once(self, place: Place) -> None:
        await place.create()
        values = [b"%d" % number * 100 for number in range(4)]  # each fills a batch
        async with place.producer(batch_size=1, linger_ms=0) as producer:
            await producer.partitions_for(place.topic)
            unknown = ErrorCode.REQUEST_TIMED_OUT
            # The last one answers the retry of the first batch.
            mishear(producer, "Produce", unknown, unknown, None, ErrorCode.INVALID_RECORD)
            first, second, third = [await producer.send(place.topic, value) for value in values[:3]]
            with pytest.raises(ApiException) as refused:
                await first
            assert refused.value.code == ErrorCode.INVALID_RECORD
            assert [(await one).offset for one in (second, third)] == [1, 2]
            assert (await (await producer.send(place.topic, values[3]))).offset == 3
        async with place.consumer() as consumer:
            consumer.assign([place[0]])
            assert await place.read(consumer, 4) == values

    async def test_next_transaction_starts_with_its_own_batch(self, place: Place) -> None:
        await place.create()
        async with place.producer(transactional_id=place.topic) as producer:
            await producer.init_transactions()
            mishear(producer, "Produce", ErrorCode.REQUEST_TIMED_OUT, ErrorCode.INVALID_RECORD)
            producer.begin_transaction()
            await producer.send(place.topic, b"refused")
            with pytest.raises(KafkaException):
                await producer.commit_transaction()
            await producer.abort_transaction()
            for value in (b"1", b"2"):
                await transaction(producer, place, value)
                await producer.commit_transaction()
        assert await committed(place, 2) == [b"1", b"2"]


ENDS = {"commit": (Producer.commit_transaction, [b"1", b"3"]), "abort": (Producer.abort_transaction, [b"3"])}


@pytest.mark.parametrize(("end", "expected"), ENDS.values(), ids=ENDS)
async def test_end_without_a_response_ends_only_its_own_transaction(
    place: Place, end: Callable[[Producer], Awaitable[None]], expected: list[bytes]
) -> None:
    await place.create()
    async with place.producer(transactional_id=place.topic) as producer:
        await producer.init_transactions()
        mishear(producer, "EndTxn", LOST)
        await transaction(producer, place, b"1")
        await end(producer)
        await transaction(producer, place, b"2")
        await producer.abort_transaction()
        await transaction(producer, place, b"3")
        await producer.commit_transaction()
    assert await committed(place, len(expected)) == expected
