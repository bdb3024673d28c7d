"""ShareGroupDescribe, key 77, version 1 (KIP-932).

Follows Kafka's KafkaApis.handleShareGroupDescribe, GroupMetadataManager.shareGroupDescribe and
ShareGroup.asDescribedGroup.
"""

from sluice.broker.broker import Broker
from sluice.broker.controller.cluster import Cluster
from sluice.broker.coordinator.group.share.group import ShareGroup
from sluice.broker.coordinator.group.share.member import ShareMember
from sluice.broker.coordinator.group.share.simple_assignor import NAME
from sluice.broker.metadata.features import SHARE_VERSION
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis.share_group_describe import (
    Assignment,
    DescribedGroup,
    Member,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    TopicPartitions,
)
from sluice.protocol.errors import ErrorCode

API = served("ShareGroupDescribe", "1")

_HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."


def handle(ctx: RequestContext, request: ShareGroupDescribeRequest, broker: Broker) -> ShareGroupDescribeResponse:
    described = ctx.array(_describe(ctx, broker, group_id) for group_id in request.group_ids)
    if request.include_authorized_operations:
        for group in described:
            if not group.error_code:
                group.authorized_operations = broker.auth.authorized_operations(ctx, ResourceType.GROUP, group.group_id)
    if broker.authorizer is not None:
        described = _without_hidden_topics(ctx, broker, described)
    ctx.error_code = next((group.error_code for group in described if group.error_code), 0)
    return ShareGroupDescribeResponse(groups=described)


def _without_hidden_topics(
    ctx: RequestContext, broker: Broker, described: list[DescribedGroup]
) -> list[DescribedGroup]:
    # A group with a topic that the client must not see is replaced by an error.
    topics = ctx.array(
        {topic.topic_name for member in group.members for topic in member.assignment.topic_partitions}
        for group in described
    )
    hidden = broker.auth.have_hidden_topics(ctx, topics)
    return ctx.array(
        group if not is_hidden else _failed(group.group_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED, _HIDDEN_TOPICS)
        for group, is_hidden in zip(described, hidden, strict=True)
    )


def _describe(ctx: RequestContext, broker: Broker, group_id: str) -> DescribedGroup:
    if not broker.features.level(SHARE_VERSION):
        return _failed(group_id, ErrorCode.UNSUPPORTED_VERSION)
    if not broker.auth.authorize(ctx, AclOperation.DESCRIBE, ResourceType.GROUP, group_id):
        return _failed(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    error = broker.groups.error(group_id) if group_id else ErrorCode.INVALID_GROUP_ID
    if error:
        return _failed(group_id, error)
    group = broker.groups.groups.get(group_id)
    if not isinstance(group, ShareGroup):
        problem = "not found" if group is None else "is not a share group"
        return _failed(group_id, ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {problem}.")
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.group_epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=NAME,
        members=[_member(member, broker.cluster) for member in group.members.values()],
    )


def _failed(group_id: str, error: ErrorCode, message: str | None = None) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=error, error_message=message)


def _member(member: ShareMember, cluster: Cluster) -> Member:
    known = [(cluster.topics_by_id.get(topic_id), partitions) for topic_id, partitions in member.assigned.items()]
    return Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        assignment=Assignment(
            topic_partitions=[
                TopicPartitions(topic_id=topic.topic_id, topic_name=topic.name, partitions=sorted(partitions))
                for topic, partitions in known
                if topic is not None
            ]
        ),
    )
