"""Produce (key 0): record batches for partitions.

Versions 0 and 1 carry message sets of magic 0 or 1, version 2 of magic 1 (and answers with the append time), 3 and up
batches of magic 2 (KIP-98). 1 adds the throttle time (KIP-13); 5 the log's start; 6 nothing but another way to throttle
(KIP-219); 7 zstd (KIP-110); 8 errors by record (KIP-467); 9 is flexible; 10 names the new leader (KIP-951); 11 and 12
are about transactions (KIP-890) and change no field; 13 names topics by id (KIP-516).
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, Single, V, Versions, int16, int32, int64, records_, string, uuid


class PartitionProduceData(Message):
    """Record batches for one partition. From magic 2 on exactly one batch."""

    index: Annotated[int32, V(entity="partition")] = 0
    records: Annotated[records_ | None, V("0+", null="0+")] = None


class TopicProduceData(Message):
    """Partitions of one topic."""

    name: Annotated[string, V("0-12", entity="topicName")] = ""
    topic_id: Annotated[uuid, V("13+", entity="topicId")] = ZERO_UUID
    partition_data: list[PartitionProduceData] = []


class ProduceRequest(Message):
    """Answered at once, after the leader wrote, or after all in-sync replicas did: `acks` 0, 1, -1."""

    API_KEY: ClassVar[int] = 0
    VERSIONS: ClassVar[Versions] = Versions("0-13", flexible="9+")
    SINGLE: ClassVar[Single] = Single("topic_data.partition_data", null="transactional_id")

    transactional_id: Annotated[string | None, V("3+", null="3+", entity="transactionalId")] = None
    acks: int16 = 0  # -1: all in-sync replicas
    timeout_ms: int32 = 0  # how long to wait for replicas
    topic_data: list[TopicProduceData] = []


class BatchIndexAndErrorMessage(Message):
    """A record that made its batch be refused, by its index in the batch."""

    batch_index: Annotated[int32, V("8+")] = 0
    batch_index_error_message: Annotated[string | None, V("8+", null="8+")] = None


class LeaderIdAndEpoch(Message):
    """Who leads the partition now; -1 where that is not known."""

    leader_id: Annotated[int32, V("10+")] = -1
    leader_epoch: Annotated[int32, V("10+")] = -1


class PartitionProduceResponse(Message):
    """What became of one partition's records."""

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
    log_append_time_ms: Annotated[int64, V("2+")] = -1  # -1: the topic keeps the producer's timestamps
    log_start_offset: Annotated[int64, V("5+")] = -1
    record_errors: Annotated[list[BatchIndexAndErrorMessage], V("8+")] = []
    error_message: Annotated[string | None, V("8+", null="8+")] = None
    current_leader: Annotated[LeaderIdAndEpoch | None, V("10+", tag=0)] = None


class TopicProduceResponse(Message):
    """Partitions of one topic."""

    name: Annotated[string, V("0-12", entity="topicName")] = ""
    topic_id: Annotated[uuid, V("13+", entity="topicId")] = ZERO_UUID
    partition_responses: Annotated[list[PartitionProduceResponse], V(answers="partition_data")] = []


class NodeEndpoint(Message):
    """Where a leader named above listens."""

    node_id: Annotated[int32, V("10+")] = 0
    host: Annotated[string, V("10+")] = ""
    port: Annotated[int32, V("10+")] = 0
    rack: Annotated[string | None, V("10+", null="10+")] = None


class ProduceResponse(Message):
    """There is none where `acks` was 0."""

    API_KEY: ClassVar[int] = 0
    VERSIONS: ClassVar[Versions] = Versions("0-13", flexible="9+", client_throttles="6+")
    SINGLE: ClassVar[Single] = Single("responses.partition_responses", null="error_message", empty="record_errors")

    responses: Annotated[list[TopicProduceResponse], V(answers="topic_data")] = []
    throttle_time_ms: Annotated[int32, V("1+")] = 0
    node_endpoints: Annotated[list[NodeEndpoint], V("10+", tag=0)] = []
