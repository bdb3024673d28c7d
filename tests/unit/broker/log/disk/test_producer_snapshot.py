"""Producer snapshots in Kafka's file format."""

from pathlib import Path

import pytest

from sluice.broker.log.disk.producer_snapshot import encode_snapshot, read_snapshot
from sluice.broker.log.disk.text_files import UnreadableFileError
from sluice.broker.log.producer_state import ProducerEntry, StoredBatch


def entry(*, wraps: bool = False) -> ProducerEntry:
    created = ProducerEntry()
    created.epoch, created.coordinator_epoch, created.last_timestamp, created.current_txn_first_offset = 3, 4, 5000, 77
    first = 2**31 - 2 if wraps else 10
    created.batches.append(StoredBatch(first, (first + 4) % 2**31, 100, 104, 5000))
    return created


def test_encoded_snapshot_equals_kafkas() -> None:
    encoded = encode_snapshot([(1001, entry())])
    assert encoded[:2] == b"\0\1", "version"
    assert encoded[6:10] == b"\0\0\0\1", "count, after the checksum"
    assert encoded[10:].hex() == (
        "00000000000003e900030000000e000000000000006800000004000000000000138800000004000000000000004d"
    )


@pytest.mark.parametrize("wraps", [False, True])
def test_snapshot_round_trip(tmp_path: Path, wraps: bool) -> None:
    path = tmp_path / "snapshot"
    unknown = ProducerEntry()
    path.write_bytes(encode_snapshot([(7, entry(wraps=wraps)), (8, unknown)]))
    (first_id, first), (second_id, second) = read_snapshot(str(path))
    assert (first_id, second_id) == (7, 8)
    assert list(first.batches) == list(entry(wraps=wraps).batches)
    for name in ("epoch", "coordinator_epoch", "last_timestamp", "current_txn_first_offset"):
        assert getattr(first, name) == getattr(entry(), name)
        assert getattr(second, name) == getattr(unknown, name)
    assert list(second.batches) == []


UNREADABLE = {
    "truncated header": (lambda data: data[:5], "snapshot too short"),
    "newer version": (lambda data: b"\0\2" + data[2:], "unsupported version; expected 1, got 2"),
    "truncated at the end": (lambda data: data[:-1], "checksum mismatch"),
    "modified byte": (lambda data: data[:20] + b"\xff" + data[21:], "checksum mismatch"),
}


@pytest.mark.parametrize(("change", "message"), UNREADABLE.values(), ids=UNREADABLE)
def test_unreadable_snapshot_raises_the_reason(tmp_path: Path, change: object, message: str) -> None:
    path = tmp_path / "snapshot"
    path.write_bytes(change(encode_snapshot([(7, entry())])))  # type: ignore[operator]
    with pytest.raises(UnreadableFileError, match=message):
        read_snapshot(str(path))
