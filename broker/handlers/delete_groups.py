"""DeleteGroups, key 42, versions 0-3: deletes groups without members, and their offsets (KIP-229).

v3 has a message for an error that no group here has (KIP-1331). Follows Kafka's GroupCoordinatorShard.deleteGroups.
"""

from sluice.broker.context import RequestContext
from sluice.protocol.apis.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse


def handle(ctx: RequestContext, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    """One answer for each group; one that is named twice is deleted once."""
    groups = ctx.broker.groups
    results = [
        DeletableGroupResult(group_id=group_id, error_code=groups.delete_group(group_id))
        for group_id in dict.fromkeys(request.groups_names)
    ]
    ctx.error_code = next((result.error_code for result in results if result.error_code), 0)
    return DeleteGroupsResponse(results=results)
