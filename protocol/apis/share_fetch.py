"""ShareFetch (key 78): acquires records of a share group, and acknowledges acquired ones (KIP-932).

v0: early access of Kafka 4.0; v1: limits in records instead of bytes per partition; v2: acquire mode (KIP-1206),
renewed acquisition locks (KIP-1222).
"""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, boolean, int8, int16, int32, int64, records_, string, uuid

from .fetch import NodeEndpoint


class AcknowledgementBatch(Message):
    first_offset: int64 = 0
    last_offset: int64 = 0
    acknowledge_types: list[int8] = []  # 0: gap, 1: accept, 2: release, 3: reject, 4: renew


class FetchPartition(Message):
    partition_index: Annotated[int32, V(entity="partition")] = 0
    partition_max_bytes: Annotated[int32, V("0")] = 0  # 0: only acknowledge
    acknowledgement_batches: list[AcknowledgementBatch] = []


class FetchTopic(Message):
    topic_id: Annotated[uuid, V(entity="topicId")] = ZERO_UUID
    partitions: list[FetchPartition] = []


class ForgottenTopic(Message):
    topic_id: Annotated[uuid, V(entity="topicId")] = ZERO_UUID
    partitions: Annotated[list[int32], V(entity="partition")] = []


class ShareFetchRequest(Message):
    group_id: Annotated[string | None, V("0+", null="0+", entity="groupId")] = None
    member_id: Annotated[string | None, V("0+", null="0+")] = ""
    share_session_epoch: int32 = 0  # 0: new session, -1: close it
    max_wait_ms: int32 = 0
    min_bytes: int32 = 0
    max_bytes: int32 = 0x7FFF_FFFF
    max_records: Annotated[int32, V("1+")] = 0
    batch_size: Annotated[int32, V("1+")] = 0
    share_acquire_mode: Annotated[int8, V("2+")] = 0  # 0: whole batches, 1: at most max_records
    is_renew_ack: Annotated[boolean, V("2+")] = False
    topics: list[FetchTopic] = []
    forgotten_topics_data: list[ForgottenTopic] = []


class LeaderIdAndEpoch(Message):
    leader_id: Annotated[int32, V(leader=True)] = 0
    leader_epoch: int32 = 0


class AcquiredRecords(Message):
    first_offset: int64 = 0
    last_offset: int64 = 0
    delivery_count: int16 = 0


class PartitionData(Message):
    partition_index: Annotated[int32, V(entity="partition")] = 0
    error_code: Annotated[int16, V(errors="moved UNKNOWN_TOPIC_ID CORRUPT_MESSAGE")] = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = None
    acknowledge_error_code: int16 = 0
    acknowledge_error_message: Annotated[string | None, V("0+", null="0+")] = None
    current_leader: LeaderIdAndEpoch = field(default_factory=LeaderIdAndEpoch)
    records: Annotated[records_ | None, V("0+", null="0")] = b""
    acquired_records: list[AcquiredRecords] = []


class ShareFetchableTopicResponse(Message):
    topic_id: Annotated[uuid, V(entity="topicId")] = ZERO_UUID
    partitions: list[PartitionData] = []


class ShareFetchResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: Annotated[int16, V(errors="any share_session")] = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = None
    acquisition_lock_timeout_ms: Annotated[int32, V("1+")] = 0
    responses: Annotated[list[ShareFetchableTopicResponse], V(answers="topics")] = []
    node_endpoints: list[NodeEndpoint] = []
