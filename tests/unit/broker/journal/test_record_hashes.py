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


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("compression", [0, 1], ids=["uncompressed", "gzip"])
def test_records_of_a_message_set_have_the_hashes_of_a_batch(magic: int, compression: int) -> None:
    records = [Record(0, 5, b"k", b"one"), Record(1, 6, None, b"two"), Record(2, 7, b"k", None)]
    assert hashes_of(build_message_set(records, magic, compression=compression)) == hashes_of(build_batch(records))


def test_records_have_different_hashes_in_each_partition() -> None:
    first, second = hashes_of(build_batch([ONE, TWO]), build_batch([TWO]))
    assert len(set(first)) == 2
    assert second == first[1:]


@pytest.mark.parametrize(
    "batch",
    [
        pytest.param(b"", id="no batch"),
        pytest.param(b"short", id="no header"),
        pytest.param(build_batch([ONE])[:-1], id="cut"),
        pytest.param(b"\0" * 80, id="no length"),
        pytest.param(build_message_set([ONE], 1)[:-1], id="cut message set"),
        pytest.param(b"\0" * 11 + b"\x0e" + b"\0" * 6 + b"\x7f" * 8, id="message with a key beyond its end"),
        pytest.param(build_message_set([ONE], 1, compression=1)[:-9] + b"\0" * 9, id="corrupt compression"),
        pytest.param(b"\0" * 16 + b"\3" + b"\0" * 80, id="unknown magic"),
    ],
)
def test_unreadable_batch_has_no_hashes(batch: bytes) -> None:
    assert hashes_of(batch) == [()]


def test_at_most_64_records_of_a_batch_are_hashed() -> None:
    (hashes,) = hashes_of(build_batch([Record(number, 0, None, b"%d" % number) for number in range(70)]))
    assert len(hashes) == len(set(hashes)) == 64
