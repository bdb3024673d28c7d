"""What a consumer returns: records, and the offsets of timestamps (Kafka's ConsumerRecord and OffsetAndTimestamp)."""

from typing import NamedTuple

import msgspec

from sluice.client.metadata.cluster import NO_EPOCH

Header = tuple[str, bytes | None]


class ConsumerRecord(msgspec.Struct, frozen=True, gc=False):
    """One record. `timestamp` in ms, by the clock that `timestamp_type` says: 0 the producer's, 1 the broker's, -1
    there is none; `leader_epoch`: of the leader that wrote it, -1 where that is not known.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    leader_epoch: int


class OffsetAndTimestamp(NamedTuple):
    """The first record that is not older than was asked for."""

    offset: int
    timestamp: int
    leader_epoch: int = NO_EPOCH
