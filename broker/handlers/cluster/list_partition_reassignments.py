"""ListPartitionReassignments, key 46, version 0 (KIP-455).

Follows ReplicationControlManager.listPartitionReassignments: unknown partitions are omitted.
"""

from collections.abc import Iterable

from sluice.broker.broker import Broker
from sluice.broker.controller.reassignment import is_reassigned
from sluice.broker.metadata.topic import Partition
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation
from sluice.protocol.apis.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from sluice.protocol.errors import ErrorCode

API = served("ListPartitionReassignments", "0", forwarded=True)


def handle(
    ctx: RequestContext, request: ListPartitionReassignmentsRequest, broker: Broker
) -> ListPartitionReassignmentsResponse:
    if (denial := broker.auth.cluster_denial(ctx, AclOperation.DESCRIBE)) is not None:
        return _denied(ctx, request, denial)
    topics = broker.metadata.topics
    if request.topics is None:
        listed = [_list(name, topic.partitions) for name, topic in topics.items()]
    else:
        listed = []
        for requested in request.topics:
            topic = topics.get(requested.name)
            if topic is not None:
                found = (topic.partition(index) for index in requested.partition_indexes)
                one = _list(requested.name, filter(None, found))
                listed += [one] if one.partitions else []
    ongoing = [topic for topic in listed if topic.partitions]
    return ListPartitionReassignmentsResponse(error_message=None, topics=ongoing)


def _denied(
    ctx: RequestContext, request: ListPartitionReassignmentsRequest, denial: str
) -> ListPartitionReassignmentsResponse:
    code = ctx.error_code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return ListPartitionReassignmentsResponse(
        error_code=code,
        error_message=denial,
        topics=[
            OngoingTopicReassignment(
                name=topic.name,
                partitions=[OngoingPartitionReassignment(partition_index=index) for index in topic.partition_indexes],
            )
            for topic in request.topics or ()
        ],
    )


def _list(name: str, partitions: Iterable[Partition]) -> OngoingTopicReassignment:
    return OngoingTopicReassignment(
        name=name,
        partitions=[
            OngoingPartitionReassignment(
                partition_index=partition.index,
                replicas=list(partition.replicas),
                adding_replicas=list(partition.adding),
                removing_replicas=list(partition.removing),
            )
            for partition in partitions
            if is_reassigned(partition)
        ],
    )
