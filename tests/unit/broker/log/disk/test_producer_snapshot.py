"""Snapshots of producers, byte by byte as Kafka's."""

from pathlib import Path

import pytest

from sluice.broker.log.disk.producer_snapshot import encode_snapshot, read_snapshot
from sluice.broker.log.disk.text_files import UnreadableFileError
from sluice.broker.log.producer_state import ProducerEntry, StoredBatch


def entry(*, wraps: bool = False) -> ProducerEntry:
    made = ProducerEntry()
    made.epoch, made.coordinator_epoch, made.last_timestamp, made.current_txn_first_offset = 3, 4, 5000, 77
    first = 2**31 - 2 if wraps else 10
    made.batches.append(StoredBatch(first, (first + 4) % 2**31, 100, 104, 5000))
    return made


def test_bytes_are_kafkas() -> None:
    encoded = encode_snapshot([(1001, entry())])
    assert encoded[:2] == b"\0\1", "version"
    assert encoded[6:10] == b"\0\0\0\1", "count, behind the checksum"
    assert encoded[10:].hex() == (
        "00000000000003e900030000000e000000000000006800000004000000000000138800000004000000000000004d"
    )


@pytest.mark.parametrize("wraps", [False, True])
def test_what_was_written_is_read(tmp_path: Path, wraps: bool) -> None:
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


@pytest.mark.parametrize(
    ("change", "told"),
    [
        pytest.param(lambda data: data[:5], "snapshot too short", id="cut in its head"),
        pytest.param(lambda data: b"\0\2" + data[2:], "unsupported version; expected 1, got 2", id="a newer version"),
        pytest.param(lambda data: data[:-1], "checksum mismatch", id="cut at its end"),
        pytest.param(lambda data: data[:20] + b"\xff" + data[21:], "checksum mismatch", id="another byte"),
    ],
)
def test_one_that_is_not_whole_says_so(tmp_path: Path, change: object, told: str) -> None:
    path = tmp_path / "snapshot"
    path.write_bytes(change(encode_snapshot([(7, entry())])))  # type: ignore[operator]
    with pytest.raises(UnreadableFileError, match=told):
        read_snapshot(str(path))
