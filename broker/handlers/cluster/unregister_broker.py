"""UnregisterBroker, key 64, version 0: removes a broker from the cluster until it starts again (KIP-500).

Follows ReplicationControlManager.unregisterBroker. Its replicas stay assigned to it; a running broker is fenced.
"""

from sluice.broker.broker import Broker
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation
from sluice.protocol.apis.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from sluice.protocol.errors import ErrorCode

API = served("UnregisterBroker", "0", forwarded=True)


def handle(ctx: RequestContext, request: UnregisterBrokerRequest, broker: Broker) -> UnregisterBrokerResponse:
    if (denial := broker.auth.cluster_denial(ctx, AclOperation.ALTER)) is not None:
        return _error_response(ctx, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, denial)
    cluster, node_id = broker.cluster, request.broker_id
    if node_id not in cluster.brokers or node_id in cluster.unregistered:
        message = f"Broker ID {node_id} is not currently registered"
        return _error_response(ctx, ErrorCode.BROKER_ID_NOT_REGISTERED, message)
    failed = cluster.unregister(node_id)
    return _error_response(ctx, failed, failed.message) if failed else UnregisterBrokerResponse(error_message=None)


def _error_response(ctx: RequestContext, code: ErrorCode, message: str) -> UnregisterBrokerResponse:
    ctx.error_code = code
    return UnregisterBrokerResponse(error_code=code, error_message=message)
