"""DescribeGroups, key 15, versions 0-6. Follows Kafka's GroupMetadataManager.describeGroups.

A group of another type is described like a missing one.
"""

from functools import partial
from itertools import chain

from sluice.broker.broker import Broker
from sluice.broker.coordinator.common.coordinator_log import partition_for
from sluice.broker.coordinator.group.classic.group import DEAD_NAME, STABLE, ClassicGroup
from sluice.broker.handlers.java_hash_map import in_hash_map_order, topic_partition_hash
from sluice.broker.metadata.topic import GROUP_METADATA_TOPIC
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis import describe_groups as api
from sluice.protocol.errors import ErrorCode

API = served("DescribeGroups", "0-6")

_NOT_FOUND_SINCE = 6


def handle(ctx: RequestContext, request: api.DescribeGroupsRequest, broker: Broker) -> api.DescribeGroupsResponse:
    allowed: list[str] = ctx.array()
    described: list[api.DescribedGroup] = ctx.array()
    for group_id in request.groups:
        if broker.auth.authorize(ctx, AclOperation.DESCRIBE, ResourceType.GROUP, group_id):
            allowed.append(group_id)
        else:
            ctx.error_code = ErrorCode.GROUP_AUTHORIZATION_FAILED
            described.append(api.DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED))
    described.extend(_describe(ctx, broker, group_id) for group_id in _by_shard(ctx, broker, allowed))
    if request.include_authorized_operations:
        for group in described:
            if not group.error_code:
                group.authorized_operations = broker.auth.authorized_operations(ctx, ResourceType.GROUP, group.group_id)
    return api.DescribeGroupsResponse(groups=described)


def _by_shard(ctx: RequestContext, broker: Broker, group_ids: list[str]) -> list[str]:
    """Return groups by the partitions of their coordinators, as Kafka does, with its order of the partitions."""
    topic = broker.metadata.topics.get(GROUP_METADATA_TOPIC)
    if topic is None or len(group_ids) == 1:
        return group_ids
    by_partition: dict[int, list[str]] = {}
    for group_id in group_ids:
        by_partition.setdefault(partition_for(topic, group_id).index, []).append(group_id)
    # Kafka adds the partitions by `computeIfAbsent`, which puts each in front of the others in its bucket.
    ordered = in_hash_map_order(reversed(by_partition), partial(topic_partition_hash, topic.name))
    return ctx.array(chain.from_iterable(by_partition[index] for index in ordered))


def _describe(ctx: RequestContext, broker: Broker, group_id: str) -> api.DescribedGroup:
    error = broker.groups.error(group_id)
    if error:
        ctx.error_code = error
        return api.DescribedGroup(group_id=group_id, error_code=error)
    group = broker.groups.groups.get(group_id)
    if isinstance(group, ClassicGroup):
        return _described(group)
    dead = api.DescribedGroup(group_id=group_id, group_state=DEAD_NAME)
    if ctx.version >= _NOT_FOUND_SINCE:
        ctx.error_code = dead.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        problem = "not found" if group is None else "is not a classic group"
        dead.error_message = f"Group {group_id} {problem}."
    return dead


def _described(group: ClassicGroup) -> api.DescribedGroup:
    # Before a group is Stable, its protocol and metadata may change.
    stable = group.state is STABLE
    return api.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        protocol_type=group.protocol_type or "",
        protocol_data=group.protocol_name or "" if stable else "",
        members=[
            api.DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol_name) if stable else b"",
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )
