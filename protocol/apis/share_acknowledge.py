"""ShareAcknowledge (key 79): acknowledges records of a share group (KIP-932).

v0: early access of Kafka 4.0; v2: renewal of acquisition locks (KIP-1222).
"""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, boolean, int16, int32, string, uuid

from .fetch import NodeEndpoint
from .share_fetch import AcknowledgementBatch, LeaderIdAndEpoch


class AcknowledgePartition(Message):
    partition_index: Annotated[int32, V(entity="partition")] = 0
    acknowledgement_batches: list[AcknowledgementBatch] = []


class AcknowledgeTopic(Message):
    topic_id: Annotated[uuid, V(entity="topicId")] = ZERO_UUID
    partitions: list[AcknowledgePartition] = []


class ShareAcknowledgeRequest(Message):
    group_id: Annotated[string | None, V("0+", null="0+", entity="groupId")] = None
    member_id: Annotated[string | None, V("0+", null="0+")] = ""
    share_session_epoch: int32 = 0  # -1: close the session
    is_renew_ack: Annotated[boolean, V("2+")] = False
    topics: list[AcknowledgeTopic] = []


class PartitionData(Message):
    partition_index: Annotated[int32, V(entity="partition")] = 0
    error_code: Annotated[int16, V(errors="moved UNKNOWN_TOPIC_ID INVALID_RECORD_STATE")] = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = None
    current_leader: LeaderIdAndEpoch = field(default_factory=LeaderIdAndEpoch)


class ShareAcknowledgeTopicResponse(Message):
    topic_id: Annotated[uuid, V(entity="topicId")] = ZERO_UUID
    partitions: list[PartitionData] = []


class ShareAcknowledgeResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: Annotated[int16, V(errors="any share_session")] = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = None
    acquisition_lock_timeout_ms: Annotated[int32, V("2+")] = 0
    responses: Annotated[list[ShareAcknowledgeTopicResponse], V(answers="topics")] = []
    node_endpoints: list[NodeEndpoint] = []
