"""DescribeCluster, key 60, versions 0-2: the live brokers (KIP-700).

Brokers reject requests for controllers (KIP-919).
"""

from sluice.broker.broker import Broker
from sluice.broker.metadata.cache import Node
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.failed import failed
from sluice.broker.requests.served_api import served
from sluice.protocol.apis import describe_cluster as api
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

API = served("DescribeCluster", "0-2")

_BROKERS, _CONTROLLERS = 1, 2


def handle(ctx: RequestContext, request: api.DescribeClusterRequest, broker: Broker) -> Message:
    if request.endpoint_type == _CONTROLLERS:
        problem = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
        return failed(ctx, request, ErrorCode.MISMATCHED_ENDPOINT_TYPE, problem)
    if request.endpoint_type != _BROKERS:
        problem = f"Unsupported endpoint type {request.endpoint_type}"
        return failed(ctx, request, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, problem)
    metadata = broker.metadata
    nodes = metadata.brokers if request.include_fenced_brokers else metadata.live_brokers
    unregistered = broker.cluster.unregistered
    response = api.DescribeClusterResponse(
        cluster_id=broker.cluster.cluster_id,
        controller_id=broker.controller_id,
        brokers=[
            _broker(ctx, node, is_fenced=node.node_id in metadata.fenced)
            for node in nodes
            if node.node_id not in unregistered
        ],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = broker.auth.authorized_cluster_operations(ctx)
    return response


def _broker(ctx: RequestContext, node: Node, *, is_fenced: bool) -> api.DescribeClusterBroker:
    endpoint = ctx.session.endpoint_of(node)
    return api.DescribeClusterBroker(
        broker_id=node.node_id, host=endpoint.host, port=endpoint.port, rack=node.rack, is_fenced=is_fenced
    )
