"""Hashes of produced records (`sluice.journal.record.hashes`), which identify a batch that is sent again.

Offsets and timestamps are not hashed, because clients may change them when they send a record again.
"""

from collections.abc import Iterator
from hashlib import blake2b
from itertools import islice
from typing import cast

from sluice.protocol.apis.produce import ProduceRequest
from sluice.protocol.records.batch import LARGEST_MAGIC, batch_bounds
from sluice.protocol.records.invalid import InvalidRecords
from sluice.protocol.records.legacy import iter_messages, read_message
from sluice.protocol.records.record import Record, iter_records

_MOST_RECORDS = 64  # of one batch
_MOST_BYTES = 1 << 20  # of one batch, decompressed
_HASH_BYTES = 8


def record_hashes(request: ProduceRequest) -> list[tuple[str, ...]]:
    """Return the hashes of each batch, in the order of its partitions; none for an invalid batch."""
    return [
        _hashes_of(cast("bytes", item.records or b""))  # the decoder returns bytes
        for topic in request.topic_data
        for item in topic.partition_data
    ]


def _hashes_of(records: bytes) -> tuple[str, ...]:
    try:
        found = [
            repr((record.key, record.value, record.headers)) for record in islice(_records(records), _MOST_RECORDS)
        ]
    except InvalidRecords:
        return ()
    return tuple(blake2b(each.encode(), digest_size=_HASH_BYTES).hexdigest() for each in found)


def _records(records: bytes) -> Iterator[Record]:
    """Yield the records of a batch, or of a message set (magic 0 or 1), which is a sequence of messages."""
    for position, size, magic in batch_bounds(records):
        batch = memoryview(records)[position : position + size]
        if magic == LARGEST_MAGIC:
            yield from iter_records(batch, _MOST_BYTES)
        else:
            yield from (message.record() for message in iter_messages(read_message(batch), _MOST_BYTES))
