"""OffsetFetch (key 9): returns a group's committed offsets.

v0: stored in ZooKeeper; v2: all topics, error of the group (KIP-88); v3: throttle time (KIP-124); v5: leader epochs
(KIP-320); v7: may reject offsets with a pending transaction (KIP-447); v8: several groups (KIP-709); v9: members of
KIP-848 groups; v10: topic ids (KIP-848).
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, boolean, int16, int32, int64, string, uuid


class OffsetFetchRequestTopic(Message):
    name: Annotated[string, V("0-9", entity="topicName")] = ""
    topic_id: Annotated[uuid, V("10+", entity="topicId")] = ZERO_UUID
    partition_indexes: Annotated[list[int32], V(entity="partition")] = []


class OffsetFetchRequestGroup(Message):
    group_id: Annotated[string, V("8+", entity="groupId")] = ""
    member_id: Annotated[string | None, V("9+", null="9+")] = None
    member_epoch: Annotated[int32, V("9+")] = -1  # -1: not a KIP-848 member
    topics: Annotated[list[OffsetFetchRequestTopic] | None, V("8+", null="8+", selects_all="null")] = []


class OffsetFetchRequest(Message):
    group_id: Annotated[string, V("0-7", entity="groupId")] = ""
    topics: Annotated[list[OffsetFetchRequestTopic] | None, V("0-7", null="2-7", selects_all="null")] = []
    groups: Annotated[list[OffsetFetchRequestGroup], V("8+")] = []
    require_stable: Annotated[boolean, V("7+")] = False  # return UNSTABLE_OFFSET_COMMIT for pending offsets


class OffsetFetchResponsePartition(Message):
    """A committed offset; -1, without an error, if there is none."""

    partition_index: Annotated[int32, V(entity="partition")] = 0
    committed_offset: Annotated[int64, V(on_error=-1)] = 0
    committed_leader_epoch: Annotated[int32, V("5+")] = -1
    metadata: Annotated[string | None, V(null="0+")] = ""
    error_code: Annotated[int16, V(errors="fetched_offset")] = 0


class OffsetFetchResponseTopic(Message):
    name: Annotated[string, V("0-9", entity="topicName")] = ""
    topic_id: Annotated[uuid, V("10+", entity="topicId")] = ZERO_UUID
    partitions: Annotated[list[OffsetFetchResponsePartition], V(answers="partition_indexes")] = []


class OffsetFetchResponseGroup(Message):
    group_id: Annotated[string, V("8+", entity="groupId")] = ""
    topics: Annotated[list[OffsetFetchResponseTopic], V("8+")] = []
    error_code: Annotated[
        int16, V("8+", errors="any coordinator UNKNOWN_MEMBER_ID STALE_MEMBER_EPOCH GROUP_ID_NOT_FOUND")
    ] = 0


class OffsetFetchResponse(Message):
    throttle_time_ms: Annotated[int32, V("3+")] = 0
    topics: Annotated[list[OffsetFetchResponseTopic], V("0-7")] = []
    error_code: Annotated[int16, V("2-7", errors="")] = 0
    groups: Annotated[list[OffsetFetchResponseGroup], V("8+")] = []
