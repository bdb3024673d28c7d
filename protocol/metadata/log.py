"""Records about the log itself and its controller: transactions (KIP-868), producer ids (KIP-730), no-ops."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.types import V, Versions, int8, int32, int64, string

from .message import MetadataMessage


class ProducerIdsRecord(MetadataMessage):
    """A broker was given a block of producer ids: those before `next_producer_id` are taken."""

    TYPE: ClassVar[int] = 15
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    broker_id: int32 = 0
    broker_epoch: int64 = -1
    next_producer_id: int64 = 0


class NoOpRecord(MetadataMessage):
    """Nothing; a controller writes it now and then, so that the log's end moves."""

    TYPE: ClassVar[int] = 20
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")


class ZkMigrationStateRecord(MetadataMessage):
    """How far a move from ZooKeeper had got."""

    TYPE: ClassVar[int] = 21
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    zk_migration_state: int8 = 0


class BeginTransactionRecord(MetadataMessage):
    """What follows counts once an EndTransactionRecord has come."""

    TYPE: ClassVar[int] = 23
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    name: Annotated[string | None, V("0+", null="0+", tag=0)] = None


class EndTransactionRecord(MetadataMessage):
    """What came since the BeginTransactionRecord counts."""

    TYPE: ClassVar[int] = 24
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")


class AbortTransactionRecord(MetadataMessage):
    """What came since the BeginTransactionRecord never was."""

    TYPE: ClassVar[int] = 25
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    reason: Annotated[string | None, V("0+", null="0+", tag=0)] = None
