"""Produce (key 0): appends record batches to partitions.

v0 and v1: message sets of magic 0 or 1; v2: of magic 1, and returns the append time; v3: batches of magic 2 (KIP-98).
v1: throttle time (KIP-13); v5: log start offset; v7: zstd (KIP-110); v8: record errors (KIP-467); v10: the new leader
(KIP-951); v11 and v12: transactions, no new fields (KIP-890); v13: topic ids (KIP-516).
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, Single, V, int16, int32, int64, records_, string, uuid

from .fetch import LeaderIdAndEpoch, NodeEndpoint


class PartitionProduceData(Message):
    index: Annotated[int32, V(entity="partition")] = 0
    records: Annotated[records_ | None, V("0+", null="0+")] = None


class TopicProduceData(Message):
    name: Annotated[string, V("0-12", entity="topicName")] = ""
    topic_id: Annotated[uuid, V("13+", entity="topicId")] = ZERO_UUID
    partition_data: list[PartitionProduceData] = []


class ProduceRequest(Message):
    """With `acks` 0 there is no response."""

    SINGLE: ClassVar[Single] = Single("topic_data.partition_data", null="transactional_id")

    transactional_id: Annotated[string | None, V("3+", null="3+", entity="transactionalId")] = None
    acks: int16 = 0  # -1: all in-sync replicas
    timeout_ms: int32 = 0
    topic_data: list[TopicProduceData] = []


class BatchIndexAndErrorMessage(Message):
    batch_index: Annotated[int32, V("8+")] = 0
    batch_index_error_message: Annotated[string | None, V("8+", null="8+")] = None


class PartitionProduceResponse(Message):
    index: Annotated[int32, V(entity="partition")] = 0
    error_code: Annotated[
        int16,
        V(
            errors="any moved producer CORRUPT_MESSAGE MESSAGE_TOO_LARGE INVALID_TOPIC_EXCEPTION"
            " RECORD_LIST_TOO_LARGE NOT_ENOUGH_REPLICAS NOT_ENOUGH_REPLICAS_AFTER_APPEND"
            " INVALID_REQUIRED_ACKS INVALID_TIMESTAMP UNSUPPORTED_FOR_MESSAGE_FORMAT"
            " UNSUPPORTED_COMPRESSION_TYPE CLUSTER_AUTHORIZATION_FAILED INVALID_RECORD"
            " OUT_OF_ORDER_SEQUENCE_NUMBER DUPLICATE_SEQUENCE_NUMBER UNKNOWN_PRODUCER_ID UNKNOWN_TOPIC_ID"
            " POLICY_VIOLATION BROKER_NOT_AVAILABLE COORDINATOR_LOAD_IN_PROGRESS COORDINATOR_NOT_AVAILABLE"
            " NOT_COORDINATOR"
        ),
    ] = 0
    base_offset: Annotated[int64, V(on_error=-1)] = 0
    log_append_time_ms: Annotated[int64, V("2+")] = -1  # -1: the topic has the producer's timestamps
    log_start_offset: Annotated[int64, V("5+")] = -1
    record_errors: Annotated[list[BatchIndexAndErrorMessage], V("8+")] = []
    error_message: Annotated[string | None, V("8+", null="8+")] = None
    current_leader: Annotated[LeaderIdAndEpoch | None, V("10+", tag=0)] = None


class TopicProduceResponse(Message):
    name: Annotated[string, V("0-12", entity="topicName")] = ""
    topic_id: Annotated[uuid, V("13+", entity="topicId")] = ZERO_UUID
    partition_responses: Annotated[list[PartitionProduceResponse], V(answers="partition_data")] = []


class ProduceResponse(Message):
    SINGLE: ClassVar[Single] = Single("responses.partition_responses", null="error_message", empty="record_errors")

    responses: Annotated[list[TopicProduceResponse], V(answers="topic_data")] = []
    throttle_time_ms: Annotated[int32, V("1+")] = 0
    node_endpoints: Annotated[list[NodeEndpoint], V("10+", tag=0)] = []
