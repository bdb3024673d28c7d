"""DeleteGroups, key 42, versions 0-3 (KIP-229). Follows Kafka's GroupCoordinatorShard.deleteGroups.

No group here needs the error message of v3.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain

from sluice.broker.broker import Broker
from sluice.broker.handlers.replicated_response import ReplicationErrors, respond_when_replicated
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.deferred_response import respond_when_done
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

API = served("DeleteGroups", "0-3")


def handle(ctx: RequestContext, request: DeleteGroupsRequest, broker: Broker) -> Message | Outcome:
    names = ctx.array(dict.fromkeys(request.groups_names))
    denied = broker.auth.filter_denied(ctx, AclOperation.DELETE, ResourceType.GROUP, names)
    allowed = ctx.array(group_id for group_id in names if group_id not in denied)
    errors = dict.fromkeys(denied, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    ordered = ctx.array(chain(allowed, denied))

    def delete(share_errors: Mapping[str, ErrorCode]) -> Message | Outcome:
        return _delete(ctx, broker, ordered, {**errors, **share_errors})

    return respond_when_done(ctx, partial(broker.groups.delete_share_state, allowed), delete)


def _delete(
    ctx: RequestContext, broker: Broker, names: Sequence[str], known_errors: Mapping[str, ErrorCode]
) -> Message | Outcome:
    results = ctx.array(
        DeletableGroupResult(
            group_id=group_id, error_code=known_errors.get(group_id) or broker.groups.delete_group(group_id)
        )
        for group_id in names
    )

    def respond(errors: ReplicationErrors) -> DeleteGroupsResponse:
        for result in results if errors else ():
            result.error_code = result.error_code or errors.get(result.group_id, 0)
        ctx.error_code = next((result.error_code for result in results if result.error_code), 0)
        return DeleteGroupsResponse(results=results)

    deleted = ctx.array(result.group_id for result in results if not result.error_code)
    return respond_when_replicated(ctx, broker, deleted, respond)
