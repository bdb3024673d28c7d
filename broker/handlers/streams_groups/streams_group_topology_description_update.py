"""StreamsGroupTopologyDescriptionUpdate, key 93, version 0 (KIP-1331).

Kafka rejects it without `group.streams.topology.description.plugin.class`, which names a Java class.
"""

from sluice.broker.broker import Broker
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis import streams_group_topology_description_update as api
from sluice.protocol.errors import ErrorCode

API = served("StreamsGroupTopologyDescriptionUpdate", "0")

_NO_PLUGIN = "The broker has no streams group topology description plugin configured."


def handle(
    ctx: RequestContext, request: api.StreamsGroupTopologyDescriptionUpdateRequest, broker: Broker
) -> api.StreamsGroupTopologyDescriptionUpdateResponse:
    code, message = ErrorCode.UNSUPPORTED_VERSION, _NO_PLUGIN
    if not broker.auth.authorize(ctx, AclOperation.READ, ResourceType.GROUP, request.group_id):
        code, message = ErrorCode.GROUP_AUTHORIZATION_FAILED, ""
    ctx.error_code = code
    return api.StreamsGroupTopologyDescriptionUpdateResponse(error_code=code, error_message=message or None)
