"""ElectLeaders, key 43, versions 0-2 (KIP-183, KIP-460): preferred leaders, from v1 on also unclean ones.

Follows ReplicationControlManager.electLeaders. There is one broker: it leads every partition and is its preferred
leader, so Kafka, too, finds no election needed.
"""

from sluice.broker.authorized import refusal_on_cluster
from sluice.broker.context import RequestContext
from sluice.broker.security.acl import AclOperation
from sluice.protocol.apis.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from sluice.protocol.errors import ErrorCode

_PREFERRED, _UNCLEAN = 0, 1  # election types


def handle(ctx: RequestContext, request: ElectLeadersRequest) -> ElectLeadersResponse:
    """A result for each partition; for null, all topics, without the partitions that need no election: without any."""
    if (refusal := refusal_on_cluster(ctx, AclOperation.ALTER)) is not None:
        return _refused(ctx, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, refusal)
    if request.election_type not in (_PREFERRED, _UNCLEAN):
        return _refused(ctx, request, ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
    if request.topic_partitions is None:
        topics = [ReplicaElectionResult(topic=name) for name in ctx.broker.cluster.topics]
        return ElectLeadersResponse(replica_election_results=topics)
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(
                topic=wanted.topic,
                partition_result=[_elect(ctx, wanted.topic, index) for index in wanted.partitions],
            )
            for wanted in request.topic_partitions
        ]
    )


def _elect(ctx: RequestContext, name: str, index: int) -> PartitionResult:
    topic = ctx.broker.cluster.topics.get(name)
    if topic is None:
        return _failed(ctx, index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    if topic.partition(index) is None:
        return _failed(ctx, index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
    return _failed(ctx, index, ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.ELECTION_NOT_NEEDED.message)


def _refused(ctx: RequestContext, request: ElectLeadersRequest, code: ErrorCode, message: str) -> ElectLeadersResponse:
    ctx.error_code = code
    return ElectLeadersResponse(
        error_code=code,
        replica_election_results=[
            ReplicaElectionResult(
                topic=wanted.topic, partition_result=[_failed(ctx, index, code, message) for index in wanted.partitions]
            )
            for wanted in request.topic_partitions or ()
        ],
    )


def _failed(ctx: RequestContext, index: int, code: ErrorCode, message: str) -> PartitionResult:
    ctx.error_code = ctx.error_code or code
    return PartitionResult(partition_id=index, error_code=code, error_message=message)
