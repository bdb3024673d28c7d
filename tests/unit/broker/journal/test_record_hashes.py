"""Hashes of produced records: equal for records that are sent again, and absent where a batch cannot be read."""

import pytest

from sluice.broker.journal.record_hashes import record_hashes
from sluice.protocol.apis.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from sluice.protocol.records.build import build_batch
from sluice.protocol.records.record import Record

ONE, TWO = (Record(0, 0, b"k", b"one"), Record(1, 5, None, b"two", (("h", b"v"),)))


def hashes_of(*batches: bytes) -> list[tuple[str, ...]]:
    items = [PartitionProduceData(index=index, records=each) for index, each in enumerate(batches)]
    return record_hashes(ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=items)]))


@pytest.mark.parametrize(
    "again",
    [
        pytest.param(build_batch([ONE, TWO], producer_id=7, producer_epoch=1, base_sequence=3), id="a producer id"),
        pytest.param(build_batch([ONE, TWO], compression=1), id="compression"),
        pytest.param(build_batch([ONE, Record(1, 99, TWO.key, TWO.value, TWO.headers)]), id="another time"),
    ],
)
def test_records_sent_again_have_the_same_hashes_with(again: bytes) -> None:
    assert hashes_of(again) == hashes_of(build_batch([ONE, TWO]))


def test_records_have_different_hashes_in_each_partition() -> None:
    first, second = hashes_of(build_batch([ONE, TWO]), build_batch([TWO]))
    assert len(set(first)) == 2
    assert second == first[1:]


@pytest.mark.parametrize(
    "batch", [b"", b"short", build_batch([ONE])[:-1], b"\0" * 80], ids=["no batch", "no header", "cut", "magic 0"]
)
def test_unreadable_batch_has_no_hashes(batch: bytes) -> None:
    assert hashes_of(batch) == [()]


def test_at_most_64_records_of_a_batch_are_hashed() -> None:
    (hashes,) = hashes_of(build_batch([Record(number, 0, None, b"%d" % number) for number in range(70)]))
    assert len(hashes) == len(set(hashes)) == 64
