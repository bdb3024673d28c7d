"""The reference producer where an answer leaves it in doubt about what was written, at whatever broker there is.

What it does then is not what Kafka's producer does (docs/producer.md): here it shows that brokers take it, Kafka's own
too, and that the log is right in the end. `mishear` is why no fault is needed for it.
"""

from collections.abc import Awaitable, Callable

import pytest

from sluice.client.errors import ApiException, KafkaException
from sluice.client.producer import Producer
from sluice.protocol.errors import ErrorCode
from tests.support.mishearing import LOST, mishear
from tests.support.place import At, Place


async def committed(place: Place, count: int) -> list[bytes | None]:
    """What is read by who reads committed records, to the end."""
    async with place.consumer(isolation_level="read_committed") as consumer:
        consumer.assign([place[0]])
        values = await place.read(consumer, count)
        return values + [record.value for record in await consumer.poll(500)]


async def transaction(producer: Producer, place: Place, value: bytes) -> None:
    producer.begin_transaction()
    await (await producer.send(place.topic, value))


class TestABatchThatWasWrittenAndRefusedWhenItWasSentAgain:
    def test_does_not_have_the_next_one_written_twice(self, at: At) -> None:
        async def scenario(place: Place) -> None:
            await place.create()
            values = [b"%d" % number * 100 for number in range(4)]  # each fills a batch
            async with place.producer(batch_size=1, linger_ms=0) as producer:
                await producer.partitions_for(place.topic)
                unknown = ErrorCode.REQUEST_TIMED_OUT
                mishear(producer, "Produce", unknown, unknown, None, ErrorCode.INVALID_RECORD)  # of the first one again
                first, second, third = [await producer.send(place.topic, value) for value in values[:3]]
                with pytest.raises(ApiException) as refused:
                    await first
                assert refused.value.code == ErrorCode.INVALID_RECORD
                assert [(await one).offset for one in (second, third)] == [1, 2]
                assert (await (await producer.send(place.topic, values[3]))).offset == 3
            async with place.consumer() as consumer:
                consumer.assign([place[0]])
                assert await place.read(consumer, 4) == values

        at(scenario)

    def test_is_not_taken_for_the_first_one_of_the_next_transaction(self, at: At) -> None:
        async def scenario(place: Place) -> None:
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

        at(scenario)


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        pytest.param(Producer.commit_transaction, [b"1", b"3"], id="a commit"),
        pytest.param(Producer.abort_transaction, [b"3"], id="an abort"),
    ],
)
def test_an_end_that_was_not_answered_ends_its_own_transaction_only(
    at: At, end: Callable[[Producer], Awaitable[None]], expected: list[bytes]
) -> None:
    async def scenario(place: Place) -> None:
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

    at(scenario)
