"""ConsumerGroupDescribe, key 69, versions 0-1 (KIP-848).

Follows Kafka's GroupMetadataManager.consumerGroupDescribe and ConsumerGroup.asDescribedGroup.
"""

from collections.abc import Iterable, Mapping

from sluice.broker.broker import Broker
from sluice.broker.controller.cluster import Cluster
from sluice.broker.coordinator.group.consumer.group import ConsumerGroup
from sluice.broker.coordinator.group.consumer.member import ConsumerMember
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from sluice.protocol.errors import ErrorCode

API = served("ConsumerGroupDescribe", "0-1")

_CLASSIC, _CONSUMER = 0, 1
_HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."


def handle(ctx: RequestContext, request: ConsumerGroupDescribeRequest, broker: Broker) -> ConsumerGroupDescribeResponse:
    if not broker.serves_groups("consumer"):
        ctx.error_code = ErrorCode.UNSUPPORTED_VERSION
        failed = [DescribedGroup(group_id=name, error_code=ctx.error_code) for name in request.group_ids]
        return ConsumerGroupDescribeResponse(groups=failed)
    described = ctx.array(_describe(ctx, broker, group_id) for group_id in request.group_ids)
    if request.include_authorized_operations:
        for group in described:
            if not group.error_code:
                group.authorized_operations = broker.auth.authorized_operations(ctx, ResourceType.GROUP, group.group_id)
    if broker.authorizer is not None:
        described = _without_hidden_topics(ctx, broker, described)
    ctx.error_code = next((group.error_code for group in described if group.error_code), 0)
    return ConsumerGroupDescribeResponse(groups=described)


def _without_hidden_topics(
    ctx: RequestContext, broker: Broker, described: list[DescribedGroup]
) -> list[DescribedGroup]:
    topics = ctx.array(_topics(group) for group in described)
    hidden = broker.auth.have_hidden_topics(ctx, topics)
    return ctx.array(
        group
        if not is_hidden
        else DescribedGroup(
            group_id=group.group_id, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, error_message=_HIDDEN_TOPICS
        )
        for group, is_hidden in zip(described, hidden, strict=True)
    )


def _topics(group: DescribedGroup) -> set[str]:
    return {
        topic.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    }


def _describe(ctx: RequestContext, broker: Broker, group_id: str) -> DescribedGroup:
    if not broker.auth.authorize(ctx, AclOperation.DESCRIBE, ResourceType.GROUP, group_id):
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not group_id:
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.INVALID_GROUP_ID)
    error = broker.groups.error(group_id)
    if error:
        return DescribedGroup(group_id=group_id, error_code=error)
    group = broker.groups.groups.get(group_id)
    if not isinstance(group, ConsumerGroup):
        problem = "not found" if group is None else "is not a consumer group"
        message = f"Group {group_id} {problem}."
        return DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=message)
    cluster = broker.cluster
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor(broker.groups.consumer.rebalance.default_assignor),
        members=[_member(group, member, cluster) for member in group.members.values()],
    )


def _member(group: ConsumerGroup, member: ConsumerMember, cluster: Cluster) -> Member:
    # Partitions that are not given up yet count as assigned.
    assigned: dict[bytes, list[int]] = {}
    for partitions in (member.assigned, member.pending_revocation):
        for topic_id, epochs in partitions.items():
            assigned.setdefault(topic_id, []).extend(epochs)
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        assignment=_assignment(assigned, cluster),
        target_assignment=_assignment(group.target.get(member.member_id, {}), cluster),
        member_type=_CONSUMER if member.classic is None else _CLASSIC,
    )


def _assignment(partitions: Mapping[bytes, Iterable[int]], cluster: Cluster) -> Assignment:
    known = [(cluster.topics_by_id.get(topic_id), indexes) for topic_id, indexes in partitions.items()]
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic.topic_id, topic_name=topic.name, partitions=sorted(indexes))
            for topic, indexes in known
            if topic is not None
        ]
    )
