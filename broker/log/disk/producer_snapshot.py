"""The producer state of a partition in a file: Kafka's ProducerSnapshot, version 1.

Of a producer's last batches, it has only the newest.
"""

from collections.abc import Iterable
from struct import Struct, error

from sluice.broker.log.producer_state import NO_OFFSET, ProducerEntry, StoredBatch
from sluice.protocol.records import crc
from sluice.protocol.records.batch import NO_SEQUENCE

from .text_files import UnreadableFileError

_VERSION = 1
_HEAD = Struct(">hI")  # version, CRC-32C of the rest
_COUNT = Struct(">i")
# Producer id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, start of an open
# transaction.
_ENTRY = Struct(">qhiqiqiq")
_SEQUENCES = 2**31


def encode_snapshot(producers: Iterable[tuple[int, ProducerEntry]]) -> bytes:
    entries = [_encode(producer_id, entry) for producer_id, entry in producers]
    body = _COUNT.pack(len(entries)) + b"".join(entries)
    return _HEAD.pack(_VERSION, crc.crc32c(body)) + body


def _encode(producer_id: int, entry: ProducerEntry) -> bytes:
    last_sequence, last_offset, delta = NO_SEQUENCE, NO_OFFSET, 0
    if entry.batches:
        last = entry.batches[-1]
        last_sequence, last_offset, delta = last.last_sequence, last.last_offset, last.last_offset - last.first_offset
    return _ENTRY.pack(
        producer_id,
        entry.epoch,
        last_sequence,
        last_offset,
        delta,
        entry.last_timestamp,
        entry.coordinator_epoch,
        entry.current_txn_first_offset,
    )


def read_snapshot(path: str) -> list[tuple[int, ProducerEntry]]:
    with open(path, "rb") as file:
        data = file.read()
    try:
        version, checksum = _HEAD.unpack_from(data)
        (count,) = _COUNT.unpack_from(data, _HEAD.size)
    except error:
        raise UnreadableFileError(
            f"{path}: snapshot too short; expected at least {_HEAD.size + _COUNT.size} bytes, got {len(data)}"
        ) from None
    if version != _VERSION:
        raise UnreadableFileError(f"{path}: unsupported version; expected {_VERSION}, got {version}")
    if checksum != crc.crc32c(data[_HEAD.size :]):
        raise UnreadableFileError(f"{path}: checksum mismatch")
    start = _HEAD.size + _COUNT.size
    if len(data) != start + count * _ENTRY.size:
        raise UnreadableFileError(f"{path}: wrong size for {count} entries; got {len(data)} bytes")
    return [_entry(*values) for values in _ENTRY.iter_unpack(data[start:])]


def _entry(
    producer_id: int,
    epoch: int,
    last_sequence: int,
    last_offset: int,
    delta: int,
    timestamp: int,
    coordinator_epoch: int,
    current_txn_first_offset: int,
) -> tuple[int, ProducerEntry]:
    entry = ProducerEntry()
    entry.epoch = epoch
    entry.coordinator_epoch = coordinator_epoch
    entry.last_timestamp = timestamp
    entry.current_txn_first_offset = current_txn_first_offset
    if last_offset >= 0:
        first_sequence = NO_SEQUENCE if last_sequence == NO_SEQUENCE else (last_sequence - delta) % _SEQUENCES
        entry.batches.append(StoredBatch(first_sequence, last_sequence, last_offset - delta, last_offset, timestamp))
    return producer_id, entry
