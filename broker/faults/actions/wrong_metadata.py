"""Wrong responses about leaders, topics, brokers and offsets. The request itself is handled normally."""

from collections.abc import Iterator
from typing import Annotated, Literal, cast

import msgspec

from sluice.broker.broker import Broker
from sluice.broker.faults.fault import Fault, check_several
from sluice.broker.faults.matching.match import Match
from sluice.broker.faults.matching.values import Duration, RuleProblem, parse_ms, parse_positive_ms
from sluice.broker.faults.requests.fault_execution import FaultExecution, Reply, RequestAction, RuleHit
from sluice.broker.faults.target import TargetInfo
from sluice.broker.metadata.topic import NO_LEADER
from sluice.protocol.apis import ApiKey
from sluice.protocol.apis.describe_topic_partitions import (
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
)
from sluice.protocol.apis.fetch import FetchResponse, NodeEndpoint, PartitionData
from sluice.protocol.apis.list_offsets import ListOffsetsPartitionResponse, ListOffsetsRequest, ListOffsetsResponse
from sluice.protocol.apis.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from sluice.protocol.apis.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from sluice.protocol.entities import name_of
from sluice.protocol.errors import ErrorCode
from sluice.protocol.types import ZERO_UUID

_METADATA, _LIST_OFFSETS, _DESCRIBE_TOPIC_PARTITIONS = 3, 2, 75
# The first version whose responses name the leader (KIP-951).
_HINTS_SINCE = {ApiKey.PRODUCE: 10, ApiKey.FETCH: 16}
_MAX_EPOCH = 2**31 - 1
_MAX_OFFSET = 2**63 - 1
_LATEST, _EARLIEST = (-1,), (-2, -4)
_TIMESTAMPS = {"latest": _LATEST, "earliest": _EARLIEST}

_MetadataPartition = MetadataResponsePartition | DescribeTopicPartitionsResponsePartition
_Hinted = PartitionProduceResponse | PartitionData
Leader = Annotated[int | None, msgspec.Meta(description="node id of the named leader; default: another replica's")]


class _MetadataAction(RequestAction, frozen=True):
    def can_hit(self, api_key: int, version: int) -> bool:
        return api_key in (_METADATA, _DESCRIBE_TOPIC_PARTITIONS)


class UnknownLeader(_MetadataAction, frozen=True, tag="unknown-leader"):
    """Reports partitions without a leader in Metadata (LEADER_NOT_AVAILABLE)."""

    def after(self, intercepted: FaultExecution, hit: RuleHit, reply: Reply) -> Reply:
        for partition in _matched_partitions(reply, hit.fault.match):
            partition.error_code = ErrorCode.LEADER_NOT_AVAILABLE
            partition.leader_id = NO_LEADER
            intercepted.ctx.error_code = intercepted.ctx.error_code or ErrorCode.LEADER_NOT_AVAILABLE
        return reply


class WrongLeader(_MetadataAction, frozen=True, tag="wrong-leader"):
    """Names another broker as the leader of partitions in Metadata."""

    leader: Leader = None
    epoch: Annotated[
        Literal["same", "new", "old"],
        msgspec.Meta(description="reported leader epoch: the current one, one more, or one less"),
    ] = "same"

    def check_target(self, fault: Fault, target: TargetInfo) -> None:
        check_several(target, self.leader, "action.leader")

    def after(self, intercepted: FaultExecution, hit: RuleHit, reply: Reply) -> Reply:
        nodes = [*intercepted.broker.cluster.brokers]
        for partition in _matched_partitions(reply, hit.fault.match):
            if partition.leader_id != NO_LEADER:
                partition.leader_id = _other(partition, nodes) if self.leader is None else self.leader
                partition.leader_epoch = min(max(0, partition.leader_epoch + _STEPS[self.epoch]), _MAX_EPOCH)
        return reply


_STEPS = {"same": 0, "new": 1, "old": -1}


class StaleLeaderHint(RequestAction, frozen=True, tag="stale-leader-hint"):
    """Names a former leader in the leader hints of Produce and Fetch (KIP-951)."""

    leader: Annotated[int | None, msgspec.Meta(description="node id of the named leader; default: this broker")] = None
    epoch: Annotated[
        Literal["old", "current"],
        msgspec.Meta(description="reported leader epoch: clients ignore old ones, and accept the current one"),
    ] = "old"

    def can_hit(self, api_key: int, version: int) -> bool:
        return version >= _HINTS_SINCE.get(api_key, version + 1)

    def check_target(self, fault: Fault, target: TargetInfo) -> None:
        check_several(target, self.leader, "action.leader")

    def after(self, intercepted: FaultExecution, hit: RuleHit, reply: Reply) -> Reply:
        hinted = list(_hints(intercepted.broker, reply, hit.fault.match))
        if not hinted:
            return reply
        leader_id = intercepted.broker.node_id if self.leader is None else self.leader
        at = intercepted.ctx.session.endpoint_of(intercepted.broker.cluster.brokers[leader_id])
        for partition in hinted:
            assert partition.current_leader is not None
            partition.current_leader.leader_id = leader_id
            if self.epoch == "old":
                partition.current_leader.leader_epoch = max(-1, partition.current_leader.leader_epoch - 1)
        if isinstance(reply, ProduceResponse | FetchResponse):
            reply.node_endpoints = [NodeEndpoint(leader_id, at.host, at.port)]
        return reply


