"""WriteTxnMarkers (key 27): a transaction coordinator tells partitions' leaders how a transaction ended (KIP-98).

Version 1 is flexible; 2 adds the version of transactions that the producer uses (KIP-1228). Brokers send it, and an
admin client that aborts a transaction left hanging (KIP-664).
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, boolean, int8, int16, int32, int64, string


class WritableTxnMarkerTopic(Message):
    """Partitions of one topic."""

    name: Annotated[string, V(entity="topicName")] = ""
    partition_indexes: Annotated[list[int32], V(entity="partition")] = []


class WritableTxnMarker(Message):
    """How one transaction ended, and the partitions that were part of it."""

    producer_id: int64 = 0
    producer_epoch: int16 = 0
    transaction_result: boolean = False  # True: committed, False: aborted
    topics: list[WritableTxnMarkerTopic] = []
    coordinator_epoch: int32 = 0  # a marker of a smaller one comes too late
    transaction_version: Annotated[int8, V("2+")] = 0  # 2: KIP-890 part 2, below: before


class WriteTxnMarkersRequest(Message):
    """Of any number of transactions."""

    API_KEY: ClassVar[int] = 27
    VERSIONS: ClassVar[Versions] = Versions("0-2", flexible="1+")

    markers: list[WritableTxnMarker] = []


class WritableTxnMarkerPartitionResult(Message):
    """Whether the marker was written."""

    partition_index: Annotated[int32, V(entity="partition")] = 0
    error_code: Annotated[int16, V(errors="any moved txn_coordinator CORRUPT_MESSAGE CLUSTER_AUTHORIZATION_FAILED")] = 0


class WritableTxnMarkerTopicResult(Message):
    """Partitions of one topic."""

    name: Annotated[string, V(entity="topicName")] = ""
    partitions: Annotated[list[WritableTxnMarkerPartitionResult], V(answers="partition_indexes")] = []


class WritableTxnMarkerResult(Message):
    """The markers of one producer."""

    producer_id: Annotated[int64, V(map_key=True)] = 0
    topics: list[WritableTxnMarkerTopicResult] = []


class WriteTxnMarkersResponse(Message):
    """One result a producer."""

    API_KEY: ClassVar[int] = 27
    VERSIONS: ClassVar[Versions] = Versions("0-2", flexible="1+")

    markers: list[WritableTxnMarkerResult] = []
