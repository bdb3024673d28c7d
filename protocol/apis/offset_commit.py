"""OffsetCommit (key 8): how far a group has read, kept by its coordinator.

Version 1 adds the member that commits and a timestamp of the commit, which 2 replaces by a retention time; 3 adds the
throttle time (KIP-124); 4 changes how it is throttled (KIP-219); 5 leaves retention to the broker (KIP-211); 6 adds
leader epochs (KIP-320); 7 static members (KIP-345); 8 is flexible; 9 serves members of KIP-848 groups and brings new
error codes; 10 names topics by id (KIP-848). Version 0 was kept in ZooKeeper.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, Versions, int16, int32, int64, string, uuid


class OffsetCommitRequestPartition(Message):
    """The offset of the record to read next, and what the client wants to remember with it."""

    partition_index: Annotated[int32, V(entity="partition")] = 0
    committed_offset: int64 = 0
    committed_leader_epoch: Annotated[int32, V("6+")] = -1  # of the record before; -1: not known
    commit_timestamp: Annotated[int64, V("1")] = -1  # -1: when it is received
    committed_metadata: Annotated[string | None, V("0+", null="0+")] = ""


class OffsetCommitRequestTopic(Message):
    """Partitions of one topic."""

    name: Annotated[string, V("0-9", entity="topicName")] = ""
    topic_id: Annotated[uuid, V("10+", entity="topicId")] = ZERO_UUID
    partitions: list[OffsetCommitRequestPartition] = []


class OffsetCommitRequest(Message):
    """From a member of a group, or (generation -1, no member id) from someone outside of any."""

    API_KEY: ClassVar[int] = 8
    VERSIONS: ClassVar[Versions] = Versions("0-10", flexible="8+")

    group_id: Annotated[string, V(entity="groupId")] = ""
    generation_id_or_member_epoch: Annotated[int32, V("1+")] = -1
    member_id: Annotated[string, V("1+")] = ""
    group_instance_id: Annotated[string | None, V("7+", null="7+")] = None
    retention_time_ms: Annotated[int64, V("2-4")] = -1  # -1: as the broker is configured
    topics: list[OffsetCommitRequestTopic] = []


class OffsetCommitResponsePartition(Message):
    """What became of one offset."""

    partition_index: Annotated[int32, V(entity="partition")] = 0
    error_code: Annotated[int16, V(errors="any commit")] = 0


class OffsetCommitResponseTopic(Message):
    """Partitions of one topic."""

    name: Annotated[string, V("0-9", entity="topicName")] = ""
    topic_id: Annotated[uuid, V("10+", entity="topicId")] = ZERO_UUID
    partitions: list[OffsetCommitResponsePartition] = []


class OffsetCommitResponse(Message):
    """What is wrong with the whole commit is said of each of its partitions."""

    API_KEY: ClassVar[int] = 8
    VERSIONS: ClassVar[Versions] = Versions("0-10", flexible="8+", client_throttles="4+")

    throttle_time_ms: Annotated[int32, V("3+")] = 0
    topics: list[OffsetCommitResponseTopic] = []
