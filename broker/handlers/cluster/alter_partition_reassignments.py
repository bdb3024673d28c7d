"""AlterPartitionReassignments, key 45, versions 0-1 (KIP-455).

Follows ReplicationControlManager.alterPartitionReassignments. Different on purpose: a broker that is being added stays
in `adding_replicas` when a new reassignment contains it, too.
"""

from sluice.broker.broker import Broker
from sluice.broker.controller.cluster import Cluster
from sluice.broker.controller.reassignment import changes_factor, is_reassigned, plan, reverted
from sluice.broker.controller.replica_placement import assignment_problem
from sluice.broker.metadata.topic import Partition
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.failed import expired, failed
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation
from sluice.protocol.apis import alter_partition_reassignments as api
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

API = served("AlterPartitionReassignments", "0-1", forwarded=True)


def handle(ctx: RequestContext, request: api.AlterPartitionReassignmentsRequest, broker: Broker) -> Message:
    if (denial := broker.auth.cluster_denial(ctx, AclOperation.ALTER)) is not None:
        return failed(ctx, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, denial)
    if not request.topics:
        return api.AlterPartitionReassignmentsResponse()
    if request.timeout_ms <= 0:
        return expired(ctx, request)
    may_change_factor = request.allow_replication_factor_change
    return api.AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=may_change_factor,
        error_message=None,
        responses=[
            api.ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    _reassign(ctx, broker, topic.name, requested, may_change_factor) for requested in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def _reassign(
    ctx: RequestContext, broker: Broker, name: str, requested: api.ReassignablePartition, may_change_factor: bool
) -> api.ReassignablePartitionResponse:
    code, message = _begin(ctx, broker, name, requested, may_change_factor)
    ctx.error_code = ctx.error_code or code
    return api.ReassignablePartitionResponse(
        partition_index=requested.partition_index, error_code=code, error_message=message
    )


def _begin(
    ctx: RequestContext, broker: Broker, name: str, requested: api.ReassignablePartition, may_change_factor: bool
) -> tuple[ErrorCode, str | None]:
    cluster = broker.cluster
    target = None if requested.replicas is None else tuple(requested.replicas)
    topic = broker.metadata.topics.get(name)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}."
    partition = topic.partition(requested.partition_index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{requested.partition_index}."
    if target is None:
        return _cancel(cluster, partition)
    problem = assignment_problem(target, cluster.registered)
    if problem is not None:
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem
    factors = None if may_change_factor else changes_factor(partition, target)
    if factors is not None:
        message = f"The replication factor is changed from {factors[0]} to {factors[1]}"
        return ErrorCode.INVALID_REPLICATION_FACTOR, message
    if target != partition.replicas or is_reassigned(partition):
        cluster.controller.reassign(partition, plan(partition, target))
    return ErrorCode.NONE, None


def _cancel(cluster: Cluster, partition: Partition) -> tuple[ErrorCode, str | None]:
    if not is_reassigned(partition):
        return ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None
    before = reverted(partition)
    is_clean = set(before.isr) <= set(partition.isr)
    if not (is_clean or partition.topic.config.boolean("unclean.leader.election.enable")):
        name = f"{partition.topic.name}:{partition.index}"
        return (
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Unable to revert partition assignment for {name} because it would require an unclean leader election.",
        )
    cluster.controller.settle(partition, before)
    return ErrorCode.NONE, None
