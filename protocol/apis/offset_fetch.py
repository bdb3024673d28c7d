"""OffsetFetch (key 9)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, Versions, boolean, int16, int32, int64, string, uuid


class OffsetFetchRequestTopic(Message):
    """A part of the message."""

    name: Annotated[string, V("0-7")] = ""
    partition_indexes: Annotated[list[int32], V("0-7")] = []


class OffsetFetchRequestTopics(Message):
    """A part of the message."""

    name: Annotated[string, V("8-9")] = ""
    topic_id: Annotated[uuid, V("10+")] = ZERO_UUID
    partition_indexes: Annotated[list[int32], V("8+")] = []


class OffsetFetchRequestGroup(Message):
    """A part of the message."""

    group_id: Annotated[string, V("8+")] = ""
    member_id: Annotated[string | None, V("9+", null="9+")] = None
    member_epoch: Annotated[int32, V("9+")] = -1
    topics: Annotated[list[OffsetFetchRequestTopics] | None, V("8+", null="8+")] = []


class OffsetFetchRequest(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 9
    VERSIONS: ClassVar[Versions] = Versions("0-10", flexible="6+")

    group_id: Annotated[string, V("0-7")] = ""
    topics: Annotated[list[OffsetFetchRequestTopic] | None, V("0-7", null="2-7")] = []
    groups: Annotated[list[OffsetFetchRequestGroup], V("8+")] = []
    require_stable: Annotated[boolean, V("7+")] = False


class OffsetFetchResponsePartition(Message):
    """A part of the message."""

    partition_index: Annotated[int32, V("0-7")] = 0
    committed_offset: Annotated[int64, V("0-7")] = 0
    committed_leader_epoch: Annotated[int32, V("5-7")] = -1
    metadata: Annotated[string | None, V("0-7", null="0-7")] = ""
    error_code: Annotated[int16, V("0-7")] = 0


class OffsetFetchResponseTopic(Message):
    """A part of the message."""

    name: Annotated[string, V("0-7")] = ""
    partitions: Annotated[list[OffsetFetchResponsePartition], V("0-7")] = []


class OffsetFetchResponsePartitions(Message):
    """A part of the message."""

    partition_index: Annotated[int32, V("8+")] = 0
    committed_offset: Annotated[int64, V("8+")] = 0
    committed_leader_epoch: Annotated[int32, V("8+")] = -1
    metadata: Annotated[string | None, V("8+", null="8+")] = ""
    error_code: Annotated[int16, V("8+")] = 0


class OffsetFetchResponseTopics(Message):
    """A part of the message."""

    name: Annotated[string, V("8-9")] = ""
    topic_id: Annotated[uuid, V("10+")] = ZERO_UUID
    partitions: Annotated[list[OffsetFetchResponsePartitions], V("8+")] = []


class OffsetFetchResponseGroup(Message):
    """A part of the message."""

    group_id: Annotated[string, V("8+")] = ""
    topics: Annotated[list[OffsetFetchResponseTopics], V("8+")] = []
    error_code: Annotated[int16, V("8+")] = 0


class OffsetFetchResponse(Message):
    """A part of the message."""

    API_KEY: ClassVar[int] = 9
    VERSIONS: ClassVar[Versions] = Versions("0-10", flexible="6+")

    throttle_time_ms: Annotated[int32, V("3+")] = 0
    topics: Annotated[list[OffsetFetchResponseTopic], V("0-7")] = []
    error_code: Annotated[int16, V("2-7")] = 0
    groups: Annotated[list[OffsetFetchResponseGroup], V("8+")] = []
