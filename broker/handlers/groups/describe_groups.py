"""DescribeGroups, key 15, versions 0-6. Follows Kafka's GroupMetadataManager.describeGroups.

A group of another type is described like a missing one.
"""

from sluice.broker.broker import Broker
from sluice.broker.coordinator.group.classic.group import DEAD_NAME, STABLE, ClassicGroup
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import ResourceType
from sluice.protocol.apis import describe_groups as api
from sluice.protocol.errors import ErrorCode

from .described_groups import authorize_description, by_shard

API = served("DescribeGroups", "0-6")

_NOT_FOUND_SINCE = 6


def handle(ctx: RequestContext, request: api.DescribeGroupsRequest, broker: Broker) -> api.DescribeGroupsResponse:
    allowed, denied = authorize_description(ctx, broker, request.groups)
    described = ctx.array(
        api.DescribedGroup(group_id=group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED) for group_id in denied
    )
    ctx.error_code = ErrorCode.GROUP_AUTHORIZATION_FAILED if denied else ErrorCode.NONE
    described.extend(_describe(ctx, broker, group_id) for group_id in by_shard(ctx, broker, allowed))
    if request.include_authorized_operations:
        for group in described:
            if not group.error_code:
                group.authorized_operations = broker.auth.authorized_operations(ctx, ResourceType.GROUP, group.group_id)
    return api.DescribeGroupsResponse(groups=described)


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