class EmptyMetadata(RequestAction, frozen=True, tag="empty-metadata"):
    """Reports no brokers and no topics in Metadata, always or for a time after a broker's start."""

    after_start: Annotated[
        Duration | None, msgspec.Meta(description="time after the start of the broker that responds; default: always")
    ] = None

    def check(self, match: Match) -> None:
        if self.after_start is not None:
            parse_positive_ms(self.after_start, "action.after_start")

    def can_hit(self, api_key: int, version: int) -> bool:
        return api_key == _METADATA

    def applies_to(self, broker: Broker) -> bool:
        if self.after_start is None:
            return True
        return broker.clock.monotonic_ms() - broker.started_ms < parse_ms(self.after_start, "action.after_start")

    def before(self, intercepted: FaultExecution, hit: RuleHit) -> Reply | None:
        ctx, request = intercepted.ctx, cast("MetadataRequest", intercepted.request)  # can_hit excludes other APIs
        topics = [_unknown(topic.name, topic.topic_id) for topic in request.topics or ()]
        if topics:
            ctx.error_code = ctx.error_code or topics[0].error_code
        return MetadataResponse(cluster_id=intercepted.broker.cluster.cluster_id, topics=topics)


class OffsetLie(RequestAction, frozen=True, tag="offset-lie"):
    """Reports wrong offsets in ListOffsets."""

    offset: Annotated[Annotated[int, msgspec.Meta(ge=0)] | None, msgspec.Meta(description="reported offset")] = None
    shift: Annotated[int | None, msgspec.Meta(description="difference from the correct offset")] = None
    of: Annotated[
        Literal["any", "earliest", "latest", "timestamp"], msgspec.Meta(description="kind of requested offsets")
    ] = "any"

    def check(self, match: Match) -> None:
        if (self.offset is None) == (self.shift is None):
            raise RuleProblem("action", "expected either offset or shift")
        if self.shift == 0:
            raise RuleProblem("action.shift", "expected a number other than 0, got 0")
        for name, value in (("offset", self.offset or 0), ("shift", self.shift or 0)):
            if abs(value) > _MAX_OFFSET:
                raise RuleProblem(f"action.{name}", f"expected at most {_MAX_OFFSET}, got {value}")

    def can_hit(self, api_key: int, version: int) -> bool:
        return api_key == _LIST_OFFSETS

    def after(self, intercepted: FaultExecution, hit: RuleHit, reply: Reply) -> Reply:
        request = intercepted.request
        if not isinstance(reply, ListOffsetsResponse) or not isinstance(request, ListOffsetsRequest):
            return reply
        timestamps = {
            (topic.name, one.partition_index): one.timestamp for topic in request.topics for one in topic.partitions
        }
        for topic in reply.topics:
            for one in topic.partitions:
                where = topic.name, one.partition_index
                if (
                    not one.error_code
                    and hit.fault.match.hits_partition(*where)
                    and self._is_of(timestamps.get(where, 0))
                ):
                    self._change(one)
        return reply

    def _is_of(self, timestamp: int) -> bool:
        if self.of == "timestamp":
            return timestamp >= 0
        return self.of == "any" or timestamp in _TIMESTAMPS[self.of]

    def _change(self, one: ListOffsetsPartitionResponse) -> None:
        if one.old_style_offsets:  # version 0
            one.old_style_offsets = [self._changed(offset) for offset in one.old_style_offsets]
        elif one.offset >= 0 or self.offset is not None:
            one.offset = self._changed(one.offset)

    def _changed(self, offset: int) -> int:
        return self.offset if self.offset is not None else min(max(0, offset + (self.shift or 0)), _MAX_OFFSET)


def _matched_partitions(reply: Reply, match: Match) -> Iterator[_MetadataPartition]:
    if not isinstance(reply, MetadataResponse | DescribeTopicPartitionsResponse):
        return
    for topic in reply.topics:
        for partition in topic.partitions:
            if match.hits_partition(topic.name or "", partition.partition_index):
                yield partition


def _hints(broker: Broker, reply: Reply, match: Match) -> Iterator[_Hinted]:
    if not isinstance(reply, ProduceResponse | FetchResponse):
        return
    for topic in reply.responses:
        named = topic.name if isinstance(topic, TopicProduceResponse) else topic.topic
        name = named or name_of(topic.topic_id, broker.metadata.topics_by_id)
        partitions = topic.partition_responses if isinstance(topic, TopicProduceResponse) else topic.partitions
        for partition in partitions:
            index = partition.index if isinstance(partition, PartitionProduceResponse) else partition.partition_index
            if partition.current_leader is not None and match.hits_partition(name, index):
                yield partition


def _other(partition: _MetadataPartition, nodes: list[int]) -> int:
    """Return another broker, if possible a replica."""
    others = [*partition.replica_nodes, *nodes]
    return next(node_id for node_id in others if node_id != partition.leader_id)


def _unknown(name: str | None, topic_id: bytes) -> MetadataResponseTopic:
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic_id == ZERO_UUID else ErrorCode.UNKNOWN_TOPIC_ID
    return MetadataResponseTopic(error_code=code, name=name, topic_id=topic_id)
