"""The results of a consumer: records, and offsets of timestamps (Kafka's ConsumerRecord and OffsetAndTimestamp)."""

from typing import NamedTuple

import msgspec

from sluice.client.metadata.cluster import NO_EPOCH

Header = tuple[str, bytes | None]


class ConsumerRecord(msgspec.Struct, frozen=True, gc=False):
    """One record.

    Attributes:
        timestamp: In ms.
        timestamp_type: 0: set by the producer, 1: set by the broker, -1: no timestamp.
        leader_epoch: Epoch of the leader that appended the record; -1 if unknown.
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
    """The first offset at or after a timestamp."""

    offset: int
    timestamp: int
    leader_epoch: int = NO_EPOCH
