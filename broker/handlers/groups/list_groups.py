"""ListGroups, key 16, versions 0-5. Follows Kafka's GroupMetadataManager.listGroups."""

from sluice.broker.broker import Broker
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from sluice.protocol.errors import ErrorCode

API = served("ListGroups", "0-5")


def handle(ctx: RequestContext, request: ListGroupsRequest, broker: Broker) -> ListGroupsResponse:
    groups = broker.groups
    if groups.shards.is_loading:
        ctx.error_code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    states = ctx.counts(state.strip().lower() for state in request.states_filter)
    types = ctx.counts(kind.lower() for kind in request.types_filter)
    sees_all = broker.auth.authorize_cluster(ctx, AclOperation.DESCRIBE, log_denied=False)
    return ListGroupsResponse(
        groups=[
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.listed_protocol_type,
                group_state=group.state_name,
                group_type=group.type,
            )
            for group in ctx.array(groups.groups.values())
            if (not states or _filter_of(group.state_name) in states)
            and (not types or group.type in types)
            and (
                sees_all
                or broker.auth.authorize(
                    ctx, AclOperation.DESCRIBE, ResourceType.GROUP, group.group_id, log_denied=False
                )
            )
        ]
    )


def _filter_of(state: str) -> str:
    # Kafka's StreamsGroupState.NOT_READY has another name in filters.
    return "not_ready" if state == "NotReady" else state.lower()
