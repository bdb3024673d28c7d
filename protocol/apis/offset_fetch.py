"""OffsetFetch (key 9): how far a group has read, as it was committed.

Version 0 read from ZooKeeper. Version 2 can ask for all topics and has an error of the whole group (KIP-88); 3 adds the
throttle time (KIP-124); 4 changes how it is throttled (KIP-219); 5 adds leader epochs (KIP-320); 6 is flexible; 7 can
refuse offsets that an open transaction may still change (KIP-447); 8 asks for many groups at once (KIP-709); 9 says
which member of a KIP-848 group asks; 10 names topics by id (KIP-848).
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, Versions, boolean, int16, int32, int64, string, uuid


class OffsetFetchRequestTopic(Message):
    """Partitions of one topic, up to version 7."""

    name: Annotated[string, V("0-7", entity="topicName")] = ""
    partition_indexes: Annotated[list[int32], V("0-7", entity="partition")] = []


class OffsetFetchRequestTopics(Message):
    """Partitions of one topic, from version 8."""

    name: Annotated[string, V("8-9", entity="topicName")] = ""
    topic_id: Annotated[uuid, V("10+", entity="topicId")] = ZERO_UUID
    partition_indexes: Annotated[list[int32], V("8+", entity="partition")] = []


class OffsetFetchRequestGroup(Message):
    """One group, and which of its topics: null for all that have offsets."""

    group_id: Annotated[string, V("8+", entity="groupId")] = ""
    member_id: Annotated[string | None, V("9+", null="9+")] = None
    member_epoch: Annotated[int32, V("9+")] = -1  # -1: not a member of a KIP-848 group
    topics: Annotated[list[OffsetFetchRequestTopics] | None, V("8+", null="8+", selects_all="null")] = []


class OffsetFetchRequest(Message):
    """One group up to version 7, many from 8."""

    API_KEY: ClassVar[int] = 9
    VERSIONS: ClassVar[Versions] = Versions("0-10", flexible="6+")

    group_id: Annotated[string, V("0-7", entity="groupId")] = ""
    topics: Annotated[list[OffsetFetchRequestTopic] | None, V("0-7", null="2-7", selects_all="null")] = []
    groups: Annotated[list[OffsetFetchRequestGroup], V("8+")] = []
    require_stable: Annotated[boolean, V("7+")] = False  # UNSTABLE_OFFSET_COMMIT where one is pending


class OffsetFetchResponsePartition(Message):
    """A committed offset, up to version 7; -1 where there is none, which is no error."""

    partition_index: Annotated[int32, V("0-7", entity="partition")] = 0
    committed_offset: Annotated[int64, V("0-7", on_error=-1)] = 0
    committed_leader_epoch: Annotated[int32, V("5-7")] = -1
    metadata: Annotated[string | None, V("0-7", null="0-7")] = ""
    error_code: Annotated[int16, V("0-7", errors="fetched_offset")] = 0


class OffsetFetchResponseTopic(Message):
    """Partitions of one topic, up to version 7."""

    name: Annotated[string, V("0-7", entity="topicName")] = ""
    partitions: Annotated[list[OffsetFetchResponsePartition], V("0-7", answers="partition_indexes")] = []


class OffsetFetchResponsePartitions(Message):
    """A committed offset, from version 8; -1 where there is none, which is no error."""

    partition_index: Annotated[int32, V("8+", entity="partition")] = 0
    committed_offset: Annotated[int64, V("8+", on_error=-1)] = 0
    committed_leader_epoch: Annotated[int32, V("8+")] = -1
    metadata: Annotated[string | None, V("8+", null="8+")] = ""
    error_code: Annotated[int16, V("8+", errors="fetched_offset")] = 0


class OffsetFetchResponseTopics(Message):
    """Partitions of one topic, from version 8."""

    name: Annotated[string, V("8-9", entity="topicName")] = ""
    topic_id: Annotated[uuid, V("10+", entity="topicId")] = ZERO_UUID
    partitions: Annotated[list[OffsetFetchResponsePartitions], V("8+", answers="partition_indexes")] = []


class OffsetFetchResponseGroup(Message):
    """The offsets of one group."""

    group_id: Annotated[string, V("8+", entity="groupId")] = ""
    topics: Annotated[list[OffsetFetchResponseTopics], V("8+")] = []
    error_code: Annotated[
        int16, V("8+", errors="any coordinator UNKNOWN_MEMBER_ID STALE_MEMBER_EPOCH GROUP_ID_NOT_FOUND")
    ] = 0


class OffsetFetchResponse(Message):
    """The fields of the single group are those of versions 0 to 7."""

    API_KEY: ClassVar[int] = 9
    VERSIONS: ClassVar[Versions] = Versions("0-10", flexible="6+", client_throttles="4+")

    throttle_time_ms: Annotated[int32, V("3+")] = 0
    topics: Annotated[list[OffsetFetchResponseTopic], V("0-7")] = []
    error_code: Annotated[int16, V("2-7", errors="")] = 0
    groups: Annotated[list[OffsetFetchResponseGroup], V("8+")] = []
