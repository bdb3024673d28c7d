"""DeleteGroups, key 42, versions 0-3: deletes groups without members, and their offsets (KIP-229).

v3 adds an error message that no group here needs (KIP-1331). Follows Kafka's GroupCoordinatorShard.deleteGroups.
"""

from typing import TYPE_CHECKING

from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

from .replicated_response import ReplicationErrors, respond_when_replicated

if TYPE_CHECKING:
    from sluice.broker.handlers.services import GroupServices

API = served("DeleteGroups", "0-3")


def handle(ctx: RequestContext, request: DeleteGroupsRequest, broker: "GroupServices") -> Message | Outcome:
    groups, names = broker.groups, list(dict.fromkeys(ctx.sliced(request.groups_names)))
    denied = broker.auth.filter_denied(ctx, AclOperation.DELETE, ResourceType.GROUP, names)
    results = [
        DeletableGroupResult(
            group_id=group_id,
            error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED if group_id in denied else groups.delete_group(group_id),
        )
        for group_id in ctx.sliced(names)
    ]

    def respond(errors: ReplicationErrors) -> DeleteGroupsResponse:
        for result in results if errors else ():
            result.error_code = result.error_code or errors.get(result.group_id, 0)
        ctx.error_code = next((result.error_code for result in ctx.sliced(results) if result.error_code), 0)
        return DeleteGroupsResponse(results=results)

    deleted = [result.group_id for result in ctx.sliced(results) if not result.error_code]
    return respond_when_replicated(ctx, broker, deleted, respond)
