"""TxnOffsetCommit (key 28): offsets of a group that count only if a transaction is committed (KIP-98).

Version 1 changes how it is throttled (KIP-219); 2 adds leader epochs (KIP-320); 3 is flexible and says which member
commits (KIP-447); 4 may answer TRANSACTION_ABORTABLE; 5 adds the group to the transaction by itself (KIP-890); 6 names
topics by id (KIP-1319).
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, Versions, int16, int32, int64, string, uuid


class TxnOffsetCommitRequestPartition(Message):
    """The offset of the record to read next, and what the client wants to remember with it."""

    partition_index: Annotated[int32, V(entity="partition")] = 0
    committed_offset: int64 = 0
    committed_leader_epoch: Annotated[int32, V("2+")] = -1  # of the record before; -1: not known
    committed_metadata: Annotated[string | None, V("0+", null="0+")] = ""


class TxnOffsetCommitRequestTopic(Message):
    """Partitions of one topic."""

    name: Annotated[string, V("0-5", entity="topicName")] = ""
    topic_id: Annotated[uuid, V("6+", entity="topicId")] = ZERO_UUID
    partitions: list[TxnOffsetCommitRequestPartition] = []


class TxnOffsetCommitRequest(Message):
    """Goes to the group's coordinator. Without member (generation -1, no member id) nobody is fenced."""

    API_KEY: ClassVar[int] = 28
    VERSIONS: ClassVar[Versions] = Versions("0-6", flexible="3+")

    transactional_id: Annotated[string, V(entity="transactionalId")] = ""
    group_id: Annotated[string, V(entity="groupId")] = ""
    producer_id: int64 = 0
    producer_epoch: int16 = 0
    generation_id_or_member_epoch: Annotated[int32, V("3+")] = -1
    member_id: Annotated[string, V("3+")] = ""
    group_instance_id: Annotated[string | None, V("3+", null="3+")] = None
    topics: list[TxnOffsetCommitRequestTopic] = []


class TxnOffsetCommitResponsePartition(Message):
    """What became of one offset."""

    partition_index: Annotated[int32, V(entity="partition")] = 0
    error_code: Annotated[int16, V(errors="any commit producer")] = 0


class TxnOffsetCommitResponseTopic(Message):
    """Partitions of one topic."""

    name: Annotated[string, V("0-5", entity="topicName")] = ""
    topic_id: Annotated[uuid, V("6+", entity="topicId")] = ZERO_UUID
    partitions: list[TxnOffsetCommitResponsePartition] = []


class TxnOffsetCommitResponse(Message):
    """What is wrong with the whole commit is said of each of its partitions."""

    API_KEY: ClassVar[int] = 28
    VERSIONS: ClassVar[Versions] = Versions("0-6", flexible="3+", client_throttles="1+")

    throttle_time_ms: int32 = 0
    topics: list[TxnOffsetCommitResponseTopic] = []
