"""Records of topics and their partitions (KIP-631; directories: KIP-858; eligible leader replicas: KIP-966)."""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.types import ZERO_UUID, V, int8, int32, string, uuid

from .message import MetadataMessage

NO_LEADER, SAME_LEADER = -1, -2


class TopicRecord(MetadataMessage):
    name: string = ""
    topic_id: uuid = ZERO_UUID


class PartitionRecord(MetadataMessage):
    partition_id: int32 = -1
    topic_id: uuid = ZERO_UUID
    replicas: list[int32] = []
    isr: list[int32] = []
    removing_replicas: list[int32] = []
    adding_replicas: list[int32] = []
    leader: int32 = -1
    leader_recovery_state: Annotated[int8, V("0+", tag=0)] = 0  # 1: the leader was elected uncleanly
    leader_epoch: int32 = -1
    partition_epoch: int32 = -1
    directories: Annotated[list[uuid], V("1+")] = []  # per replica, in the order of `replicas`
    eligible_leader_replicas: Annotated[list[int32] | None, V("2+", null="2+", tag=1)] = None
    last_known_elr: Annotated[list[int32] | None, V("2+", null="2+", tag=2)] = None


class PartitionChangeRecord(MetadataMessage):
    """A change of a partition; increments its partition epoch and, with a new leader, its leader epoch."""

    partition_id: int32 = -1
    topic_id: uuid = ZERO_UUID
    isr: Annotated[list[int32] | None, V("0+", null="0+", tag=0)] = None
    leader: Annotated[int32, V("0+", tag=1)] = SAME_LEADER
    replicas: Annotated[list[int32] | None, V("0+", null="0+", tag=2)] = None
    removing_replicas: Annotated[list[int32] | None, V("0+", null="0+", tag=3)] = None
    adding_replicas: Annotated[list[int32] | None, V("0+", null="0+", tag=4)] = None
    leader_recovery_state: Annotated[int8, V("0+", tag=5)] = -1
    directories: Annotated[list[uuid] | None, V("1+", null="1+", tag=8)] = None
    eligible_leader_replicas: Annotated[list[int32] | None, V("2+", null="2+", tag=6)] = None
    last_known_elr: Annotated[list[int32] | None, V("2+", null="2+", tag=7)] = None


class RemoveTopicRecord(MetadataMessage):
    topic_id: uuid = ZERO_UUID


class ClearElrRecord(MetadataMessage):
    topic_name: string = ""  # empty: all topics
