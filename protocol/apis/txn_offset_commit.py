"""TxnOffsetCommit (key 28): a group's offsets, committed only together with a transaction (KIP-98).

v2: leader epochs (KIP-320); v3: the member (KIP-447); v4: TRANSACTION_ABORTABLE; v5: adds the group to the transaction
automatically (KIP-890); v6: topic ids (KIP-1319).
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, int16, int32, int64, string, uuid


class TxnOffsetCommitRequestPartition(Message):
    partition_index: Annotated[int32, V(entity="partition")] = 0
    committed_offset: int64 = 0
    committed_leader_epoch: Annotated[int32, V("2+")] = -1  # of the previous record; -1: unknown
    committed_metadata: Annotated[string | None, V("0+", null="0+")] = ""


class TxnOffsetCommitRequestTopic(Message):
    name: Annotated[string, V("0-5", entity="topicName")] = ""
    topic_id: Annotated[uuid, V("6+", entity="topicId")] = ZERO_UUID
    partitions: list[TxnOffsetCommitRequestPartition] = []


class TxnOffsetCommitRequest(Message):
    """Sent to the group's coordinator. Without a member (generation -1, no member id) there is no fencing."""

    transactional_id: Annotated[string, V(entity="transactionalId")] = ""
    group_id: Annotated[string, V(entity="groupId")] = ""
    producer_id: int64 = 0
    producer_epoch: int16 = 0
    generation_id_or_member_epoch: Annotated[int32, V("3+")] = -1
    member_id: Annotated[string, V("3+")] = ""
    group_instance_id: Annotated[string | None, V("3+", null="3+")] = None
    topics: list[TxnOffsetCommitRequestTopic] = []


class TxnOffsetCommitResponsePartition(Message):
    partition_index: Annotated[int32, V(entity="partition")] = 0
    error_code: Annotated[int16, V(errors="any commit producer")] = 0


class TxnOffsetCommitResponseTopic(Message):
    name: Annotated[string, V("0-5", entity="topicName")] = ""
    topic_id: Annotated[uuid, V("6+", entity="topicId")] = ZERO_UUID
    partitions: list[TxnOffsetCommitResponsePartition] = []


class TxnOffsetCommitResponse(Message):
    """Errors of the whole commit are repeated in each partition."""

    throttle_time_ms: int32 = 0
    topics: list[TxnOffsetCommitResponseTopic] = []
