"""UnregisterBroker, key 64, version 0: removes a broker from the cluster until it starts again (KIP-500).

Follows ReplicationControlManager.unregisterBroker. Its replicas stay assigned to it; a running broker is fenced.
"""

from sluice.broker.broker import Broker
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.failed import failed
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation
from sluice.protocol.apis.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

API = served("UnregisterBroker", "0", forwarded=True)


def handle(ctx: RequestContext, request: UnregisterBrokerRequest, broker: Broker) -> Message:
    if (denial := broker.auth.cluster_denial(ctx, AclOperation.ALTER)) is not None:
        return failed(ctx, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, denial)
    cluster, node_id = broker.cluster, request.broker_id
    if node_id not in cluster.registered:
        message = f"Broker ID {node_id} is not currently registered"
        return failed(ctx, request, ErrorCode.BROKER_ID_NOT_REGISTERED, message)
    if code := cluster.unregister(node_id):
        return failed(ctx, request, code, code.message)
    return UnregisterBrokerResponse(error_message=None)
