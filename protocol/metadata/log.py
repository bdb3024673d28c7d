"""Records about the log and its controller: transactions (KIP-868), producer ids (KIP-730), no-ops."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.types import V, Versions, int8, int32, int64, string

from .message import MetadataMessage


class ProducerIdsRecord(MetadataMessage):
    TYPE: ClassVar[int] = 15
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    broker_id: int32 = 0
    broker_epoch: int64 = -1
    next_producer_id: int64 = 0


class NoOpRecord(MetadataMessage):
    TYPE: ClassVar[int] = 20
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")


class ZkMigrationStateRecord(MetadataMessage):
    TYPE: ClassVar[int] = 21
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    zk_migration_state: int8 = 0


class BeginTransactionRecord(MetadataMessage):
    """The start of a transaction; the records after it take effect with its EndTransactionRecord."""

    TYPE: ClassVar[int] = 23
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    name: Annotated[string | None, V("0+", null="0+", tag=0)] = None


class EndTransactionRecord(MetadataMessage):
    TYPE: ClassVar[int] = 24
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")


class AbortTransactionRecord(MetadataMessage):
    TYPE: ClassVar[int] = 25
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    reason: Annotated[string | None, V("0+", null="0+", tag=0)] = None
