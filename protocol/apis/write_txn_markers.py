"""WriteTxnMarkers (key 27)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import V, Versions, boolean, int8, int16, int32, int64, string


class WritableTxnMarkerTopic(Message):
    """A part of the message."""

    name: string = ""
    partition_indexes: list[int32] = []


class WritableTxnMarker(Message):
    """A part of the message."""

    producer_id: int64 = 0
    producer_epoch: int16 = 0
    transaction_result: boolean = False
    topics: list[WritableTxnMarkerTopic] = []
    coordinator_epoch: int32 = 0
    transaction_version: Annotated[int8, V("2+")] = 0


class WriteTxnMarkersRequest(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 27
    VERSIONS: ClassVar[Versions] = Versions("0-2", flexible="1+")

    markers: list[WritableTxnMarker] = []


class WritableTxnMarkerPartitionResult(Message):
    """A part of the message."""

    partition_index: int32 = 0
    error_code: int16 = 0


class WritableTxnMarkerTopicResult(Message):
    """A part of the message."""

    name: string = ""
    partitions: list[WritableTxnMarkerPartitionResult] = []


class WritableTxnMarkerResult(Message):
    """A part of the message."""

    producer_id: int64 = 0
    topics: list[WritableTxnMarkerTopicResult] = []


class WriteTxnMarkersResponse(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 27
    VERSIONS: ClassVar[Versions] = Versions("0-2", flexible="1+")

    markers: list[WritableTxnMarkerResult] = []
