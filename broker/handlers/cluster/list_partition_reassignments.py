"""ListPartitionReassignments, key 46, version 0 (KIP-455).

Follows ReplicationControlManager.listPartitionReassignments: unknown partitions are omitted.
"""

from collections.abc import Iterable

from sluice.broker.broker import Broker
from sluice.broker.controller.reassignment import is_reassigned
from sluice.broker.metadata.topic import Partition
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.failed import failed
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation
from sluice.protocol.apis import list_partition_reassignments as api
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

API = served("ListPartitionReassignments", "0", forwarded=True)


def handle(ctx: RequestContext, request: api.ListPartitionReassignmentsRequest, broker: Broker) -> Message:
    if (denial := broker.auth.cluster_denial(ctx, AclOperation.DESCRIBE)) is not None:
        return failed(ctx, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, denial)
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
    return api.ListPartitionReassignmentsResponse(error_message=None, topics=ongoing)


def _list(name: str, partitions: Iterable[Partition]) -> api.OngoingTopicReassignment:
    return api.OngoingTopicReassignment(
        name=name,
        partitions=[
            api.OngoingPartitionReassignment(
                partition_index=partition.index,
                replicas=list(partition.replicas),
                adding_replicas=list(partition.adding),
                removing_replicas=list(partition.removing),
            )
            for partition in partitions
            if is_reassigned(partition)
        ],
    )
