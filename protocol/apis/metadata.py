"""Metadata (key 3): brokers, topics and partition leaders.

v1: controller, racks, internal topics, null for all topics; v2: cluster id; v3: throttle time; v4: auto-creation; v5:
offline replicas; v7: leader epochs (KIP-320); v8: authorized operations (KIP-430); v10: topic ids (KIP-516),
requestable from v12; v11: without the cluster's authorized operations; v13: top-level error.
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, boolean, int16, int32, string, uuid


class MetadataRequestTopic(Message):
    topic_id: Annotated[uuid, V("10+", entity="topicId")] = ZERO_UUID
    name: Annotated[string | None, V(null="10+", entity="topicName")] = ""


class MetadataRequest(Message):
    """All topics: null, in version 0 an empty array. No topics: an empty array from version 1."""

    topics: Annotated[list[MetadataRequestTopic] | None, V(null="1+", selects_all="null, empty 0")] = []
    allow_auto_topic_creation: Annotated[boolean, V("4+")] = True
    include_cluster_authorized_operations: Annotated[boolean, V("8-10")] = False
    include_topic_authorized_operations: Annotated[boolean, V("8+")] = False


class MetadataResponseBroker(Message):
    node_id: int32 = 0
    host: Annotated[string, V(address="node_id")] = ""
    port: Annotated[int32, V(address="node_id")] = 0
    rack: Annotated[string | None, V("1+", null="1+")] = None


class MetadataResponsePartition(Message):
    error_code: Annotated[int16, V(errors="REPLICA_NOT_AVAILABLE LISTENER_NOT_FOUND")] = 0
    partition_index: Annotated[int32, V(entity="partition")] = 0
    leader_id: Annotated[int32, V(on_error=-1, leader=True)] = 0
    leader_epoch: Annotated[int32, V("7+")] = -1
    replica_nodes: Annotated[list[int32], V(on_error="kept")] = []
    isr_nodes: Annotated[list[int32], V(on_error="kept")] = []
    offline_replicas: Annotated[list[int32], V("5+")] = []


class MetadataResponseTopic(Message):
    """A topic. For an unknown id the name is null, for an unknown name the id is zero."""

    error_code: Annotated[
        int16,
        V(
            errors="any UNKNOWN_TOPIC_OR_PARTITION LEADER_NOT_AVAILABLE INVALID_TOPIC_EXCEPTION"
            " TOPIC_AUTHORIZATION_FAILED UNKNOWN_TOPIC_ID CLUSTER_AUTHORIZATION_FAILED"
            " INVALID_REPLICATION_FACTOR POLICY_VIOLATION"
        ),
    ] = 0
    name: Annotated[string | None, V(null="12+", entity="topicName")] = ""
    topic_id: Annotated[uuid, V("10+", entity="topicId")] = ZERO_UUID
    is_internal: Annotated[boolean, V("1+")] = False
    partitions: list[MetadataResponsePartition] = []
    topic_authorized_operations: Annotated[int32, V("8+")] = -0x8000_0000


class MetadataResponse(Message):
    throttle_time_ms: Annotated[int32, V("3+")] = 0
    brokers: list[MetadataResponseBroker] = []
    cluster_id: Annotated[string | None, V("2+", null="2+")] = None
    controller_id: Annotated[int32, V("1+")] = -1
    topics: list[MetadataResponseTopic] = []
    cluster_authorized_operations: Annotated[int32, V("8-10")] = -0x8000_0000
    error_code: Annotated[int16, V("13+", errors="REBOOTSTRAP_REQUIRED", errors_fall_back=False)] = 0
