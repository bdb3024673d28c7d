"""DescribeQuorum (key 55): leader, voters and observers of the metadata log (KIP-595).

v1: fetch times (KIP-836); v2: directories, nodes and error messages (KIP-853).
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import CONTROLLER, ZERO_UUID, V, int16, int32, int64, string, uint16, uuid


class PartitionData(Message):
    partition_index: Annotated[int32, V(entity="partition")] = 0


class TopicData(Message):
    topic_name: Annotated[string, V(entity="topicName")] = ""
    partitions: list[PartitionData] = []


class DescribeQuorumRequest(Message):
    topics: list[TopicData] = []


class ReplicaState(Message):
    replica_id: int32 = 0
    replica_directory_id: Annotated[uuid, V("2+")] = ZERO_UUID
    log_end_offset: int64 = 0
    last_fetch_timestamp: Annotated[int64, V("1+")] = -1
    last_caught_up_timestamp: Annotated[int64, V("1+")] = -1


class ResponsePartitionData(Message):
    partition_index: Annotated[int32, V(entity="partition")] = 0
    error_code: Annotated[int16, V(errors="UNKNOWN_TOPIC_OR_PARTITION NOT_LEADER_OR_FOLLOWER")] = 0
    error_message: Annotated[string | None, V("2+", null="2+")] = ""
    leader_id: int32 = 0
    leader_epoch: int32 = 0
    high_watermark: int64 = 0
    current_voters: list[ReplicaState] = []
    observers: list[ReplicaState] = []


class ResponseTopicData(Message):
    topic_name: Annotated[string, V(entity="topicName")] = ""
    partitions: list[ResponsePartitionData] = []


class Listener(Message):
    name: Annotated[string, V("2+", map_key=True)] = ""
    host: Annotated[string, V("2+", address=CONTROLLER)] = ""
    port: Annotated[uint16, V("2+", address=CONTROLLER)] = 0


class Node(Message):
    node_id: Annotated[int32, V("2+")] = 0
    listeners: Annotated[list[Listener], V("2+")] = []


class DescribeQuorumResponse(Message):
    error_code: Annotated[
        int16, V(errors="any BROKER_NOT_AVAILABLE CLUSTER_AUTHORIZATION_FAILED INVALID_TOPIC_EXCEPTION")
    ] = 0
    error_message: Annotated[string | None, V("2+", null="2+")] = ""
    topics: list[ResponseTopicData] = []
    nodes: Annotated[list[Node], V("2+")] = []
