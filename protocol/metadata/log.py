"""Records about the log and its controller: transactions (KIP-868), producer ids (KIP-730), no-ops."""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.types import V, int8, int32, int64, string

from .message import MetadataMessage


class ProducerIdsRecord(MetadataMessage):
    broker_id: int32 = 0
    broker_epoch: int64 = -1
    next_producer_id: int64 = 0


class NoOpRecord(MetadataMessage):
    """A record without effect, which advances the log."""


class ZkMigrationStateRecord(MetadataMessage):
    zk_migration_state: int8 = 0


class BeginTransactionRecord(MetadataMessage):
    """The start of a transaction; the records after it take effect with its EndTransactionRecord."""

    name: Annotated[string | None, V("0+", null="0+", tag=0)] = None


class EndTransactionRecord(MetadataMessage):
    """The end of a transaction, whose records take effect."""


class AbortTransactionRecord(MetadataMessage):
    reason: Annotated[string | None, V("0+", null="0+", tag=0)] = None
