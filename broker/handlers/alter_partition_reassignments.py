"""AlterPartitionReassignments, key 45, versions 0-1 (KIP-455); v1 may forbid another replication factor (KIP-860).

Follows ReplicationControlManager.alterPartitionReassignments. There is one broker, so a partition can only be assigned
to where it is: that is done when it is asked for, and no reassignment is ever in progress.
"""

from sluice.broker.authorized import refusal_on_cluster
from sluice.broker.context import RequestContext
from sluice.broker.replica_placement import assignment_problem
from sluice.broker.security.acl import AclOperation
from sluice.protocol.apis.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from sluice.protocol.errors import ErrorCode


def handle(ctx: RequestContext, request: AlterPartitionReassignmentsRequest) -> AlterPartitionReassignmentsResponse:
    """A result for each partition."""
    if (refusal := refusal_on_cluster(ctx, AclOperation.ALTER)) is not None:
        return _denied(ctx, request, refusal)
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
        responses=[
            ReassignableTopicResponse(
                name=topic.name, partitions=[_reassign(ctx, topic.name, partition) for partition in topic.partitions]
            )
            for topic in request.topics
        ],
    )


def _denied(
    ctx: RequestContext, request: AlterPartitionReassignmentsRequest, refusal: str
) -> AlterPartitionReassignmentsResponse:
    """An error for the request, and for each partition."""
    code = ctx.error_code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return AlterPartitionReassignmentsResponse(
        error_code=code,
        error_message=refusal,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    ReassignablePartitionResponse(
                        partition_index=partition.partition_index, error_code=code, error_message=refusal
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def _reassign(ctx: RequestContext, name: str, wanted: ReassignablePartition) -> ReassignablePartitionResponse:
    code, message = _refusal(ctx, name, wanted)
    ctx.error_code = ctx.error_code or code
    return ReassignablePartitionResponse(partition_index=wanted.partition_index, error_code=code, error_message=message)


def _refusal(ctx: RequestContext, name: str, wanted: ReassignablePartition) -> tuple[ErrorCode, str | None]:
    cluster = ctx.broker.cluster
    topic = cluster.topics.get(name)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}."
    if topic.partition(wanted.partition_index) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{wanted.partition_index}."
    if wanted.replicas is None:  # cancel it
        return ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None
    problem = assignment_problem(wanted.replicas, cluster.brokers.keys())
    return (ErrorCode.NONE, None) if problem is None else (ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)
