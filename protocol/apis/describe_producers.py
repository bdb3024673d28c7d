"""DescribeProducers (key 61): the state of partitions' idempotent and transactional producers (KIP-664)."""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, int16, int32, int64, string


class TopicRequest(Message):
    name: Annotated[string, V(entity="topicName")] = ""
    partition_indexes: Annotated[list[int32], V(entity="partition")] = []


class DescribeProducersRequest(Message):
    topics: list[TopicRequest] = []


class ProducerState(Message):
    producer_id: int64 = 0
    producer_epoch: int32 = 0
    last_sequence: int32 = -1  # -1: none
    last_timestamp: int64 = -1
    coordinator_epoch: int32 = 0  # of the last marker; -1: none
    current_txn_start_offset: int64 = -1  # -1: no open transaction


class PartitionResponse(Message):
    partition_index: Annotated[int32, V(entity="partition")] = 0
    error_code: Annotated[int16, V(errors="any moved INVALID_TOPIC_EXCEPTION")] = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = None
    active_producers: list[ProducerState] = []


class TopicResponse(Message):
    name: Annotated[string, V(entity="topicName")] = ""
    partitions: Annotated[list[PartitionResponse], V(answers="partition_indexes")] = []


class DescribeProducersResponse(Message):
    throttle_time_ms: int32 = 0
    topics: list[TopicResponse] = []
