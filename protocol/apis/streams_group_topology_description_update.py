"""StreamsGroupTopologyDescriptionUpdate (key 93): a member describes its topology (KIP-1331)."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from sluice.protocol.message import Message
from sluice.protocol.types import V, int8, int16, int32, string


class TopologyDescriptionNode(Message):
    name: string = ""
    node_type: int8 = 0
    source_topics: Annotated[list[string], V(entity="topicName")] = []
    sink_topic: Annotated[string | None, V("0+", null="0+", entity="topicName")] = None
    stores: list[string] = []
    successors: list[string] = []


class TopologyDescriptionSubtopology(Message):
    subtopology_id: string = ""
    nodes: list[TopologyDescriptionNode] = []


class TopologyDescriptionGlobalStore(Message):
    source: TopologyDescriptionNode = field(default_factory=TopologyDescriptionNode)
    processor: TopologyDescriptionNode = field(default_factory=TopologyDescriptionNode)


class TopologyDescription(Message):
    subtopologies: list[TopologyDescriptionSubtopology] = []
    global_stores: list[TopologyDescriptionGlobalStore] = []


class StreamsGroupTopologyDescriptionUpdateRequest(Message):
    group_id: Annotated[string, V(entity="groupId")] = ""
    member_id: string = ""
    topology_epoch: int32 = 0
    topology_description: TopologyDescription = field(default_factory=TopologyDescription)


class StreamsGroupTopologyDescriptionUpdateResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: Annotated[
        int16,
        V(errors="any coordinator UNKNOWN_MEMBER_ID GROUP_ID_NOT_FOUND STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED"),
    ] = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = None
