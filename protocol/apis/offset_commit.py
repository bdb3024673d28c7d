"""OffsetCommit (key 8): commits a group's offsets to its coordinator.

v0: stored in ZooKeeper; v1: member, commit timestamp; v2: retention time instead of the timestamp; v3: throttle time
(KIP-124); v5: without retention time (KIP-211); v6: leader epochs (KIP-320); v7: static members (KIP-345); v9: KIP-848
groups and their error codes; v10: topic ids (KIP-848).
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, int16, int32, int64, string, uuid


class OffsetCommitRequestPartition(Message):
    partition_index: Annotated[int32, V(entity="partition")] = 0
    committed_offset: int64 = 0
    committed_leader_epoch: Annotated[int32, V("6+")] = -1  # of the previous record; -1: unknown
    commit_timestamp: Annotated[int64, V("1")] = -1  # -1: the time of receipt
    committed_metadata: Annotated[string | None, V("0+", null="0+")] = ""


class OffsetCommitRequestTopic(Message):
    name: Annotated[string, V("0-9", entity="topicName")] = ""
    topic_id: Annotated[uuid, V("10+", entity="topicId")] = ZERO_UUID
    partitions: list[OffsetCommitRequestPartition] = []


class OffsetCommitRequest(Message):
    """From a group member, or (generation -1, no member id) from a client without membership."""

    group_id: Annotated[string, V(entity="groupId")] = ""
    generation_id_or_member_epoch: Annotated[int32, V("1+")] = -1
    member_id: Annotated[string, V("1+")] = ""
    group_instance_id: Annotated[string | None, V("7+", null="7+")] = None
    retention_time_ms: Annotated[int64, V("2-4")] = -1  # -1: the broker's default
    topics: list[OffsetCommitRequestTopic] = []


class OffsetCommitResponsePartition(Message):
    partition_index: Annotated[int32, V(entity="partition")] = 0
    error_code: Annotated[int16, V(errors="any commit")] = 0


class OffsetCommitResponseTopic(Message):
    name: Annotated[string, V("0-9", entity="topicName")] = ""
    topic_id: Annotated[uuid, V("10+", entity="topicId")] = ZERO_UUID
    partitions: list[OffsetCommitResponsePartition] = []


class OffsetCommitResponse(Message):
    """Errors of the whole commit are repeated in each partition."""

    throttle_time_ms: Annotated[int32, V("3+")] = 0
    topics: list[OffsetCommitResponseTopic] = []
