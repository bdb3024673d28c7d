"""The reference producer passes the same tests on our broker in virtual time and on any other broker in real time.

`python -m tests.client_against HOST:PORT` runs the tests on another broker. They use no faults and no journal.
"""

import pytest

from sluice.client import errors
from sluice.client.admin import quota_entity
from sluice.client.consumer import ConsumerRecord
from sluice.client.producer import Producer
from tests.support.place import Place, numbers

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")


class TestProducer:
    @pytest.mark.parametrize("compression", COMPRESSIONS)
    async def test_records_round_trip(self, place: Place, compression: str) -> None:
        await place.create()
        headers = (("h", b"1"), ("none", None))
        async with place.producer(compression_type=compression, linger_ms=20) as producer:
            sent = [
                await producer.send(
                    place.topic, value, key=key, headers=headers, timestamp_ms=1_700_000_000_000 + number
                )
                for number, (key, value) in enumerate([(b"k", b"v" * 5000), (None, b""), (b"", None)])
            ]
            assert [(await future).offset for future in sent] == [0, 1, 2]
        async with place.consumer() as consumer:
            consumer.assign([place[0]])
            records: list[ConsumerRecord] = []
            while len(records) < 3:
                records += await consumer.poll(1000)
        assert [(one.key, one.value) for one in records] == [(b"k", b"v" * 5000), (None, b""), (b"", None)]
        assert [one.timestamp - 1_700_000_000_000 for one in records] == [0, 1, 2]
        assert {one.headers for one in records} == {headers}

    @pytest.mark.parametrize("acks", ["0", "1", "all"])
    async def test_acks(self, place: Place, acks: str) -> None:
        await place.create()
        async with place.producer(acks=acks) as producer:
            ends = [await (await producer.send(place.topic, value)) for value in numbers(3)]
            assert [end.offset for end in ends] == ([-1] * 3 if acks == "0" else [0, 1, 2])
        async with place.consumer() as consumer:
            consumer.assign([place[0]])
            assert await place.read(consumer, 3) == numbers(3)

    @pytest.mark.parametrize("in_flight", [1, 5])
    async def test_many_records_keep_their_order(self, place: Place, in_flight: int) -> None:
        await place.create(2)
        config = {"max_in_flight_requests_per_connection": in_flight, "batch_size": 500, "linger_ms": 0}
        for partition in (0, 1):
            await place.send(*numbers(1500), partition=partition, **config)
        async with place.consumer() as consumer:
            for partition in (0, 1):
                consumer.assign([place[partition]])
                assert await place.read(consumer, 1500) == numbers(1500)

    async def test_records_with_one_key_have_one_partition(self, place: Place) -> None:
        await place.create(6)
        async with place.producer() as producer:
            keys = [b"key-%d" % number for number in range(40)]
            first = [await (await producer.send(place.topic, b"", key=key)) for key in keys]
            again = [await (await producer.send(place.topic, b"", key=key)) for key in keys]
        assert [end.partition for end in first] == [end.partition for end in again]
        assert len({end.partition for end in first}) == 6

    async def test_too_large_batch_is_split_and_too_large_record_is_rejected(self, place: Place) -> None:
        await place.create(max_message_bytes="1000")
        values = [bytes([number]) * 400 for number in range(8)]
        await place.send(*values, linger_ms=50)
        async with place.consumer() as consumer:
            consumer.assign([place[0]])
            assert await place.read(consumer, 8) == values
        with pytest.raises(errors.RecordTooLargeException):
            await place.send(bytes(2000))

    async def test_send_creates_the_topic(self, place: Place) -> None:
        await place.send(b"v")
        async with place.admin() as admin:
            assert place.topic in await admin.list_topics()

    async def test_invalid_topic_name_is_rejected(self, place: Place) -> None:
        async with place.producer() as producer:
            with pytest.raises(errors.InvalidTopicException):
                await producer.send("no way", b"v")

    async def test_quota_throttles_and_updates_the_metrics(self, place: Place) -> None:
        await place.create()
        entity = quota_entity(client_id=place.topic)
        async with place.admin() as admin, place.producer(client_id=place.topic, linger_ms=0) as producer:
            (await admin.alter_client_quotas({entity: {"producer_byte_rate": 20_000.0}})).all()
            while not producer.metrics()["produce-throttle-time-max"]:  # another broker may apply the quota later
                await (await producer.send(place.topic, bytes(100_000)))
            (await admin.alter_client_quotas({entity: {"producer_byte_rate": None}})).all()


class TestTransactions:
    async def test_transactions_are_read_completely_or_not_at_all(self, place: Place) -> None:
        await place.create(2)
        async with place.producer(transactional_id=place.topic) as producer:
            await producer.init_transactions()
            for number, is_committed in enumerate((True, False, True)):
                producer.begin_transaction()
                for partition in (0, 1):
                    await producer.send(place.topic, b"%d" % number, partition=partition)
                if is_committed:
                    await producer.commit_transaction()
                else:
                    await producer.flush()
                    await producer.abort_transaction()
        for level, expected in (("read_committed", [b"0", b"2"]), ("read_uncommitted", [b"0", b"1", b"2"])):
            for partition in (0, 1):
                async with place.consumer(isolation_level=level) as consumer:
                    consumer.assign([place[partition]])
                    assert await place.read(consumer, len(expected)) == expected

    async def test_transaction_commits_offsets_with_its_output(self, place: Place) -> None:
        await place.create()
        await place.send(*numbers(3))
        config: dict[str, str | int] = {"group_id": place.group, "enable_auto_commit": "false"}
        async with place.consumer(**config) as consumer, place.producer(transactional_id=place.topic) as producer:
            consumer.subscribe([place.topic])
            await place.read(consumer, 3)
            await producer.init_transactions()
            for offset, is_committed in ((2, True), (3, False)):
                producer.begin_transaction()
                await producer.send_offsets_to_transaction({place[0]: offset}, consumer.group_metadata())
                if is_committed:
                    await producer.commit_transaction()
                else:
                    await producer.abort_transaction()
            committed = (await consumer.committed([place[0]]))[place[0]]
            assert committed is not None
            assert committed.offset == 2

    async def test_newer_producer_fences_the_older_one(self, place: Place) -> None:
        await place.create()

        async def too_late(old: Producer) -> None:
            await (await old.send(place.topic, b"too late"))
            await old.commit_transaction()

        async with place.producer(transactional_id=place.topic) as old:
            await old.init_transactions()
            old.begin_transaction()
            await (await old.send(place.topic, b"old"))
            async with place.producer(transactional_id=place.topic) as new:
                await new.init_transactions()
                with pytest.raises(errors.KafkaException):
                    await too_late(old)
                new.begin_transaction()
                await new.send(place.topic, b"new")
                await new.commit_transaction()
        async with place.consumer(isolation_level="read_committed") as consumer:
            consumer.assign([place[0]])
            assert await place.read(consumer, 1) == [b"new"]
