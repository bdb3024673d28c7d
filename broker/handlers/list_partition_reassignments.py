"""ListPartitionReassignments, key 46, version 0 (KIP-455): there is one broker, so nothing is ever reassigned."""

from sluice.broker.context import RequestContext
from sluice.protocol.apis.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


def handle(ctx: RequestContext, request: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
    """None, also of topics that are unknown, as in Kafka."""
    return ListPartitionReassignmentsResponse(error_message=None)
