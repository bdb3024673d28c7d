"""Hashes of produced records: equal for records that are sent again, and absent where a batch cannot be read."""

import pytest

from sluice.broker.journal.record_hashes import record_hashes
from sluice.protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from sluice.protocol.records.build import build_batch
from sluice.protocol.records.legacy import build_message_set
from sluice.protocol.records.record import Record

ONE, TWO = (Record(0, 0, b"k", b"one"), Record(1, 5, None, b"two", (("h", b"v"),)))


def hashes_of(*batches: bytes) -> list[tuple[str, ...]]:
    items = [PartitionProduceData(index=index, records=each) for index, each in enumerate(batches)]
    return record_hashes(ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=items)]))


SENT_AGAIN = {
    "a producer id": build_batch([ONE, TWO], producer_id=7, producer_epoch=1, base_sequence=3),
    "compression": build_batch([ONE, TWO], compression=1),
    "another time": build_batch([ONE, Record(1, 99, TWO.key, TWO.value, TWO.headers)]),
}


@pytest.mark.parametrize("again", SENT_AGAIN.values(), ids=SENT_AGAIN)
def test_records_sent_again_have_the_same_hashes_with(again: bytes) -> None:
    assert hashes_of(again) == hashes_of(build_batch([ONE, TWO]))


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("compression", [0, 1], ids=["uncompressed", "gzip"])
def test_records_of_a_message_set_have_the_hashes_of_a_batch(magic: int, compression: int) -> None:
    records = [Record(0, 5, b"k", b"one"), Record(1, 6, None, b"two"), Record(2, 7, b"k", None)]
    assert hashes_of(build_message_set(records, magic, compression=compression)) == hashes_of(build_batch(records))


def test_records_have_different_hashes_in_each_partition() -> None:
    first, second = hashes_of(build_batch([ONE, TWO]), build_batch([TWO]))
    assert len(set(first)) == 2
    assert second == first[1:]


UNREADABLE = {
    "no batch": b"",
    "no header": b"short",
    "cut": build_batch([ONE])[:-1],
    "no length": b"\0" * 80,
    "cut message set": build_message_set([ONE], 1)[:-1],
    "message with a key beyond its end": b"\0" * 11 + b"\x0e" + b"\0" * 6 + b"\x7f" * 8,
    "corrupt compression": build_message_set([ONE], 1, compression=1)[:-9] + b"\0" * 9,
    "unknown magic": b"\0" * 16 + b"\3" + b"\0" * 80,
}


@pytest.mark.parametrize("batch", UNREADABLE.values(), ids=UNREADABLE)
def test_unreadable_batch_has_no_hashes(batch: bytes) -> None:
    assert hashes_of(batch) == [()]


def test_at_most_64_records_of_a_batch_are_hashed() -> None:
    (hashes,) = hashes_of(build_batch([Record(number, 0, None, b"%d" % number) for number in range(70)]))
    assert len(hashes) == len(set(hashes)) == 64
