"""Hashes of produced records (`sluice.journal.record.hashes`), which identify a batch that is sent again.

Offsets and timestamps are not hashed, because clients may change them when they send a record again.
"""

from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, cast

from sluice.protocol.records.batch import LARGEST_MAGIC, MAGIC_AT
from sluice.protocol.records.invalid import InvalidRecords
from sluice.protocol.records.record import iter_records

if TYPE_CHECKING:
    from sluice.protocol.apis.produce import ProduceRequest

_MOST_RECORDS = 64  # of one batch
_MOST_BYTES = 1 << 20  # of one batch, decompressed
_HASH_BYTES = 8


def record_hashes(request: "ProduceRequest") -> list[tuple[str, ...]]:
    """Return the hashes of each batch, in the order of its partitions; none for an invalid batch."""
    return [
        _hashes_of(cast("bytes", item.records or b""))  # the decoder returns bytes
        for topic in request.topic_data
        for item in topic.partition_data
    ]


def _hashes_of(batch: bytes) -> tuple[str, ...]:
    if len(batch) <= MAGIC_AT or batch[MAGIC_AT] != LARGEST_MAGIC:
        return ()
    try:
        found = [
            repr((record.key, record.value, record.headers))
            for record in islice(iter_records(batch, _MOST_BYTES), _MOST_RECORDS)
        ]
    except InvalidRecords:
        return ()
    return tuple(blake2b(each.encode(), digest_size=_HASH_BYTES).hexdigest() for each in found)
