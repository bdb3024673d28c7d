"""ListPartitionReassignments, key 46, version 0 (KIP-455): there is one broker, so nothing is ever reassigned."""

from sluice.broker.authorized import refusal_on_cluster
from sluice.broker.context import RequestContext
from sluice.broker.security.acl import AclOperation
from sluice.protocol.apis.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from sluice.protocol.errors import ErrorCode


def handle(ctx: RequestContext, request: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
    """None, also of topics that are unknown, as in Kafka."""
    if (refusal := refusal_on_cluster(ctx, AclOperation.DESCRIBE)) is not None:
        return _denied(ctx, request, refusal)
    return ListPartitionReassignmentsResponse(error_message=None)


def _denied(
    ctx: RequestContext, request: ListPartitionReassignmentsRequest, refusal: str
) -> ListPartitionReassignmentsResponse:
    """An error for the request, with the partitions that it named."""
    code = ctx.error_code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return ListPartitionReassignmentsResponse(
        error_code=code,
        error_message=refusal,
        topics=[
            OngoingTopicReassignment(
                name=topic.name,
                partitions=[OngoingPartitionReassignment(partition_index=index) for index in topic.partition_indexes],
            )
            for topic in request.topics or ()
        ],
    )
