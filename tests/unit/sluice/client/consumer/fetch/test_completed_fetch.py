"""A completed fetch, read batch by batch."""

from itertools import count

import pytest

from sluice.client.consumer.fetch.completed_fetch import CompletedFetch, FetchSettings
from sluice.client.consumer.fetch.fetch_session import FetchFrom
from sluice.client.consumer.record import ConsumerRecord
from sluice.client.errors import KafkaException
from sluice.client.metadata.cluster import TopicPartition
from sluice.protocol.apis.fetch import AbortedTransaction, PartitionData
from sluice.protocol.records.batch import LOG_APPEND_TIME
from sluice.protocol.records.build import build_batch, build_transaction_marker
from sluice.protocol.records.legacy import build_message_set
from sluice.protocol.records.record import Record, iter_records

ALL, COMMITTED = (FetchSettings(checks_crcs=True, read_committed=which) for which in (False, True))


def batch(first: int, *values: bytes, producer_id: int = -1, last_offset: int | None = None) -> bytes:
    records = [Record(offset, 1000 + offset, None, value) for offset, value in zip(count(first), values, strict=False)]
    return build_batch(
        records,
        base_offset=first,
        producer_id=producer_id,
        producer_epoch=min(producer_id, 0),
        base_sequence=first if producer_id >= 0 else -1,
        transactional=producer_id >= 0,
        partition_leader_epoch=4,
        last_offset=last_offset,
    )


def marker(offset: int, producer_id: int, kind: int) -> bytes:
    return build_transaction_marker(
        kind, offset=offset, timestamp=0, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0
    )


ABORT, COMMIT = 0, 1


def fetch(
    data: bytes, offset: int = 0, settings: FetchSettings = ALL, aborted: list[AbortedTransaction] | None = None
) -> CompletedFetch:
    partition = PartitionData(records=memoryview(data), aborted_transactions=aborted)
    return CompletedFetch(TopicPartition("t", 0), FetchFrom(b"", offset, 0, 0), partition, settings)


def taken(fetched: CompletedFetch, most: int = 100) -> list[int]:
    records: list[ConsumerRecord] = []
    fetched.take(records, most)
    return [record.offset for record in records]


def test_records_equal_those_of_the_plain_reader() -> None:
    headers = (("a", b"b"), ("", None), ("ä" * 70, b"c" * 300))
    records = [
        Record(number, 10**12 - number * 99, *pair, headers if number % 3 == 0 else ())
        for number, pair in enumerate(
            (key, value)
            for key in (None, b"", b"k" * 63, b"k" * 64, b"k" * 9000)
            for value in (None, b"", b"v" * 63, b"v" * 64, b"v" * 8191, b"v" * 8192, b"v" * 70_000)
        )
    ]
    data = build_batch(records, partition_leader_epoch=3)
    found: list[ConsumerRecord] = []
    assert fetch(data).take(found, 1000) is False
    expected = [(one.offset, one.timestamp, one.key, one.value, one.headers) for one in iter_records(data)]
    assert [(one.offset, one.timestamp, one.key, one.value, one.headers) for one in found] == expected
    assert {(one.topic, one.partition, one.timestamp_type, one.leader_epoch) for one in found} == {("t", 0, 0, 3)}


def test_reading_in_parts_returns_the_same_records() -> None:
    fetched = fetch(batch(0, *[b"v"] * 5) + batch(5, *[b"v"] * 5), 2)
    assert [taken(fetched, 3), taken(fetched, 3), taken(fetched, 3)] == [[2, 3, 4], [5, 6, 7], [8, 9]]
    assert (fetched.next_offset, fetched.last_epoch) == (10, 4)


def test_position_advances_past_compacted_offsets() -> None:
    fetched = fetch(batch(0, b"a", b"b", last_offset=9))
    assert taken(fetched) == [0, 1]
    assert fetched.next_offset == 10


def test_truncated_last_batch_is_left_for_the_next_fetch() -> None:
    fetched = fetch(batch(0, b"a") + batch(1, b"b")[:-1])
    assert taken(fetched) == [0]
    assert fetched.next_offset == 1


@pytest.mark.parametrize(("settings", "expected"), [(ALL, [0, 1, 3, 4, 7]), (COMMITTED, [1, 4, 7])])
def test_aborted_transactions_are_skipped_with_read_committed(settings: FetchSettings, expected: list[int]) -> None:
    data = b"".join(
        [
            batch(0, b"gone", producer_id=1),
            batch(1, b"kept", producer_id=2),
            marker(2, 2, COMMIT),
            batch(3, b"gone", producer_id=1),
            batch(4, b"plain"),
            marker(5, 1, ABORT),
            marker(6, 2, ABORT),
            batch(7, b"kept", producer_id=1),
            marker(8, 1, COMMIT),
        ]
    )
    fetched = fetch(data, 0, settings, [AbortedTransaction(producer_id=1, first_offset=0)])
    assert taken(fetched) == expected
    assert fetched.next_offset == 9


@pytest.mark.parametrize("magic", [0, 1])
def test_old_message_sets_are_read(magic: int) -> None:
    data = build_message_set([Record(offset, 5, b"k", b"v") for offset in range(4)], magic)
    assert taken(fetch(data, 1)) == [1, 2, 3]


def test_corrupt_record_raises_on_every_read() -> None:
    data = bytearray(batch(0, b"a") + batch(1, b"b") + batch(2, b"c"))
    data[-1] ^= 1
    fetched = fetch(bytes(data))
    records: list[ConsumerRecord] = []
    for _ in range(2):
        with pytest.raises(KafkaException, match=r"^the next record of t-0, at offset 2, cannot be read: .*seek past"):
            fetched.take(records, 10)
    assert [record.offset for record in records] == [0, 1]


def test_record_that_cannot_be_decoded_is_reported_after_the_readable_ones() -> None:
    data = build_batch([Record(offset, 1000, b"k", b"v") for offset in (0, 1)])
    fetched = fetch(data[:-1] + b"\x04", settings=FetchSettings(checks_crcs=False, read_committed=False))
    records: list[ConsumerRecord] = []
    with pytest.raises(KafkaException, match="at offset 1, cannot be read"):
        fetched.take(records, 10)
    assert [record.offset for record in records] == [0]


def test_log_append_time_applies_to_all_records() -> None:
    records = [Record(offset, 1000, b"k", b"v") for offset in range(3)]
    found: list[ConsumerRecord] = []
    fetch(build_batch(records, timestamp_type=LOG_APPEND_TIME, log_append_time=5000)).take(found, 10)
    assert [(one.timestamp, one.timestamp_type) for one in found] == [(5000, 1)] * 3, "1 is Kafka's id"


@pytest.mark.parametrize("at", [61, 66, 72, 73, 78, 84])  # lengths of records and values, counts of headers
def test_record_with_inconsistent_lengths_is_rejected(at: int) -> None:
    data = bytearray(batch(0, b"value", b"value"))
    data[at] ^= 0x40
    with pytest.raises(KafkaException, match="cannot be read"):
        fetch(bytes(data), 0, FetchSettings(checks_crcs=False, read_committed=False)).take([], 10)
