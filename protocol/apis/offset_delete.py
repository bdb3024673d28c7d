"""OffsetDelete (key 47)."""

from __future__ import annotations

from typing import ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import Versions, int16, int32, string


class OffsetDeleteRequestPartition(Message):
    """A part of the message."""

    partition_index: int32 = 0


class OffsetDeleteRequestTopic(Message):
    """A part of the message."""

    name: string = ""
    partitions: list[OffsetDeleteRequestPartition] = []


class OffsetDeleteRequest(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 47
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="none")

    group_id: string = ""
    topics: list[OffsetDeleteRequestTopic] = []


class OffsetDeleteResponsePartition(Message):
    """A part of the message."""

    partition_index: int32 = 0
    error_code: int16 = 0


class OffsetDeleteResponseTopic(Message):
    """A part of the message."""

    name: string = ""
    partitions: list[OffsetDeleteResponsePartition] = []


class OffsetDeleteResponse(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 47
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="none")

    error_code: int16 = 0
    throttle_time_ms: int32 = 0
    topics: list[OffsetDeleteResponseTopic] = []
